/**
 * What the user has chosen, shared with the kernel and with the other displays of the widget: the selection, the
 * iteration and the open scopes are the widget's state, so that Python reads and sets them and they outlive a
 * reload of the page. What is chosen here is sent; the state follows the kernel alone.
 */
import type { Choices } from "../model/choices.js";
import type { GraphModel } from "../model/graph.js";
import { opBox, opOf, pathOf, scopeBox, type BoxId } from "../model/ids.js";
import type { Choose } from "../wire/messages.js";

const NAMES = ["selection", "iteration", "open_scopes"] as const;
type Name = Choose["what"];

/** The widget's state, as front ends keep it. */
export interface WidgetState {
  get(name: string): unknown;
  on(event: `change:${Name}`, listener: () => void): void;
  off(event: `change:${Name}`, listener: () => void): void;
  send(message: Choose): void;
}

/** What has come from elsewhere. */
export interface Taker {
  /** Selects a box, and brings it into sight if that is wished. */
  select(box: BoxId | null, bringIn: boolean): void;
}

export class SharedChoices {
  readonly #state: WidgetState;
  readonly #model: GraphModel;
  readonly #choices: Choices;
  readonly #taker: Taker;
  /** While what came from elsewhere is taken over, nothing is told. */
  #isTaking = false;
  /** What was sent and has not come back yet. */
  readonly #sent: Readonly<Record<Name, string[]>> = { selection: [], iteration: [], open_scopes: [] };
  /** A selection that the graph does not have, or not yet. */
  #awaited: string | null = null;

  constructor(state: WidgetState, model: GraphModel, choices: Choices, taker: Taker, until: AbortSignal) {
    this.#state = state;
    this.#model = model;
    this.#choices = choices;
    this.#taker = taker;
    const listeners = NAMES.map((name) => [name, () => this.#hear(name)] as const);
    for (const [name, listener] of listeners) state.on(`change:${name}`, listener);
    until.addEventListener("abort", () => {
      for (const [name, listener] of listeners) state.off(`change:${name}`, listener);
    }, { once: true });
    choices.changed.connect((what) => this.#tell(what === "open" ? "open_scopes" : what), until);
    this.#take("open_scopes", false);
    this.#take("iteration", false);
    this.#awaited = textOf(state.get("selection"));
  }

  /** The graph has changed: what it did not have may be there now. */
  onGraph(): void {
    if (this.#awaited !== null) this.#take("selection", false);
  }

  /** The state has changed: to what was sent from here, or to something else. */
  #hear(name: Name): void {
    const sent = this.#sent[name];
    const known = sent.indexOf(JSON.stringify(this.#state.get(name) ?? null));
    sent.splice(0, known < 0 ? sent.length : known + 1);
    if (known < 0) this.#take(name, true);
  }

  #take(name: Name, bringIn: boolean): void {
    const value = this.#state.get(name);
    if (JSON.stringify(value ?? null) === JSON.stringify(this.#mine(name))) return;
    this.#isTaking = true;
    if (name === "iteration") this.#choices.chooseIteration(iterationOf(value));
    else if (name === "open_scopes") this.#choices.restore(scopesOf(value));
    else this.#takeSelection(textOf(value), bringIn);
    this.#isTaking = false;
  }

  #takeSelection(name: string | null, bringIn: boolean): void {
    const box = name === null ? null : this.#boxOf(name);
    this.#awaited = box === null ? name : null;
    if (name === null || box !== null) this.#taker.select(box, bringIn);
  }

  #tell(name: Name): void {
    if (this.#isTaking) return;
    if (name === "selection") this.#awaited = null;
    const value = this.#mine(name);
    this.#sent[name].push(JSON.stringify(value));
    this.#state.send({ kind: "choose", what: name, value });
  }

  /** What is chosen here, as it is told. */
  #mine(name: Name): Choose["value"] {
    if (name === "open_scopes") return Object.fromEntries(this.#choices.byHand);
    const { selection, iteration } = this.#choices;
    if (name === "iteration") return iteration && [iteration.frame, iteration.number];
    return selection && this.#nameOf(selection);
  }

  #nameOf(box: BoxId): string | null {
    const op = opOf(box);
    return op === null ? `${pathOf(box) ?? ""}/` : (this.#model.nodes.get(op)?.name ?? null);
  }

  /** The box that a name stands for; null where the graph has none. */
  #boxOf(name: string): BoxId | null {
    const path = name.endsWith("/") ? name.slice(0, -1) : null;
    if (path !== null) return this.#model.tree.get(path) ? scopeBox(path) : null;
    const id = this.#model.tree.idOf(name);
    return id !== undefined && this.#model.nodes.has(id) ? opBox(id) : null;
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function iterationOf(value: unknown): { frame: string; number: number } | null {
  if (!Array.isArray(value)) return null;
  const [frame, number]: unknown[] = value;
  return typeof frame === "string" && typeof number === "number" ? { frame, number } : null;
}

function scopesOf(value: unknown): Map<string, boolean> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, boolean] => typeof entry[1] === "boolean"));
}
