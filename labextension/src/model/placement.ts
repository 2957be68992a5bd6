/** Where the latest plan has placed what is looked at, and why: asked of the kernel, and told in the inspector. */
import type { Wish } from "../wire/channel.js";
import type { CandidateState, MovePrediction, MoveState, OpPlacementState, Placement } from "../wire/messages.js";
import { scopeTitle } from "./bodies.js";
import type { Fact } from "./fact.js";
import { duration } from "./figures.js";
import { opsBelow } from "./facts.js";
import type { GraphModel } from "./graph.js";
import type { Heat } from "./heat.js";
import { opOf, pathOf, type BoxId } from "./ids.js";
import { Signal } from "./signal.js";

/** What can be moved. */
export interface Movable {
  /** The name of an operation, or the path of a scope with a "/" behind it; else what the picture calls it. */
  readonly name: string;
  /** Of what the view has put together the names of its operations; else []. */
  readonly parts: readonly string[];
}

/** A move that the user thinks of: nothing is changed before it is confirmed. */
export interface Proposal {
  readonly what: Movable;
  readonly device: string;
  /** What it would change; null until the kernel has said so. */
  readonly told: MovePrediction | null;
}

export class PlacementModel {
  /** An answer has come, or another move is thought of. */
  readonly changed = new Signal<void>();
  #request = 0;
  /** The numbers of the latest questions. */
  #asked = { op: 0, move: 0 };
  #op: OpPlacementState | null = null;
  #proposal: Proposal | null = null;

  get proposal(): Proposal | null {
    return this.#proposal;
  }

  /** What is known of the operation that was asked for last; null where it is not this one. */
  of(name: string): OpPlacementState | null {
    return this.#op?.name === name ? this.#op : null;
  }

  /** The question where an operation stands. */
  ask(name: string): Wish<"ask_placement"> {
    this.#asked.op = ++this.#request;
    return { request_id: this.#request, name, device: "", parts: [] };
  }

  /** The question what a move would change. */
  propose(what: Movable, device: string): Wish<"ask_placement"> {
    this.#asked.move = ++this.#request;
    this.#proposal = { what, device, told: null };
    this.changed.emit();
    return { request_id: this.#request, ...what, device };
  }

  /** The move is made, or not wanted. */
  forget(): void {
    if (this.#proposal === null) return;
    this.#proposal = null;
    this.changed.emit();
  }

  take({ request_id, op, move }: Placement): void {
    const before = JSON.stringify([this.#op, this.#proposal]);
    if (request_id === this.#asked.op) this.#op = op;
    if (request_id === this.#asked.move && this.#proposal) this.#proposal = { ...this.#proposal, told: move };
    if (JSON.stringify([this.#op, this.#proposal]) !== before) this.changed.emit();
  }
}

/** "12 ms -> 8 ms a step, predicted". */
export function predictionText({ before_s: before, after_s: after }: Pick<MovePrediction, "before_s" | "after_s">): string {
  if (before === null || after === null) return "no prediction: the latest step has nothing of it";
  return `predicted: ${duration(before)} \u2192 ${duration(after)} a step`;
}

/** What was measured beside it, as far as steps have run. */
export function measuredText({ measured_before_s: before, measured_after_s: after, clock }: MoveState): string {
  if (after === null) return `measured: after the next step (${clock} clock)`;
  return `measured: ${before === null ? "" : `${duration(before)} \u2192 `}${duration(after)} a step (${clock} clock)`;
}

/** Why an operation stands where it does, where else it could stand, and how long it was measured to take. */
export function placementFacts(told: OpPlacementState | null, heat: Heat | null, op: number): Fact[] {
  const measured = heat === null ? null : measuredSeconds(heat, op);
  return [
    ...(told ? [{ name: "because", value: told.reason || "nothing else was asked for" }, ...told.candidates.map((one) => candidateFact(one, told))] : []),
    ...(measured === null ? [] : [{ name: "measured", value: `${duration(measured)} each time` }]),
  ];
}

function candidateFact({ device, seconds, reason }: CandidateState, { device: chosen }: OpPlacementState): Fact {
  const done = seconds === null ? [] : [`done after ${duration(seconds)}`];
  return { name: device, value: [...(device === chosen ? ["chosen"] : []), ...done, ...(reason ? [reason] : [])].join(", ") };
}

/** Mean seconds of one run of the node that an operation became; null where none was recorded. */
function measuredSeconds({ ops, count, self_ns }: Heat, op: number): number | null {
  const at = ops.findIndex(([own]) => own === op);
  const runs = count[at] ?? 0;
  return at < 0 || runs === 0 ? null : ((self_ns[at] ?? 0) * 1e-9) / runs;
}

/** What a box stands for when it is moved; null where nothing of the user's is in it, and in a program that is lowered. */
export function movable(model: GraphModel, box: BoxId | null): Movable | null {
  if (box === null || model.level !== "graph") return null;
  const path = pathOf(box);
  const own = path === null ? model.nodes.get(opOf(box) ?? -1) : model.frames.get(path);
  if (own && (path === null || !own.frame)) return { name: own.name, parts: [] };
  const scope = path === null ? undefined : model.tree.get(path);
  if (!scope?.parent || path === null) return null;
  const names = [...opsBelow(scope)].flatMap((op) => model.nodes.get(op)?.name ?? []);
  // What the view has put together has a path that no name has.
  if (names[0]?.startsWith(`${path}/`)) return { name: `${path}/`, parts: [] };
  return names.length > 0 ? { name: scopeTitle(model, path), parts: names } : null;
}
