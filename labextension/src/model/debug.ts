/** Breakpoints and held steps, as the kernel tells them, and the values that were asked of a held step. */
import type { BreakpointState, BreakpointWish, DebugState, Node, Reply, StopState, Values, ValueState } from "../wire/messages.js";
import { deviceText } from "./cluster.js";
import type { GraphModel } from "./graph.js";
import { opOf, pathOf, type BoxId } from "./ids.js";
import { shortName } from "./scopes.js";
import { Signal } from "./signal.js";

/** What is asked of a held step. */
export interface ValueQuestion {
  readonly stop: string;
  readonly tensors: readonly string[];
  /** Where along the axes before the last two pictures are taken. */
  readonly at: readonly number[];
}

export interface ValueAnswer {
  readonly question: ValueQuestion;
  /** Why there are no values; "" where there are. */
  readonly error: string;
  readonly values: readonly ValueState[];
}

/** What became of the wish to replace a value. */
export interface Replaced {
  readonly isDone: boolean;
  readonly message: string;
}

export class DebugModel {
  /** An answer has come, or another stop is looked at. */
  readonly changed = new Signal<void>();
  readonly #model: GraphModel;
  #chosen = "";
  #problem = "";
  #asked: ValueQuestion | null = null;
  #request = 0;
  #answer: ValueAnswer | null = null;
  #replaced: Replaced | null = null;
  /** What follows the graph to its next session. */
  #following: readonly BreakpointState[] = [];

  constructor(model: GraphModel) {
    this.#model = model;
  }

  /** What waits for a session, or for an operation, a sentence each. */
  get waiting(): readonly string[] {
    const { session } = this.#model;
    if (session !== null && session.state !== "closed") {
      this.#following = (session.debug?.breakpoints ?? []).filter(({ follows }) => follows);
      return session.debug?.waiting ?? [];
    }
    return this.#following.map((point) => `${pointText(point)} waits for the next session`);
  }

  get state(): DebugState | null {
    return this.#model.session?.debug ?? null;
  }

