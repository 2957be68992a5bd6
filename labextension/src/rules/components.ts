/** Graphs of numbered vertices as typed arrays: neighbours, strongly connected components, sets that grow together. Pure. */

/** Edges between numbers: from, to, from, to ...; an edge may be told more than once. */
export type Wires = ArrayLike<number>;

/** Where the neighbours of each vertex lie in a list: those of `v` from `starts[v]` on, up to `ends[v]`. */
export interface Neighbours {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly list: Int32Array;
}

/** Neighbours by one end of the edges (0: by where they begin, 1: by where they end), in the order of the edges; each once, none itself. */
export function neighbours(count: number, edges: Wires, end: 0 | 1): Neighbours {
  const starts = new Int32Array(count + 1);
  for (let k = end; k < edges.length; k += 2) starts[edges[k]! + 1]! += 1;
  for (let v = 0; v < count; v++) starts[v + 1]! += starts[v]!;
  const fill = starts.slice(0, count);
  const list = new Int32Array(edges.length >> 1);
  for (let k = 0; k < edges.length; k += 2) list[fill[edges[k + end]!]!++] = edges[k + 1 - end]!;
  return { starts, ends: distinct(count, starts, list), list };
}

/** Leaves each neighbour once, and the vertex itself out; returns where the lists end now. */
function distinct(count: number, starts: Int32Array, list: Int32Array): Int32Array {
  const ends = new Int32Array(count);
  const seenBy = new Int32Array(count).fill(-1);
  for (let v = 0; v < count; v++) {
    let end = starts[v]!;
    seenBy[v] = v;
    for (let k = end; k < starts[v + 1]!; k++) {
      const other = list[k]!;
      if (seenBy[other] === v) continue;
      seenBy[other] = v;
      list[end++] = other;
    }
    ends[v] = end;
  }
  return ends;
}

/** Numbers of the strongly connected components, by Tarjan's algorithm without recursion. */
export function components(count: number, wires: Wires): Int32Array {
  const { starts, ends, list } = neighbours(count, wires, 0);
  const order = new Int32Array(count).fill(-1);
  const low = new Int32Array(count);
  const found = new Int32Array(count).fill(-1);
  const path: number[] = [];
  const calls: number[] = [];
  const next = starts.slice();
  let time = 0;
  let number = 0;
  for (let start = 0; start < count; start++) {
    if (order[start] !== -1) continue;
    calls.push(start);
    while (calls.length > 0) {
      const at = calls[calls.length - 1]!;
      if (order[at] === -1) {
        order[at] = low[at] = time++;
        path.push(at);
      }
      if (next[at]! < ends[at]!) {
        const to = list[next[at]!++]!;
        if (order[to] === -1) calls.push(to);
        else if (found[to] === -1 && order[to]! < low[at]!) low[at] = order[to]!;
        continue;
      }
      calls.pop();
      const above = calls[calls.length - 1];
      if (above !== undefined && low[at]! < low[above]!) low[above] = low[at]!;
      if (low[at] !== order[at]) continue;
      for (let one = path.pop(); one !== undefined; one = path.pop()) {
        found[one] = number;
        if (one === at) break;
      }
      number += 1;
    }
  }
  return found;
}

/** Sets of numbers that grow together. */
export class Joined {
  readonly #up: Int32Array;

  constructor(count: number) {
    this.#up = Int32Array.from({ length: count }, (_, i) => i);
  }

  find(item: number): number {
    const up = this.#up;
    let at = item;
    while (up[at] !== at) at = up[at] = up[up[at]!]!;
    return at;
  }

  link(a: number, b: number): void {
    this.#up[this.find(a)] = this.find(b);
  }

  /** A number for each item, from 0 without a gap, and how many there are. */
  numbers(): [Int32Array, number] {
    const names = new Int32Array(this.#up.length).fill(-1);
    let count = 0;
    const found = names.slice();
    for (let i = 0; i < found.length; i++) {
      const root = this.find(i);
      if (names[root] === -1) names[root] = count++;
      found[i] = names[root]!;
    }
    return [found, count];
  }
}
