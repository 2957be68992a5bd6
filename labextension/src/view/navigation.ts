/** Where a view goes: what it selects, which scopes it opens for that, and what the picture keeps in place or brings into sight. */
import { walk, type Direction } from "../layout/walk.js";
import { calledBox } from "../model/bodies.js";
import type { GraphModel } from "../model/graph.js";
import { opBox, opOf, pathOf, ROOT, scopeBox, type BoxId } from "../model/ids.js";
import type { OpenScopes } from "../model/open_scopes.js";
import { frameBox, isThere, nameOf, type Selection } from "../model/selection.js";
import type { ChosenIteration } from "../model/running.js";
import type { Store } from "../model/store.js";
import type { VisibleGraph } from "../model/visible.js";
import type { SessionLink } from "./session_link.js";
import type { Stage } from "./stage.js";

interface Around {
  readonly model: GraphModel;
  readonly store: Store;
  readonly selection: Selection;
  readonly scopes: OpenScopes;
  readonly session: SessionLink;
  readonly stage: Stage;
  /** Who changes the store. */
  readonly view: object;
}

export class Navigation {
  readonly #around: Around;
  /** The picture that is shown. */
  graph: VisibleGraph | null = null;
  /** Brought into sight by the next picture. */
  #sought: BoxId | null = null;
  /** Stays in place in the next picture. */
  #hold: BoxId | null = null;
  /** Selected once the graph as written is there. */
  #wanted: BoxId | null = null;

  constructor(around: Around) {
    this.#around = around;
  }

  get sought(): BoxId | null {
    return this.#sought;
  }

  /** What is sought is in sight. */
  found(): void {
    this.#sought = null;
  }

  /** The box to be kept in place by the picture that is asked for now. */
  takeHold(): BoxId | null {
    const hold = this.#hold;
    this.#hold = null;
    return hold;
  }

  select(box: BoxId | null, bringIn = false): void {
    this.#around.selection.select(box);
    if (box !== null && bringIn) this.#around.stage.reveal(box);
  }

  hover(box: BoxId | null): void {
    const { model, store, view } = this.#around;
    store.setHover(box === null || box === ROOT ? null : nameOf(model, box), view);
  }

  /** Selects what lies beside the selection. */
  walk(direction: Direction): void {
    const { selection, stage } = this.#around;
    if (this.graph) this.select(walk(this.graph, stage.positions, selection.box, direction) ?? selection.box, true);
  }

  /** Takes the choice of an iteration back; where there is none, selects what is around the selection. */
  leave(): void {
    const { store, selection } = this.#around;
    if (store.iteration !== null) return this.forgetIteration();
    this.select(this.graph?.boxes.get(selection.box ?? "")?.parent ?? null, true);
  }

  /** Selects a box that may lie in closed scopes, and opens them; a function's body is opened too. */
  go(to: BoxId): void {
    const box = frameBox(this.#around.model, to);
    if (isThere(this.#around.model, box)) this.select(box, this.#reveal(box));
  }

  /** Selects a box that may lie in closed scopes, and shows it large enough to be read. */
  goNear(to: BoxId): void {
    const box = frameBox(this.#around.model, to);
    this.letGo();
    this.#around.selection.select(box);
    if (this.#reveal(box)) this.#around.stage.revealNear(box);
  }

  /** The same in a graph of which no picture is there yet. */
  goWhenShown(to: BoxId): void {
    this.go(to);
    this.#sought = this.#around.selection.box;
  }

  /** Brings a selection into sight that was made elsewhere: in another view, or by Python. */
  bringIn(): void {
    const { box } = this.#around.selection;
    if (box !== null) this.#reveal(box);
  }

  /** Opens what the selection lies in, in a view that finds it selected; the picture does not move for one that is seen. */
  uncover(): void {
    const { box } = this.#around.selection;
    if (box !== null && this.#scopesAround(box).some((path) => !this.#around.scopes.isOpen(path))) this.#reveal(box);
  }

  /** Shows an operation in the graph as written. */
  showWritten(box: BoxId): void {
    this.#wanted = box;
    this.#around.session.send("level", "graph");
  }

  /** Goes to what was waited for, now that a snapshot has come. */
  goToWanted(): void {
    const wanted = this.#around.model.level === "graph" ? this.#wanted : null;
    this.#wanted = null;
    if (wanted !== null) this.goWhenShown(wanted);
  }

  /** Selects a loop, and one of its iterations if that is not null. */
  chooseLoop(loop: number, iteration: ChosenIteration | null): void {
    const { model, store, view } = this.#around;
    const path = model.scopeOfLoop(loop);
    this.go(path === null ? opBox(loop) : scopeBox(path));
    store.chooseIteration(iteration, view);
  }

  forgetIteration(): void {
    this.#around.store.chooseIteration(null, this.#around.view);
  }

  /** Shows where a step is, with what is around it. */
  follow(box: BoxId): void {
    this.letGo();
    if (this.#reveal(box)) this.#around.stage.revealNear(box);
  }

  /** An operation that is seen as such, not hidden in a closed scope, stays in sight. */
  keepInSight(op: BoxId): void {
    const { stage } = this.#around;
    if (stage.positions.boxes.has(op)) stage.keepInSight(op);
  }

  /** From now on the picture may move by itself, until the user moves it. */
  letGo(): void {
    this.#around.stage.letGo();
  }

  /** Opens or closes a scope; a call leads to the body that it calls. */
  toggle(box: BoxId): void {
    const path = pathOf(box);
    if (path !== null && path !== "") return this.setOpen(path, !this.#around.scopes.isOpen(path));
    const body = calledBox(this.#around.model, box);
    if (body !== null) this.go(body);
  }

  setOpen(path: string, open: boolean): void {
    this.#hold = scopeBox(path);
    this.#around.scopes.setOpen(path, open);
  }

  /** The scopes that are to be open for a box to be seen, from the outermost. */
  #scopesAround(box: BoxId): readonly string[] {
    const { tree, bodies } = this.#around.model;
    const path = pathOf(box) ?? "";
    const op = opOf(box);
    const home = op === null ? (tree.get(path)?.parent?.path ?? "") : tree.homeOf(op).path;
    return tree.ancestry(bodies.has(path) ? path : home);
  }

  /** Brings a box into sight and opens the scopes that it lies in; whether it is seen already. */
  #reveal(box: BoxId): boolean {
    const { model, scopes, stage } = this.#around;
    if (!isThere(model, box)) return false;
    const wanted = this.#scopesAround(box);
    const closed = wanted.find((one) => !scopes.isOpen(one));
    if (closed !== undefined) [this.#hold, this.#sought] = [scopeBox(closed), box];
    scopes.reveal(wanted);
    if (closed === undefined) stage.reveal(box);
    return closed === undefined;
  }
}
