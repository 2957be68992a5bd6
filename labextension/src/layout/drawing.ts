/**
 * The layered drawing of one scope while it is being made.
 *
 * Idea (Sugiyama, Tagawa, Toda 1981): give every box a rank so that data runs downwards, put a
 * way point into each rank that a long line passes, order the ranks so that few lines cross, then
 * choose x. What is ours: way points are shared by all lines of one source (or of one target), so
 * that a fan runs as one line until it spreads; former orders seed the order, so that a change moves
 * nothing past anything; a gradient stands beside what it is the gradient of, as a part of one vertex; a
 * tall drawing is cut into strips, side by side; and the drawing that fills its room best is taken.
 * Rejected: engines from outside (slower by 5 to 40 times, and they forget where things were).
 */
import { columnsOf } from "./columns.js";
import type { BoxInput, LinkInput, ScopeInput, ScopeLayout } from "./types.js";
import { SPACE } from "./types.js";

export type VertexKind = "box" | "in" | "out" | "point";

/** A box within a vertex: a box alone, or with its gradients on its right. */
export interface Part {
  readonly id: string;
  /** From the vertex's middle to the part's. */
  readonly dx: number;
  /** From the vertex's upper edge to the part's. */
  readonly dy: number;
  readonly w: number;
  readonly h: number;
}

export interface Vertex {
  readonly kind: VertexKind;
  /** Box id, port's source, or "" for a way point. */
  readonly id: string;
  readonly parts: readonly Part[];
  readonly w: number;
  readonly h: number;
  rank: number;
  /** The rank before wide ones were wrapped. */
  level: number;
  /** Middle. */
  x: number;
  /** Upper edge. */
  y: number;
  /** Former place in its level, from 0 to 1; NaN where there was none. */
  readonly seed: number;
}

/**
 * How a line runs: "down" from rank to rank, "up" the same way against the ranks (between gradients), "level" between
 * parts of a vertex or vertices of a rank, "back" outside against the stream, "side" to or from a side column; a
 * "stub" is not drawn as a line.
 */
export type Course = "down" | "up" | "level" | "back" | "side" | "stub";

/** A link between vertices; the ends lie `dx` from the middle. */
export interface Wire {
  readonly link: LinkInput;
  readonly from: number;
  readonly to: number;
  readonly fromDx: number;
  readonly toDx: number;
  /** The parts that it joins; null at ports. */
  readonly fromPart: Part | null;
  readonly toPart: Part | null;
  /** Whether it has a say in ranks: between boxes of the main column, not from or to gradients beside them. */
  readonly isMain: boolean;
  course: Course;
  /** The vertices that the line passes from the upper to the lower one, ends included; empty for a line without way points. */
  path: number[];
}

/** One hop between neighbouring ranks. */
export interface Hop {
  readonly upper: number;
  readonly lower: number;
  readonly upperDx: number;
  lowerDx: number;
  /** How strongly the hop wants to be straight. */
  weight: number;
}

export interface Drawing {
  readonly vertices: Vertex[];
  readonly wires: Wire[];
  /** Boxes in columns on the right: gradients that stand beside nothing, optimizers. */
  readonly sides: readonly (readonly number[])[];
  /** Boxes that nothing here is joined to by a line; they stand aside. */
  readonly aside: readonly number[];
}

/** Makes vertices of boxes and ports, and wires of links. */
export function startDrawing(
  input: ScopeInput, inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null,
): Drawing {
  const vertices: Vertex[] = [];
  const { main, sides, aside, beside } = columnsOf(input);
  const ends = new Map<string, { vertex: number; part: Part }>();
  const addBox = (box: BoxInput): number => {
    const vertex = boxVertex([box, ...(beside.get(box.id) ?? [])], inside, before?.order.get(box.id) ?? NaN);
    vertices.push(vertex);
    for (const part of vertex.parts) ends.set(part.id, { vertex: vertices.length - 1, part });
    return vertices.length - 1;
  };
  main.forEach(addBox);
  const sideAt = sides.map((column) => column.map(addBox));
  const asideAt = aside.map(addBox);
  const wires = wiresOf(input.links, vertices, ends, inside, before, new Set(sideAt.flat()), new Set(asideAt));
  const linked = new Set(wires.flatMap(({ from, to }) => [from, to]));
  const loose = main.map((_, i) => i).filter((i) => !linked.has(i) && at(vertices, i).parts.length === 1);
  return { vertices, wires, sides: sideAt, aside: [...loose, ...asideAt].sort(inputOrder(input, vertices)) };
}

function inputOrder({ boxes }: ScopeInput, vertices: readonly Vertex[]): (a: number, b: number) => number {
  const place = new Map(boxes.map(({ id }, k) => [id, k]));
  const of = (i: number): number => place.get(at(vertices, i).id) ?? 0;
  return (a, b) => of(a) - of(b);
}

/** Distance between gradients of one box, which stand under each other. */
const PART_GAP = 12;