  /** The held step that is looked at: the chosen one, or else the first. */
  get stop(): StopState | null {
    const stops = this.state?.stops ?? [];
    return stops.find(({ id }) => id === this.#chosen) ?? stops.find((one) => one.is_past) ?? stops[0] ?? null;
  }

  /** Why the latest breakpoint could not be set; "" where it could. */
  get problem(): string {
    return this.#problem;
  }

  get answer(): ValueAnswer | null {
    return this.#answer;
  }

  /** What became of the latest wish to replace a value; null for none at this stop. */
  get replaced(): Replaced | null {
    return this.#replaced;
  }

  /** Takes the reply to it: what was seen is asked for anew. */
  takeReplaced({ ok, message }: Reply): void {
    this.#replaced = { isDone: ok, message };
    if (ok) this.#asked = null;
    this.changed.emit();
  }

  chooseStop(id: string): void {
    this.#chosen = id;
    this.changed.emit();
  }

  /** Takes the reply to a wish for a breakpoint. */
  takeReply({ ok, message }: Reply): void {
    this.#problem = ok ? "" : message;
    this.changed.emit();
  }

  /** Whether the last question was this one. */
  isAsked(question: ValueQuestion): boolean {
    return this.#asked !== null && JSON.stringify(this.#asked) === JSON.stringify(question);
  }

  /** Waits for the answer to a question; returns its number. An answer to an earlier one is passed over. */
  await(question: ValueQuestion): number {
    // While a step is moved on, what was seen of the same tensors stays until the answer is there.
    if (this.#answer && JSON.stringify(this.#answer.question) !== JSON.stringify(question)) this.#replaced = null;
    if (this.#answer && JSON.stringify(this.#answer.question.tensors) !== JSON.stringify(question.tensors)) this.#answer = null;
    this.#asked = question;
    return ++this.#request;
  }

  /** What was asked is not waited for: the kernel may never have heard it, or nobody looks. */
  forget(): void {
    this.#asked = null;
    this.#answer = null;
    this.#replaced = null;
  }

  takeValues({ request_id, error, values }: Values): void {
    if (request_id !== this.#request || !this.#asked) return;
    this.#answer = { question: this.#asked, error, values };
    this.changed.emit();
  }
}

/** The operation that a breakpoint can stand at where a box is chosen; null where none can. A loop's frame is the loop. */
export function targetOf(model: GraphModel, box: BoxId | null): Node | null {
  if (box === null || model.level !== "graph") return null;
  const op = opOf(box);
  return (op === null ? model.frames.get(pathOf(box) ?? "") : model.nodes.get(op)) ?? null;
}

/** The wish for a breakpoint at an operation. */
export function wishOf({ name }: Node, isAfter: boolean, when: string): BreakpointWish {
  return { op: name, scope: null, op_type: null, line: null, cell: null, file: null, is_after: isAfter, when: when.trim(), iteration: null, step: null, hits: 1 };
}

/** The breakpoint that was set at an operation; null for none. */
export function standingAt(state: DebugState | null, { name }: Node, isAfter: boolean): BreakpointState | null {
  return state?.breakpoints.find((point) => point.is_after === isAfter && point.target === `"${name}"`) ?? null;
}

/** 'before "b"', 'not finite in "b"'. */
export function pointText({ is_after, target, is_watch, conditions }: Pick<BreakpointState, "is_after" | "target" | "is_watch" | "conditions">): string {
  return `${is_watch ? `${conditions} in` : is_after ? "after" : "before"} ${target}`;
}

/** Where a breakpoint stands, where that is not what it was set at; "" else. */
export function whereText({ target, where, ops, is_watch }: BreakpointState): string {
  if (is_watch) return "";
  const others = where.filter((text) => text !== target);
  if (others.length > 0) return others.join("; ");
  return ops.length === 0 ? "in no plan yet" : "";
}

/** What is next, and where, of a held step: 'step 3 · next: b on worker 1 · loop iteration 2'. */
export function stopText(model: GraphModel, stop: StopState): string {
  const { step, frame, is_past } = stop;
  const loops = frame === "" ? [] : [frame.split("/").map(loopText).join(", ")];
  return [...(is_past ? ["computed again"] : []), ...(step === null ? [] : [`step ${step}`]), `next: ${nextText(model, stop)}`, ...loops].join(" \u00b7 ");
}

/** "b", "b on worker 1", "b goes from worker 1 to worker 2". */
function nextText(model: GraphModel, { op, device, sent, sender }: StopState): string {
  if (op === null) return "the end of the iteration or step";
  if (sent !== "") return `${sent} goes from ${placeText(sender)} to ${placeText(device)}`;
  const name = model.nodes.get(model.ownId(op))?.name ?? "an operation";
  if (device === "") return name;
  return `${name} ${device.startsWith("/job:client") ? "in" : "on"} ${placeText(device)}`;
}

/** "worker 1", "GPU:0 of worker 1", "this notebook"; where there is no cluster, "CPU:1". */
function placeText(device: string): string {
  return device.startsWith("/job:localhost") ? device.slice(device.lastIndexOf("/device:") + "/device:".length) : deviceText(device);
}

/** "while:3" -> "while iteration 3". */
function loopText(loop: string): string {
  const at = loop.lastIndexOf(":");
  return `${shortName(loop.slice(0, at))} iteration ${loop.slice(at + 1)}`;
}

/** Why a step is held. */
export function whyText(state: DebugState, { breakpoint, is_past }: StopState): string {
  if (is_past) return "of the past: moves are its own, Leave the past ends it";
  const point = state.breakpoints.find(({ number }) => number === breakpoint);
  if (breakpoint === null) return "paused, or moved on by hand";
  if (!point) return `breakpoint ${breakpoint}, which is gone`;
  if (point.is_watch) return `watchpoint ${breakpoint}: ${point.found}`;
  return `breakpoint ${breakpoint}: ${pointText(point)}${point.conditions && ` when ${point.conditions}`}`;
}

/** What stands at operations: in this page's numbers, whether any of it is on. */
export function standing(model: GraphModel, state: DebugState | null): ReadonlyMap<number, boolean> {
  const found = new Map<number, boolean>();
  if (model.level !== "graph") return found;
  for (const { ops, target, is_enabled } of state?.breakpoints ?? []) {
    const named = /^"(.*)"$/.exec(target)?.[1];
    const own = named === undefined ? [] : [model.tree.idOf(named)];
    for (const op of [...ops.map((id) => model.ownId(id)), ...own]) {
      if (op !== undefined) found.set(op, (found.get(op) ?? false) || is_enabled);
    }
  }
  return found;
}
