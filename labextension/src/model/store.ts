/**
 * What the user has chosen in the views of one graph: the selection, an iteration of a loop, a recorded step, the scopes opened
 * and closed, the box under the pointer. All views of a graph in a page share one store. Boxes are told by their operations'
 * and scopes' names, for each view has its own ids. The level is not here: the kernel decides it, and the model has it.
 */
import type { BoxId } from "./ids.js";
import type { HeatKind } from "./heat.js";
import type { Difference } from "./search.js";
import type { ChosenIteration } from "./running.js";
import { Signal } from "./signal.js";

/** The name that a box has in every view: "layer/w" of an operation, "layer/" of a scope. */
export interface BoxName {
  readonly name: string;
  /** The box in the view that has chosen it. */
  readonly box: BoxId | null;
}

export interface StoreChange {
  readonly what: "selection" | "iteration" | "open" | "hover" | "find" | "isolated" | "difference" | "step" | "heat";
  /** The view, or the link to the kernel, that has made the change. */
  readonly by: object;
}

export class Store {
  readonly changed = new Signal<StoreChange>();
  #selection: BoxName | null = null;
  #iteration: ChosenIteration | null = null;
  #opened: ReadonlyMap<string, boolean> = new Map();
  #hover: BoxName | null = null;
  #find = "";
  #isolated = "";
  #difference: Difference = new Map();
  #step: number | null = null;
  #heat: HeatKind = "off";

  get selection(): BoxName | null {
    return this.#selection;
  }

  select(selection: BoxName | null, by: object): void {
    if (isSame(selection, this.#selection)) return;
    this.#selection = selection;
    this.changed.emit({ what: "selection", by });
  }

  /** The iteration of a running loop that the user has chosen, or null. */
  get iteration(): ChosenIteration | null {
    return this.#iteration;
  }

  chooseIteration(iteration: ChosenIteration | null, by: object): void {
    const known = this.#iteration;
    if (known?.frame === iteration?.frame && known?.number === iteration?.number) return;
    this.#iteration = iteration;
    this.changed.emit({ what: "iteration", by });
  }

  /** The number of the recorded step that the user has chosen, or null. */
  get step(): number | null {
    return this.#step;
  }

  chooseStep(step: number | null, by: object): void {
    if (step === this.#step) return;
    this.#step = step;
    this.changed.emit({ what: "step", by });
  }

  /** What share of a step the boxes tell. */
  get heat(): HeatKind {
    return this.#heat;
  }

  setHeat(heat: HeatKind, by: object): void {
    if (heat === this.#heat) return;
    this.#heat = heat;
    this.changed.emit({ what: "heat", by });
  }

  /** The scopes that the user has opened (true) or closed (false), by path. */
  get opened(): ReadonlyMap<string, boolean> {
    return this.#opened;
  }

  setOpened(opened: ReadonlyMap<string, boolean>, by: object): void {
    this.#opened = opened;
    this.changed.emit({ what: "open", by });
  }

  /** What is sought, as `search` reads it; "" for nothing. */
  get find(): string {
    return this.#find;
  }

  setFind(find: string, by: object): void {
    if (find === this.#find) return;
    this.#find = find;
    this.changed.emit({ what: "find", by });
  }

  /** What is another than in a graph that this one is compared with. */
  get difference(): Difference {
    return this.#difference;
  }

  setDifference(difference: Difference, by: object): void {
    this.#difference = difference;
    this.changed.emit({ what: "difference", by });
  }

  /** The name of what is shown alone, with its neighbours; "" for all. */
  get isolated(): string {
    return this.#isolated;
  }

  setIsolated(isolated: string, by: object): void {
    if (isolated === this.#isolated) return;
    this.#isolated = isolated;
    this.changed.emit({ what: "isolated", by });
  }

  /** The box under the pointer, in whichever view. */
  get hover(): BoxName | null {
    return this.#hover;
  }

  setHover(hover: BoxName | null, by: object): void {
    if (isSame(hover, this.#hover)) return;
    this.#hover = hover;
    this.changed.emit({ what: "hover", by });
  }
}

function isSame(a: BoxName | null, b: BoxName | null): boolean {
  return a?.name === b?.name && a?.box === b?.box;
}
