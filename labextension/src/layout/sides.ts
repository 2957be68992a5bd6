/**
 * Side columns: gradients that stand beside nothing, optimizers. Each box stands level with what it is joined to, and
 * lines run level, through one lane for each box, in the order of the boxes. Pure.
 */
import { isotonic } from "./coordinates.js";
import { at, bottomOf, topOf, type Drawing, type Part, type Vertex, type Wire } from "./drawing.js";

const LANE = 9;
const GAP = 16;
/** From the main drawing to the first lane. */
const MARGIN = 16;

export interface Column {
  readonly left: number;
  /** x of the lane of each of its boxes. */
  readonly lanes: ReadonlyMap<number, number>;
  readonly boxes: readonly number[];
}

/** Width that the columns take beside the main drawing. */
export function sidesWidth({ vertices, sides }: Drawing): number {
  return sides.reduce((sum, column) => sum + 2 * MARGIN + LANE * column.length + widest(vertices, column), 0);
}

export function sidesHeight({ vertices, sides }: Drawing): number {
  return Math.max(0, ...sides.map((column) => column.reduce((sum, i) => sum + at(vertices, i).h + GAP, -GAP)));
}

function widest(vertices: readonly Vertex[], column: readonly number[]): number {
  return column.reduce((most, i) => Math.max(most, at(vertices, i).w), 0);
}

/** Puts the columns on the right of `right`. */
export function placeSides(drawing: Drawing, right: number, top: number, bottom: number): Column[] {
  let left = right;
  return drawing.sides.map((column) => {
    const order = byNeighbours(drawing, column);
    const lanes = new Map(order.map((i, k) => [i, left + MARGIN + LANE * (order.length - 1 - k)]));
    left += 2 * MARGIN + LANE * column.length;
    placeColumn(drawing, order, left, top, bottom);
    const made = { left, lanes, boxes: order };
    left += widest(drawing.vertices, column);
    return made;
  });
}

/** In the order of the ranks that they are joined to, which does not change when a box grows. */
function byNeighbours(drawing: Drawing, column: readonly number[]): number[] {
  const inColumn = new Set(column);
  const rank = new Map(column.map((i) => {
    const others = drawing.wires.flatMap(({ from, to, course }) => (course !== "side" ? [] : from === i ? [to] : to === i ? [from] : []));
    const ranks = [...new Set(others)].filter((other) => !inColumn.has(other)).map((other) => at(drawing.vertices, other).rank);
    return [i, ranks.length > 0 ? ranks.reduce((sum, one) => sum + one, 0) / ranks.length : Infinity];
  }));
  const place = new Map(column.map((i, k) => [i, k]));
  return [...column].sort((a, b) => ((rank.get(a) ?? 0) - (rank.get(b) ?? 0) || 0) || (place.get(a) ?? 0) - (place.get(b) ?? 0));
}

/** Each level with its neighbours, as well as order and distances allow. */
function placeColumn(drawing: Drawing, order: readonly number[], left: number, top: number, bottom: number): void {
  const offsets: number[] = [];
  let y = 0;
  for (const i of order) {
    offsets.push(y);
    y += at(drawing.vertices, i).h + GAP;
  }
  const wishes = Float64Array.from(order, (i, k) => wish(drawing, i, (top + bottom) / 2) - (offsets[k] ?? 0));
  isotonic(wishes, new Float64Array(order.length).fill(1));
  const high = y - GAP;
  const [least, most] = [top, Math.max(top, bottom - high)];
  order.forEach((i, k) => {
    const vertex = at(drawing.vertices, i);
    vertex.x = Math.round(left + vertex.w / 2);
    vertex.y = Math.round(Math.min(most, Math.max(least, wishes[k] ?? 0)) + (offsets[k] ?? 0));
  });
}

function wish(drawing: Drawing, i: number, other: number): number {
  const box = at(drawing.vertices, i);
  const middles = drawing.wires.flatMap((wire) => {
    if (wire.course !== "side") return [];
    const [end, part] = wire.from === i ? [wire.to, wire.toPart] : wire.to === i ? [wire.from, wire.fromPart] : [-1, null];
    const vertex = drawing.vertices[end];
    return vertex?.kind === "box" && vertex.y !== 0 ? [middleOf(vertex, part)] : [];
  });
  return (middles.length > 0 ? middles.reduce((sum, y) => sum + y, 0) / middles.length : other) - box.h / 2;
}

const middleOf = (vertex: Vertex, part: Part | null): number => (topOf(vertex, part) + bottomOf(vertex, part)) / 2;

/** Routes of the lines to and from side boxes; those whose way is not free become stubs. */
export function routeSides(drawing: Drawing, columns: readonly Column[], isFree: (i: number, part: Part) => boolean): Map<string, number[]> {
  const columnOf = new Map(columns.flatMap((column, k) => column.boxes.map((i) => [i, k] as const)));
  const routes = new Map<string, number[]>();
  const degree = new Map<number, number>();
  for (const wire of drawing.wires) {
    if (wire.course !== "side") continue;
    const route = sideRoute(drawing, columns, columnOf, wire, isFree, degree);
    if (route) routes.set(wire.link.id, route);
    else wire.course = "stub";
  }
  return routes;
}

function sideRoute(
  drawing: Drawing, columns: readonly Column[], columnOf: ReadonlyMap<number, number>, wire: Wire,
  isFree: (i: number, part: Part) => boolean, degree: Map<number, number>,
): number[] | null {
  const { from, to, fromPart, toPart } = wire;
  if (!fromPart || !toPart) return null;
  const [a, b] = [columnOf.get(from) ?? -1, columnOf.get(to) ?? -1];
  // From column to column, and from the main drawing to the first one: what lies between is free.
  const isOnward = Math.abs(a - b) === 1;
  const outer = b > a ? to : from;
  const [inner, innerPart] = b > a ? [from, fromPart] : [to, toPart];
  if (a === b) return underEachOther(drawing, columns[a], wire);
  if (!isOnward || (Math.min(a, b) < 0 && !isFree(inner, innerPart))) return null;
  const lane = columns[Math.max(a, b)]?.lanes.get(outer);
  if (lane === undefined) return null;
  const nth = degree.get(outer) ?? 0;
  degree.set(outer, nth + 1);
  const [x0, y0] = [edgeX(drawing, from, fromPart, b > a), middleOf(at(drawing.vertices, from), fromPart)];
  const [x1, y1] = [edgeX(drawing, to, toPart, b < a), middleOf(at(drawing.vertices, to), toPart)];
  return y0 === y1 ? [x0, y0, x1, y1] : [x0, y0, lane, y0, lane, y1, x1, y1];
}

/** Only neighbours in a column are joined by a line. */
function underEachOther(drawing: Drawing, column: Column | undefined, { from, to, fromPart, toPart }: Wire): number[] | null {
  if (!column || Math.abs(column.boxes.indexOf(from) - column.boxes.indexOf(to)) !== 1) return null;
  const [a, b] = [at(drawing.vertices, from), at(drawing.vertices, to)];
  return a.y < b.y ? [a.x, bottomOf(a, fromPart), b.x, topOf(b, toPart)] : [a.x, topOf(a, fromPart), b.x, bottomOf(b, toPart)];
}

function edgeX(drawing: Drawing, i: number, part: Part, isRight: boolean): number {
  const middle = at(drawing.vertices, i).x + part.dx;
  return isRight ? middle + part.w / 2 : middle - part.w / 2;
}

