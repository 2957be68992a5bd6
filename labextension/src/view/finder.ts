/** What is sought in a view: found anew when the question or the graph changes, and walked through. */
import type { GraphModel } from "../model/graph.js";
import { opBox, opOf, type BoxId } from "../model/ids.js";
import { search, type Found } from "../model/search.js";
import { Signal } from "../model/signal.js";
import type { Store } from "../model/store.js";

export class Finder {
  readonly changed = new Signal<void>();
  readonly #model: GraphModel;
  readonly #store: Store;
  #found: Found = { ops: [], problem: "" };
  #question = "";
  #version = -1;
  #difference: Store["difference"] | null = null;

  constructor(model: GraphModel, store: Store) {
    this.#model = model;
    this.#store = store;
  }

  get found(): Found {
    return this.#found;
  }

  /** Whether anything is sought. */
  get isOn(): boolean {
    return this.#question.trim() !== "";
  }

  /** Looks again, where the question or the graph is another. */
  update(): void {
    const { find, difference } = this.#store;
    const { version } = this.#model;
    if (find === this.#question && difference === this.#difference && version === this.#version) return;
    this.#question = find;
    this.#version = version;
    this.#difference = difference;
    this.#found = search(this.#model, find, difference);
    this.changed.emit();
  }

  /** The next one after a box, or the one before it; null where nothing is found. */
  next(from: BoxId | null, by: 1 | -1): BoxId | null {
    const { ops } = this.#found;
    if (ops.length === 0) return null;
    const at = ops.indexOf(opOf(from ?? "") ?? -1);
    const to = at < 0 ? (by > 0 ? 0 : ops.length - 1) : (at + by + ops.length) % ops.length;
    return opBox(ops[to] ?? 0);
  }

  /** "3 of 12", "12 found", or what is wrong. */
  text(selection: BoxId | null): string {
    if (!this.isOn) return "";
    const { ops, problem } = this.#found;
    if (problem) return problem;
    const at = ops.indexOf(opOf(selection ?? "") ?? -1);
    return ops.length === 0 ? "nothing found" : at < 0 ? `${ops.length} found` : `${at + 1} of ${ops.length}`;
  }
}
