/** x and y. In each rank the wished places are met as well as order and distances allow. */
import { at, type Drawing, type Hop, type Vertex } from "./drawing.js";
import type { Net } from "./order.js";
import { GAPS, PULL, SPACE } from "./types.js";

const PASSES = 12;

export function placeX(drawing: Drawing, net: Net, isRow: readonly boolean[]): void {
  const wrapped = net.layers.filter((_, rank) => isRow[rank] || isRow[rank + 1]);
  const inRows = new Set(wrapped.flat().filter((i) => at(drawing.vertices, i).kind === "box"));
  for (const layer of net.layers) pack(drawing, layer);
  for (let pass = 0; pass < PASSES; pass++) {
    const isDown = pass % 2 === 0;
    const layers = isDown ? net.layers : [...net.layers].reverse();
    // The last passes listen to both sides, which takes the remaining bends out.
    const isBoth = pass >= PASSES - 4;
    for (const layer of layers) {
      // The rows of a wrapped rank stay under each other instead of leaning towards their lines.
      const hopsOf = (i: number): Hop[] => inRows.has(i) ? [] : [
        ...(isDown || isBoth ? at(net.up, i) : []), ...(!isDown || isBoth ? at(net.down, i) : []),
      ];
      relax(drawing, layer, hopsOf, inRows);
    }
  }
  round(drawing.vertices);
}

/** First places: side by side around 0. */
function pack(drawing: Drawing, layer: readonly number[]): void {
  let x = 0;
  layer.forEach((i, k) => {
    const vertex = at(drawing.vertices, i);
    if (k > 0) x += distance(at(drawing.vertices, at(layer, k - 1)), vertex);
    vertex.x = x;
  });
  for (const i of layer) at(drawing.vertices, i).x -= x / 2;
}

function relax(
  drawing: Drawing, layer: readonly number[], hopsOf: (i: number) => Hop[], inRows: ReadonlySet<number>,
): void {
  const { vertices } = drawing;
  const wishes = new Float64Array(layer.length);
  const weights = new Float64Array(layer.length);
  const offsets = new Float64Array(layer.length);
  layer.forEach((i, k) => {
    const vertex = at(vertices, i);
    offsets[k] = k > 0 ? (offsets[k - 1] ?? 0) + distance(at(vertices, at(layer, k - 1)), vertex) : 0;
    let sum = 0;
    let weight = 0;
    for (const hop of hopsOf(i)) {
      const isUpper = hop.upper === i;
      const other = at(vertices, isUpper ? hop.lower : hop.upper);
      const shift = isUpper ? hop.lowerDx - hop.upperDx : hop.upperDx - hop.lowerDx;
      sum += hop.weight * (other.x + shift);
      weight += hop.weight;
    }
    wishes[k] = (weight > 0 ? sum / weight : vertex.x) - (offsets[k] ?? 0);
    weights[k] = weight > 0 ? weight : inRows.has(i) ? PULL.inRow : PULL.loose;
  });
  isotonic(wishes, weights);
  layer.forEach((i, k) => (at(vertices, i).x = (wishes[k] ?? 0) + (offsets[k] ?? 0)));
}

/**
 * The nearest non-decreasing sequence in weighted least squares, in place.
 * Source: pool adjacent violators (Ayer et al. 1955).
 */
export function isotonic(values: Float64Array, weights: Float64Array): void {
  const means: number[] = [];
  const sums: number[] = [];
  const sizes: number[] = [];
  for (let k = 0; k < values.length; k++) {
    let mean = values[k] ?? 0;
    let weight = weights[k] ?? 0;
    let size = 1;
    while (means.length > 0 && (means[means.length - 1] ?? 0) > mean) {
      const otherWeight = sums.pop() ?? 0;
      mean = (mean * weight + (means.pop() ?? 0) * otherWeight) / (weight + otherWeight);
      weight += otherWeight;
      size += sizes.pop() ?? 0;
    }
    means.push(mean);
    sums.push(weight);
    sizes.push(size);
  }
  let k = 0;
  means.forEach((mean, pool) => {
    for (let n = sizes[pool] ?? 0; n > 0; n--) values[k++] = mean;
  });
}

/** Least distance between the middles of two neighbours. */
function distance(left: Vertex, right: Vertex): number {
  const isLine = left.kind !== "box" && right.kind !== "box";
  const isMixed = (left.kind === "box") !== (right.kind === "box");
  const gap = isLine ? SPACE.line : isMixed ? SPACE.sibling * GAPS.besideLine : SPACE.sibling;
  return (left.w + right.w) / 2 + gap;
}

function round(vertices: readonly Vertex[]): void {
  for (const vertex of vertices) vertex.x = Math.round(vertex.x);
}

/** Upper edge and height of each rank. */
export interface Band {
  readonly top: number;
  readonly bottom: number;
}

/** Stacks the ranks; a gap that lines cross slantwise is made higher. */
export function placeY(drawing: Drawing, net: Net, hops: readonly Hop[], isRow: readonly boolean[]): Band[] {
  const slant = new Float64Array(net.layers.length);
  for (const hop of hops) {
    const upper = at(drawing.vertices, hop.upper);
    const lower = at(drawing.vertices, hop.lower);
    const dx = Math.abs(upper.x + hop.upperDx - lower.x - hop.lowerDx);
    slant[lower.rank] = Math.max(slant[lower.rank] ?? 0, dx);
  }
  const bands: Band[] = [];
  let y = 0;
  net.layers.forEach((layer, rank) => {
    const members = layer.map((i) => at(drawing.vertices, i));
    const h = members.reduce((most, vertex) => Math.max(most, vertex.h), 0);
    if (rank > 0) y += gapAbove(rank, members, slant[rank] ?? 0, isRow[rank] ?? false, bands);
    for (const vertex of members) vertex.y = Math.round(y + (h - vertex.h) / 2);
    bands.push({ top: y, bottom: y + h });
    y += h;
  });
  return bands;
}

function gapAbove(
  rank: number, members: readonly Vertex[], slant: number, isRow: boolean, bands: readonly Band[],
): number {
  const wider = Math.min(GAPS.mostSlant, slant * GAPS.slantShare);
  const upper = bands[rank - 1];
  const isWall = members.every((vertex) => vertex.kind === "out") || (upper && upper.top === upper.bottom);
  if (isWall) return Math.round(SPACE.rank * GAPS.atWall + wider);
  return Math.round((isRow ? SPACE.row : SPACE.rank) + wider);
}
