/** What goes into the layout and what comes out. All lengths are in pixels at zoom 1. */

export interface BoxInput {
  readonly id: string;
  /** Size of the box; for an open scope the layout of its inside decides. */
  readonly w: number;
  readonly h: number;
  /** The inside of an open scope, or null. */
  readonly inner: ScopeInput | null;
}

export interface LinkInput {
  readonly id: string;
  /** Names the ports that the link passes. */
  readonly source: string;
  /** A box of the scope, or null for a port in the upper wall. */
  readonly from: string | null;
  /** A box of the scope, or null for a port in the lower wall. */
  readonly to: string | null;
  /** Runs against the stream, outside, from a loop's body to where it begins anew. */
  readonly isReturn?: boolean;
}

export interface ScopeInput {
  readonly path: string;
  readonly boxes: readonly BoxInput[];
  readonly links: readonly LinkInput[];
  /** Boxes joined by a control edge: they say where a box that stands aside belongs. */
  readonly control: readonly (readonly [string, string])[];
  /** Width that the header needs; 0 for the root, which has none. */
  readonly header: number;
}

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** One scope laid out; everything relative to its own upper left corner. */
export interface ScopeLayout {
  readonly w: number;
  readonly h: number;
  readonly boxes: ReadonlyMap<string, Rect>;
  /** Link id -> x, y, x, y ... */
  readonly routes: ReadonlyMap<string, readonly number[]>;
  /** Source -> x of its port in the upper and in the lower wall. */
  readonly inPorts: ReadonlyMap<string, number>;
  readonly outPorts: ReadonlyMap<string, number>;
}

/** The whole picture, in its own coordinates. */
export interface Positions {
  readonly w: number;
  readonly h: number;
  readonly boxes: ReadonlyMap<string, Rect>;
  readonly routes: ReadonlyMap<string, readonly number[]>;
}

export const EMPTY: Positions = { w: 0, h: 0, boxes: new Map(), routes: new Map() };

/** Distances of the drawing. */
export const SPACE = {
  /** Between boxes of one rank. */
  sibling: 26,
  /** Between lines that pass side by side. */
  line: 12,
  /** Between ranks, at least. */
  rank: 44,
  /** Between the rows of a rank that was wrapped. */
  row: 26,
  /** Inside a scope's wall. */
  padding: 18,
  /** Height of a scope's header. */
  header: 30,
} as const;
