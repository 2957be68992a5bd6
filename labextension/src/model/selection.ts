/** The store's selection in one view: finds the box of its name, and follows what becomes of it when the graph changes. */
import type { Node } from "../wire/messages.js";
import { counterpart } from "./counterpart.js";
import { isFrame } from "./frames.js";
import type { GraphModel } from "./graph.js";
import { opBox, opOf, pathOf, ROOT, scopeBox, type BoxId } from "./ids.js";
import { isOver } from "./running.js";
import { framePath } from "./scopes.js";
import type { BoxName, Store } from "./store.js";

export class Selection {
  readonly #model: GraphModel;
  readonly #store: Store;
  readonly #view: object;
  /** The selection that this view has found, and its operation as it was told last. */
  #known: { readonly name: string; readonly node: Node | null } | null = null;

  /** `view` is who changes the store. */
  constructor(model: GraphModel, store: Store, view: object) {
    this.#model = model;
    this.#store = store;
    this.#view = view;
  }

  /** The selected box; null for none, and for one that the graph does not have, or not yet. */
  get box(): BoxId | null {
    return boxOf(this.#model, this.#store.selection);
  }

  /** What is looked at: the selection; without one, where a step is held or has failed. */
  get subject(): BoxId | null {
    const { run, session } = this.#model;
    const op = isOver(run) ? session?.failure?.op : run?.position?.op;
    return this.box ?? (this.#store.selection === null && typeof op === "number" && this.#model.nodes.has(op) ? opBox(op) : null);
  }

  /** Whether this view has found what is selected, or nothing is. */
  get isKnown(): boolean {
    return this.#store.selection === null || this.#known?.name === this.#store.selection.name;
  }

  /** Selects a box; the root and null are no selection. */
  select(box: BoxId | null): void {
    this.#store.select(box === null || box === ROOT ? null : nameOf(this.#model, box), this.#view);
    this.#remember();
  }

  /** Takes a change of the graph: a selection that is lost goes over to what has become of it, or is given up. */
  settle(): void {
    const { selection } = this.#store;
    const isLost = selection !== null && this.box === null && this.#known?.name === selection.name;
    if (isLost) this.select(this.#known?.node ? counterpart(this.#model, this.#known.node) : null);
    this.#remember();
  }

  #remember(): void {
    const { selection } = this.#store;
    const { box } = this;
    if (selection === null || box === null) {
      if (selection?.name !== this.#known?.name) this.#known = null;
      return;
    }
    this.#known = { name: selection.name, node: this.#model.nodes.get(opOf(box) ?? -1) ?? null };
  }
}

/** The name of a box that the graph has; null where it has none. */
export function nameOf(model: GraphModel, box: BoxId): BoxName | null {
  const op = opOf(box);
  const name = op === null ? `${pathOf(box) ?? ""}/` : model.nodes.get(op)?.name;
  return name === undefined ? null : { name, box };
}

/** The box that a name stands for; null where the graph has none. The operation of a loop or branch stands for its frame. */
export function boxOf(model: GraphModel, told: BoxName | null): BoxId | null {
  if (told === null) return null;
  if (told.box !== null && nameOf(model, told.box)?.name === told.name && isThere(model, told.box)) return told.box;
  const { name } = told;
  if (name.endsWith("/")) return model.tree.get(name.slice(0, -1)) ? scopeBox(name.slice(0, -1)) : null;
  const id = model.tree.idOf(name);
  return id !== undefined && model.nodes.has(id) ? frameBox(model, opBox(id)) : null;
}

/** Whether the graph has what a box stands for, seen or not. */
export function isThere(model: GraphModel, box: BoxId): boolean {
  const op = opOf(box);
  return (op === null ? model.tree.get(pathOf(box) ?? "") : model.nodes.get(op)) !== undefined;
}

/** The frame of a loop's or a branch's operation; any other box itself. */
export function frameBox(model: GraphModel, box: BoxId): BoxId {
  const node = model.nodes.get(opOf(box) ?? -1);
  const path = node && isFrame(node) ? framePath(node) : "";
  return path !== "" && model.tree.get(path) ? scopeBox(path) : box;
}
