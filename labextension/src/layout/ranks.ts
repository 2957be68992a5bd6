/** Ranks: data runs downwards, and boxes stand near what they feed. Iterative throughout. */
import { at, type Drawing, type Vertex, type Wire } from "./drawing.js";
import { PULL } from "./types.js";

/** Lines that pass more ranks than this are stubs. */
const MOST_SPAN = 6;

export interface Neighbours {
  readonly into: readonly Wire[][];
  readonly out: readonly Wire[][];
}

/**
 * One wire for each pair of boxes, in the order of the boxes: however many lines join two, and in whatever order they are
 * told - which changes when one of the two is opened - ranks stay what they are.
 */
export function neighbours(drawing: Drawing): Neighbours {
  const into: Wire[][] = drawing.vertices.map(() => []);
  const out: Wire[][] = drawing.vertices.map(() => []);
  const pairs = new Set<number>();
  for (const wire of drawing.wires) {
    const pair = wire.from * drawing.vertices.length + wire.to;
    if (wire.course !== "down" || !wire.isMain || pairs.has(pair)) continue;
    pairs.add(pair);
    at(out, wire.from).push(wire);
    at(into, wire.to).push(wire);
  }
  for (const list of out) list.sort((a, b) => a.to - b.to);
  for (const list of into) list.sort((a, b) => a.from - b.from);
  return { into, out };
}

/** Marks the wires that close a cycle: those that lead to a vertex still on the way. */
export function breakCycles(drawing: Drawing): void {
  const { out } = neighbours(drawing);
  const state = new Uint8Array(drawing.vertices.length);
  const next = new Uint32Array(drawing.vertices.length);
  for (let start = 0; start < state.length; start++) {
    if (state[start]) continue;
    const way = [start];
    state[start] = 1;
    while (way.length > 0) {
      const here = at(way, way.length - 1);
      const tried = next[here] ?? 0;
      const wire = out[here]?.[tried];
      next[here] = tried + 1;
      if (!wire) {
        state[here] = 2;
        way.pop();
      } else if (state[wire.to] === 1) {
        markBack(drawing, wire);
      } else if (!state[wire.to]) {
        state[wire.to] = 1;
        way.push(wire.to);
      }
    }
  }
}

/** With all that join the same two. */
function markBack(drawing: Drawing, { from, to }: Wire): void {
  for (const wire of drawing.wires) if (wire.from === from && wire.to === to && wire.isMain && wire.course === "down") wire.course = "back";
}

/** Longest path from above, then everything that gives more than it takes moves down. */
export function assignRanks(drawing: Drawing): number {
  const { vertices } = drawing;
  const near = neighbours(drawing);
  const order = topological(drawing, near);
  const first = vertices.some((v) => v.kind === "in") ? 1 : 0;
  for (const i of order) {
    const vertex = at(vertices, i);
    vertex.rank = vertex.kind === "in" ? 0 : first;
    for (const wire of at(near.into, i)) {
      vertex.rank = Math.max(vertex.rank, at(vertices, wire.from).rank + 1);
    }
  }
  for (const i of [...order].reverse()) sink(vertices, i, near);
  return placeOutPorts(vertices);
}

function topological(drawing: Drawing, near: Neighbours): number[] {
  const waiting = near.into.map((wires) => wires.length);
  const order = drawing.vertices.map((_, i) => i).filter((i) => waiting[i] === 0);
  for (let head = 0; head < order.length; head++) {
    for (const wire of at(near.out, at(order, head))) {
      const left = at(waiting, wire.to) - 1;
      waiting[wire.to] = left;
      if (left === 0) order.push(wire.to);
    }
  }
  return order;
}

function sink(vertices: readonly Vertex[], i: number, near: Neighbours): void {
  const vertex = at(vertices, i);
  const out = at(near.out, i);
  if (vertex.kind !== "box" || out.length === 0) return;
  // A port pulls less than a box: what comes from outside may come by a long line.
  const pull = (n: number): number => (at(vertices, n).kind === "box" ? 1 : PULL.port);
  const down = out.reduce((sum, wire) => sum + pull(wire.to), 0);
  const up = at(near.into, i).reduce((sum, wire) => sum + pull(wire.from), 0);
  if (down <= up) return;
  let lowest = Infinity;
  for (const wire of out) {
    const to = at(vertices, wire.to);
    if (to.kind === "box") lowest = Math.min(lowest, to.rank - 1);
  }
  if (lowest < Infinity) vertex.rank = Math.max(vertex.rank, lowest);
}

function placeOutPorts(vertices: readonly Vertex[]): number {
  let last = 0;
  for (const vertex of vertices) if (vertex.kind !== "out") last = Math.max(last, vertex.rank);
  const outs = vertices.filter((vertex) => vertex.kind === "out");
  for (const vertex of outs) vertex.rank = last + 1;
  return last + (outs.length > 0 ? 2 : 1);
}

/** Lines that pass many ranks are not drawn; to be asked before ranks are wrapped. */
export function cutLongLines(drawing: Drawing): void {
  const rank = (i: number): number => at(drawing.vertices, i).rank;
  for (const wire of drawing.wires) {
    if (wire.course === "down" && Math.abs(rank(wire.to) - rank(wire.from)) > MOST_SPAN) wire.course = "stub";
  }
}

/** Says of each line how it runs, once the ranks are known: with the ranks, against them, or along one. */
export function chooseCourses(drawing: Drawing): void {
  const rank = (i: number): number => at(drawing.vertices, i).rank;
  for (const wire of drawing.wires) {
    if (wire.course !== "down") continue;
    const span = rank(wire.to) - rank(wire.from);
    wire.course = span > 0 ? "down" : span === 0 ? "level" : "up";
  }
}

/** Splits ranks of more boxes than `widest` into rows; returns the number of ranks and which of them continue one. */
export function wrapRows(drawing: Drawing, ranks: number, widest: number): { ranks: number; isRow: boolean[] } {
  const members: Vertex[][] = Array.from({ length: ranks }, () => []);
  for (const i of inRanks(drawing)) {
    const vertex = at(drawing.vertices, i);
    vertex.level = vertex.rank;
    members[vertex.rank]?.push(vertex);
  }
  const isRow: boolean[] = [];
  for (const row of members) {
    const boxes = row.filter((vertex) => vertex.kind === "box");
    const rows = Math.ceil(boxes.length / widest);
    const perRow = Math.ceil(boxes.length / Math.max(1, rows));
    const base = isRow.length;
    for (const vertex of row) vertex.rank = base;
    boxes.sort((a, b) => (Number.isFinite(a.seed) && Number.isFinite(b.seed) ? a.seed - b.seed : 0));
    boxes.forEach((vertex, k) => (vertex.rank = base + Math.floor(k / perRow)));
    for (let k = 0; k < Math.max(1, rows); k++) isRow.push(k > 0);
  }
  return { ranks: isRow.length, isRow };
}

/** The vertices that stand in ranks. */
export function inRanks(drawing: Drawing): number[] {
  const others = new Set([...drawing.aside, ...drawing.sides.flat()]);
  return drawing.vertices.map((_, i) => i).filter((i) => !others.has(i));
}