function boxVertex(boxes: readonly BoxInput[], inside: ReadonlyMap<string, ScopeLayout>, seed: number): Vertex {
  const sizes = boxes.map(({ id, w, h }) => ({ id, w: inside.get(id)?.w ?? w, h: inside.get(id)?.h ?? h }));
  const [first, ...rest] = sizes;
  if (!first) throw new Error("layout: a vertex without a box");
  const restW = rest.reduce((most, { w }) => Math.max(most, w), 0);
  const restH = rest.reduce((sum, { h }) => sum + h + PART_GAP, -PART_GAP);
  const w = first.w + (rest.length > 0 ? 2 * Math.ceil((SPACE.beside + restW) / 2) : 0);
  const h = Math.max(first.h, restH);
  const parts: Part[] = [{ ...first, dx: first.w / 2 - w / 2, dy: (h - first.h) / 2 }];
  let dy = (h - restH) / 2;
  for (const one of rest) {
    parts.push({ ...one, dx: w / 2 - restW / 2, dy });
    dy += one.h + PART_GAP;
  }
  return { kind: "box", id: first.id, parts, w, h, rank: 0, level: 0, x: 0, y: 0, seed };
}

function wiresOf(
  links: readonly LinkInput[], vertices: Vertex[], ends: ReadonlyMap<string, { vertex: number; part: Part }>,
  inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null, sides: ReadonlySet<number>, aside: ReadonlySet<number>,
): Wire[] {
  const ports = new Map<string, number>();
  const port = (kind: "in" | "out", source: string): { vertex: number; part: null } => {
    const key = `${kind === "in" ? "<" : ">"}${source}`;
    let vertex = ports.get(key);
    if (vertex === undefined) {
      vertex = vertices.length;
      ports.set(key, vertex);
      vertices.push({ kind, id: source, parts: [], w: 4, h: 0, rank: 0, level: 0, x: 0, y: 0, seed: before?.order.get(key) ?? NaN });
    }
    return { vertex, part: null };
  };
  const end = (box: string): { vertex: number; part: Part } => {
    const found = ends.get(box);
    if (!found) throw new Error(`layout: a link names "${box}", which is not in its scope`);
    return found;
  };
  // What stands aside is joined by stubs: a port for it alone would lead nowhere.
  const isDrawn = (box: string | null): boolean => box === null || !aside.has(end(box).vertex);
  return links.filter(({ from, to }) => isDrawn(from) && isDrawn(to)).map((link): Wire => {
    const from = link.from === null ? port("in", link.source) : end(link.from);
    const to = link.to === null ? port("out", link.source) : end(link.to);
    const isSide = sides.has(from.vertex) || sides.has(to.vertex);
    const isLong = isOfGradientsOnly(vertices, from, to, sides);
    return {
      link, from: from.vertex, to: to.vertex, path: [], isMain: !isSide && isBase(vertices, from) && isBase(vertices, to),
      course: isLong ? "stub" : isSide ? "side" : link.isReturn ? "back" : "down", fromPart: from.part, toPart: to.part,
      fromDx: (from.part?.dx ?? 0) + portDx(inside.get(link.from ?? ""), "outPorts", link.source),
      toDx: (to.part?.dx ?? 0) + portDx(inside.get(link.to ?? ""), "inPorts", link.source),
    };
  });
}

/**
 * Whether a line only says what each layer's gradient says, too: that it reads what the layer reads, or that the optimizer
 * updates what the layer holds. Of such, level lines from a box to its own gradient tell enough.
 */
function isOfGradientsOnly(
  vertices: readonly Vertex[], from: { vertex: number; part: Part | null }, to: { vertex: number; part: Part | null }, sides: ReadonlySet<number>,
): boolean {
  if (from.vertex === to.vertex || !isBase(vertices, from)) return false;
  const hasGradient = (vertices[from.vertex]?.parts.length ?? 0) > 1;
  return !isBase(vertices, to) || (sides.has(to.vertex) && hasGradient && from.part !== null);
}

/** Whether a line ends at a port, or at the box that others stand beside. */
function isBase(vertices: readonly Vertex[], { vertex, part }: { vertex: number; part: Part | null }): boolean {
  return part === null || vertices[vertex]?.parts[0] === part;
}

function portDx(inside: ScopeLayout | undefined, wall: "inPorts" | "outPorts", source: string): number {
  const x = inside?.[wall].get(source);
  return inside && x !== undefined ? x - inside.w / 2 : 0;
}

/** The upper and the lower end of a line that runs from rank to rank. */
export function upperOf({ course, from, to, fromDx, toDx, fromPart, toPart }: Wire): { i: number; dx: number; part: Part | null } {
  return course === "up" ? { i: to, dx: toDx, part: toPart } : { i: from, dx: fromDx, part: fromPart };
}

export function lowerOf({ course, from, to, fromDx, toDx, fromPart, toPart }: Wire): { i: number; dx: number; part: Part | null } {
  return course === "up" ? { i: from, dx: fromDx, part: fromPart } : { i: to, dx: toDx, part: toPart };
}

/** Upper and lower edge of a vertex's part; of a port, its own. */
export const topOf = ({ y }: Vertex, part: Part | null): number => y + (part?.dy ?? 0);
export const bottomOf = ({ y, h }: Vertex, part: Part | null): number => (part ? y + part.dy + part.h : y + h);

/** Reads an array at an index that is known to be there. */
export function at<T>(list: readonly T[], index: number): T {
  const value = list[index];
  if (value === undefined) throw new Error(`layout: no element ${index} of ${list.length}`);
  return value;
}
