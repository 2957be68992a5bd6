/**
 * What the rules make of a level: groups beside the scopes that the names span. A group is a scope of the tree (it has a
 * path, a parent, operations and scopes inside; it opens and closes), with `Scope.group` saying what it is.
 */

/**
 * "layer": operations that are one layer, "Dense 784 -> 256"; "stack": copies that run one after the other, "cell x20";
 * "fan": copies side by side, "slice + add x90"; "copy": one copy of a stack or fan; "more": the copies between the first
 * and the last; "part": operations that belong together by their wiring, where a level has too many; "aside": what serves
 * the model without being part of its data's way: initialisers, savers; "gradient": the gradients of one box of the level.
 */
export type GroupKind = "layer" | "stack" | "fan" | "copy" | "more" | "part" | "aside" | "gradient";

export interface Group {
  readonly kind: GroupKind;
  /** What the box is called: "Dense", "cell", "slice + add", "initialisers". Never empty, never one letter. */
  readonly title: string;
  /** What stands under or beside the title: "784 \u2192 256", "conv1, 3\u00d73"; "" for nothing. */
  readonly detail: string;
  /** How many copies a stack, a fan, or a "more" stands for; 1 otherwise. */
  readonly count: number;
  /** What each copy of a stack hands to the next: a closed stack is drawn with an edge that returns to it. Null otherwise. */
  readonly carries: Carries | null;
}

export interface Carries {
  /** Tensors from one copy to the next. */
  readonly count: number;
  /** Their bytes, as far as their shapes are known. */
  readonly bytes: number;
  /** dtype[shape] where all are equal, else "". */
  readonly label: string;
}

/** Where on the stage a box belongs: beside the model's own way stand its gradients, and aside what only serves it. */
export type Lane = "model" | "gradient" | "optimizer" | "aside";

/**
 * Boxes to which lines lead from one box at most; where there are more, the edges are stubs, which only name the box at
 * the other end. Control edges always are. The layout makes stubs of lines that would be too long.
 */
export const MOST_LINES = 12;

/** Boxes that a level shows at most; the rules fold what is more. */
export const MOST_BOXES = 40;

/** Constants of a level that stand for themselves at most; more stand in the boxes of what takes them. */
export const MOST_CONSTANTS = 12;

/** From which sizes and shares on a rule holds. */
export const LIMITS = {
  /** Operations that are looked through for where a variable's first value comes from. */
  filling: 64,
  /** Operations of a cell of a recurrent network, at most. */
  cell: 60,
  /** Share of a group's operations that one function of the user's must have made to name it. */
  byFunction: 0.6,
  /** Sizes of a part, as shares of the size that parts are to have: least, most, and of the last one. */
  leastPart: 0.67,
  mostPart: 1.33,
  lastPart: 1.4,
} as const;
