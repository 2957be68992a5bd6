/** What goes into the layout and what comes out. All lengths are in pixels at zoom 1. */
import type { Lane } from "../rules/types.js";

export interface BoxInput {
  readonly id: string;
  /** Size of the box; for an open scope the layout of its inside decides, and this is what it has while it is closed. */
  readonly w: number;
  readonly h: number;
  /** The inside of an open scope, or null. */
  readonly inner: ScopeInput | null;
  /** Where on the stage it belongs; "model" where nothing is said. */
  readonly lane?: Lane;
  /** The box of the same scope that it stands beside, as a gradient beside what it is the gradient of. */
  readonly beside?: string | null;
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

/** The room that a drawing is to fill. */
export interface Room {
  readonly w: number;
  readonly h: number;
}

export interface ScopeInput {
  readonly path: string;
  readonly boxes: readonly BoxInput[];
  readonly links: readonly LinkInput[];
  /** Width that the header needs; 0 for the root, which has none. */
  readonly header: number;
  /** What the drawing is fitted to, or `ROOM`. */
  readonly room?: Room;
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
  /** In reading order. */
  readonly boxes: ReadonlyMap<string, Rect>;
  /** Link id -> x, y, x, y ...; a link without a route is a stub: it is named at both ends. */
  readonly routes: ReadonlyMap<string, readonly number[]>;
  /** Source -> x of its port in the upper and in the lower wall. */
  readonly inPorts: ReadonlyMap<string, number>;
  readonly outPorts: ReadonlyMap<string, number>;
  /** Vertex -> its place among those of its rank: what a later layout of the scope keeps. */
  readonly order: ReadonlyMap<string, number>;
}

/** The whole picture, in its own coordinates. */
export interface Positions {
  readonly w: number;
  readonly h: number;
  /** Those of one scope in reading order: strip by strip, rank by rank, from left to right; then what stands beside and aside. */
  readonly boxes: ReadonlyMap<string, Rect>;
  /** Link id -> x, y, x, y ...; a link without a route is a stub. */
  readonly routes: ReadonlyMap<string, readonly number[]>;
}

export const EMPTY: Positions = { w: 0, h: 0, boxes: new Map(), routes: new Map() };

/**
 * What a drawing is to fill in every view, whatever its stage's size: about the shape of a stage beside an inspector, and not
 * far from that of a docked one.
 */
export const ROOM: Room = { w: 860, h: 560 };

/** A picture that is fitted is shown no larger than this. */
export const FITTED_ZOOM = 1.5;

/** Distances of the drawing. */
export const SPACE = {
  /** Between boxes of one rank. */
  sibling: 22,
  /** Between lines that pass side by side. */
  line: 12,
  /** Between ranks, at least. */
  rank: 34,
  /** Between the rows of a rank that was wrapped. */
  row: 24,
  /** Between a box and what stands beside it. */
  beside: 34,
  /** Inside a scope's wall. */
  padding: 16,
  /** Height of a scope's header. */
  header: 30,
} as const;

/** Distances of lines that leave the straight way. */
export const DETOUR = {
  /** Below the boxes of a rank that a line joins. */
  below: 11,
  /** Below and above the ends of a line that runs back, and beside the drawing. */
  back: 12,
  beside: 14,
  /** Below strips that a line passes under. */
  under: 40,
  /** Where on a closed body's wall a return ends, as a share of the body's width from its middle. */
  returnShare: 0.3,
  /** Of the wall's width, at most so much for the ends of lines. */
  endsShare: 0.6,
} as const;

/** How much ends and neighbours count where boxes are ranked and placed. */
export const PULL = {
  /** Of a port, beside 1 of a box: what comes from outside may come by a long line. */
  port: 0.5,
  /** Steps of a line: from way point to way point, from box to way point, from box to box. */
  points: 6,
  end: 0.6,
  boxes: 3,
  /** Of a box without lines: in rows, and elsewhere. */
  inRow: 20,
  loose: 0.1,
} as const;

/** What makes the gaps between boxes and ranks other than usual. */
export const GAPS = {
  /** Beside a line that passes a box, as a share of `SPACE.sibling`. */
  besideLine: 0.7,
  /** At a wall, as a share of `SPACE.rank`. */
  atWall: 0.45,
  /** What lines that cross a gap slantwise add, by how far they go sideways, and at most. */
  slantShare: 0.05,
  mostSlant: 30,
} as const;

/** How long a search goes on, and what counts in it. */
export const SEARCH = {
  /** Sweeps over the ranks, and the steps in all of them. */
  leastSweeps: 6,
  mostSweeps: 32,
  steps: 600_000,
  /** Share of the boxes whose former places make a drawing keep its order. */
  keptShare: 0.6,
  /** Costs of a cut: off its place, and for each line over it but one. */
  offCut: 4,
  overCut: 0.12,
  /** How much wider rows are tried, and how often. */
  wider: 1.25,
  widenings: 24,
  /** Widths of rows that are tried, as shares of what fits the stage's shape. */
  rowShares: [0.5, 0.7, 0.85, 1, 1.2, 1.5],
} as const;
