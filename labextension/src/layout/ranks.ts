/** Ranks: data runs downwards, and boxes stand near what they feed. Iterative throughout. */
import { at, type Drawing, type Vertex, type Wire } from "./drawing.js";

/** Rows wider than this are wrapped into several. */
const WIDEST_ROW = 24;

export interface Neighbours {
  readonly into: readonly Wire[][];
  readonly out: readonly Wire[][];
}

export function neighbours(drawing: Drawing): Neighbours {
  const into: Wire[][] = drawing.vertices.map(() => []);
  const out: Wire[][] = drawing.vertices.map(() => []);
  for (const wire of drawing.wires) {
    if (wire.isBack) continue;
    at(out, wire.from).push(wire);
    at(into, wire.to).push(wire);
  }
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
        wire.isBack = true;
      } else if (!state[wire.to]) {
        state[wire.to] = 1;
        way.push(wire.to);
      }
    }
  }
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
  const pull = (n: number): number => (at(vertices, n).kind === "box" ? 1 : 0.5);
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

/** Splits rows that are too wide; returns the number of ranks and which of them continue a row. */
export function wrapRows(drawing: Drawing, ranks: number): { ranks: number; isRow: boolean[] } {
  const members: Vertex[][] = Array.from({ length: ranks }, () => []);
  const aside = new Set(drawing.aside);
  drawing.vertices.forEach((vertex, i) => {
    if (!aside.has(i)) members[vertex.rank]?.push(vertex);
  });
  const isRow: boolean[] = [];
  for (const row of members) {
    const boxes = row.filter((vertex) => vertex.kind === "box").length;
    const isWide = boxes > WIDEST_ROW;
    const perRow = isWide ? Math.min(WIDEST_ROW, Math.max(8, Math.ceil(Math.sqrt(boxes * 1.8)))) : Infinity;
    const base = isRow.length;
    row.forEach((vertex, k) => {
      vertex.rank = base + (vertex.kind === "box" && isWide ? Math.floor(k / perRow) : 0);
    });
    const rows = isWide ? Math.ceil(row.length / perRow) : 1;
    for (let k = 0; k < rows; k++) isRow.push(k > 0);
  }
  return { ranks: isRow.length, isRow };
}
