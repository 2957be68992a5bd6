/** The order within each rank: sweeps up and down, each vertex to the middle of its neighbours. */
import { at, type Drawing, type Hop } from "./drawing.js";
import { inRanks } from "./ranks.js";
import { SEARCH } from "./types.js";

export interface Net {
  /** Vertices of each rank, from left to right. */
  readonly layers: number[][];
  /** Hops that end at a vertex from above, and that start from it. */
  readonly up: readonly Hop[][];
  readonly down: readonly Hop[][];
}

export function makeNet(drawing: Drawing, hops: readonly Hop[], ranks: number): Net {
  const layers: number[][] = Array.from({ length: ranks }, () => []);
  for (const i of inRanks(drawing)) at(layers, at(drawing.vertices, i).rank).push(i);
  const up: Hop[][] = drawing.vertices.map(() => []);
  const down: Hop[][] = drawing.vertices.map(() => []);
  for (const hop of hops) {
    at(up, hop.lower).push(hop);
    at(down, hop.upper).push(hop);
  }
  return { layers, up, down };
}

/** Orders all layers in place. */
export function orderLayers(drawing: Drawing, net: Net): void {
  const seeded = drawing.vertices.filter((v) => Number.isFinite(v.seed)).length;
  const real = net.layers.reduce((sum, layer) => sum + layer.filter((i) => at(drawing.vertices, i).kind !== "point").length, 0);
  if (seeded > SEARCH.keptShare * real) keepOrder(drawing, net);
  else sweep(drawing, net);
}

/** What had a place keeps it; the rest goes between its neighbours. */
function keepOrder(drawing: Drawing, net: Net): void {
  const place = drawing.vertices.map((vertex) => vertex.seed);
  for (let pass = 0; pass < 8; pass++) {
    for (let i = 0; i < place.length; i++) {
      if (Number.isFinite(at(drawing.vertices, i).seed)) continue;
      const mean = meanPlace([...at(net.up, i), ...at(net.down, i)], i, place);
      if (Number.isFinite(mean)) place[i] = mean;
    }
  }
  const known = place.map((x) => (Number.isFinite(x) ? x : 0));
  for (const layer of net.layers) layer.sort((a, b) => at(known, a) - at(known, b));
}

function meanPlace(hops: readonly Hop[], i: number, place: readonly number[]): number {
  let sum = 0;
  let count = 0;
  for (const hop of hops) {
    const x = place[hop.upper === i ? hop.lower : hop.upper] ?? NaN;
    if (!Number.isFinite(x)) continue;
    sum += x;
    count += 1;
  }
  return count > 0 ? sum / count : NaN;
}

function sweep(drawing: Drawing, net: Net): void {
  const place = new Float64Array(drawing.vertices.length);
  for (const layer of net.layers) number(layer, place);
  let hops = 0;
  for (const list of net.up) hops += list.length;
  const sweeps = Math.max(SEARCH.leastSweeps, Math.min(SEARCH.mostSweeps, Math.round(SEARCH.steps / (hops + place.length + 1))));
  let best = net.layers.map((layer) => [...layer]);
  let fewest = Infinity;
  for (let pass = 0; pass < sweeps; pass++) {
    const isDown = pass % 2 === 0;
    const layers = isDown ? net.layers : [...net.layers].reverse();
    for (const layer of layers) settle(layer, isDown ? net.up : net.down, place);
    const crossings = countCrossings(net, fewest);
    if (crossings < fewest) {
      fewest = crossings;
      best = net.layers.map((layer) => [...layer]);
    }
    if (fewest === 0) break;
  }
  best.forEach((layer, rank) => at(net.layers, rank).splice(0, layer.length, ...layer));
}

/** Places are spread over 0..1 so that layers of different lengths can be compared. */
function number(layer: readonly number[], place: Float64Array): void {
  layer.forEach((i, k) => (place[i] = (k + 0.5) / layer.length));
}

function settle(layer: number[], hops: readonly Hop[][], place: Float64Array): void {
  const wish = new Map<number, number>();
  for (const i of layer) {
    let sum = 0;
    let weight = 0;
    for (const hop of at(hops, i)) {
      // The offset of a port breaks the tie between lines of one wide box.
      const other = hop.upper === i ? hop.lower : hop.upper;
      const dx = hop.upper === i ? hop.lowerDx : hop.upperDx;
      sum += (place[other] ?? 0) + dx * 1e-6;
      weight += 1;
    }
    wish.set(i, weight > 0 ? sum / weight : (place[i] ?? 0));
  }
  layer.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0));
  number(layer, place);
}

/** Counts crossings between all neighbouring ranks, by insertion into a binary indexed tree. */
function countCrossings(net: Net, enough: number): number {
  let total = 0;
  for (let rank = 1; rank < net.layers.length && total < enough; rank++) {
    const upper = at(net.layers, rank - 1);
    const lower = at(net.layers, rank);
    const slot = new Map(upper.map((i, k) => [i, k]));
    const tree = new Uint32Array(upper.length + 1);
    let seen = 0;
    for (const i of lower) {
      const ends = at(net.up, i).map((hop) => slot.get(hop.upper) ?? 0);
      for (const end of ends) total += seen - sumTo(tree, end + 1);
      for (const end of ends) addAt(tree, end + 1);
      seen += ends.length;
    }
  }
  return total;
}

function sumTo(tree: Uint32Array, end: number): number {
  let sum = 0;
  for (let k = end; k > 0; k -= k & -k) sum += tree[k] ?? 0;
  return sum;
}

function addAt(tree: Uint32Array, slot: number): void {
  for (let k = slot; k < tree.length; k += k & -k) tree[k] = (tree[k] ?? 0) + 1;
}
