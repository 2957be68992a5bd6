/**
 * Strips: a tall drawing is cut between ranks, and the parts stand side by side. Lines that pass a cut run under
 * their strip, up between the two, and in from above. Pure.
 */
import type { Band } from "./coordinates.js";
import { at, lowerOf, upperOf, type Drawing, type Hop } from "./drawing.js";
import type { Net } from "./order.js";
import { SEARCH, SPACE } from "./types.js";

/** Between lines that pass a cut side by side. */
export const LANE = 8;
/** From the strip to the first lane. */
export const LANE_MARGIN = 12;

export interface Strip {
  /** Its first rank, and the one after its last. */
  readonly first: number;
  readonly end: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** The upper ends of hops that lead over the cut before it, from the right to the left. */
  readonly entering: readonly (readonly [vertex: number, dx: number])[];
}

/** Ranks at which strips begin: `count` strips of about the same height, cut where few lines pass. */
export function cutRanks(bands: readonly Band[], crossings: readonly number[], isRow: readonly boolean[], count: number): number[] {
  const total = (bands[bands.length - 1]?.bottom ?? 0) - (bands[0]?.top ?? 0);
  const starts = [0];
  for (let k = 1; k < count; k++) {
    const wanted = (bands[0]?.top ?? 0) + (total * k) / count;
    let best = -1;
    let least = Infinity;
    for (let rank = (starts[starts.length - 1] ?? 0) + 1; rank < bands.length; rank++) {
      const band = at(bands, rank);
      if (isRow[rank] || band.top === band.bottom) continue;
      const off = Math.abs(band.top - wanted) / (total / count);
      const cost = off * off * SEARCH.offCut + Math.max(0, (crossings[rank] ?? 0) - 1) * SEARCH.overCut;
      if (cost < least) [best, least] = [rank, cost];
    }
    if (best > 0) starts.push(best);
  }
  return starts;
}

/** Ranks before and after a cut between which lines are drawn over it. */
const NEAR_CUT = 2;

/** Lines over a cut are drawn if they begin and end near it; others become stubs. */
export function cutFarLines(drawing: Drawing, starts: readonly number[]): void {
  for (const wire of drawing.wires) {
    if (wire.course !== "down" && wire.course !== "up") continue;
    const [from, to] = [at(drawing.vertices, upperOf(wire).i).rank, at(drawing.vertices, lowerOf(wire).i).rank];
    const cuts = starts.filter((start) => from < start && start <= to);
    const isNear = cuts.every((cut) => cut - from <= NEAR_CUT && to - cut < NEAR_CUT);
    if (cuts.length > 1 || !isNear) wire.course = "stub";
  }
}

/** The net without the hops over cuts: each strip is placed by itself. */
export function withoutCuts(drawing: Drawing, net: Net, starts: readonly number[]): Net {
  const cuts = new Set(starts.slice(1));
  const stays = (hop: Hop): boolean => !cuts.has(at(drawing.vertices, hop.lower).rank);
  return cuts.size === 0 ? net : { layers: net.layers, up: net.up.map((hops) => hops.filter(stays)), down: net.down.map((hops) => hops.filter(stays)) };
}

/** For each rank, how many lines pass from the rank before. */
export function crossingsOf(drawing: Drawing, hops: readonly Hop[], ranks: number): number[] {
  const found = Array.from({ length: ranks }, () => new Set<string>());
  for (const hop of hops) found[at(drawing.vertices, hop.lower).rank]?.add(`${hop.upper},${hop.upperDx}`);
  return found.map((set) => set.size);
}

/** The strips that begin at the given ranks, where the drawing stands now. */
export function stripsOf(
  drawing: Drawing, layers: readonly (readonly number[])[], bands: readonly Band[], hops: readonly Hop[], starts: readonly number[],
): Strip[] {
  return starts.map((first, k): Strip => {
    const end = starts[k + 1] ?? bands.length;
    const members = layers.slice(first, end).flat().map((i) => at(drawing.vertices, i));
    const entering = k === 0 ? [] : enteringAt(drawing, hops, first);
    return {
      first, end, entering, top: bands[first]?.top ?? 0, bottom: bands[end - 1]?.bottom ?? 0,
      left: members.reduce((least, v) => Math.min(least, v.x - v.w / 2), Infinity),
      right: members.reduce((most, v) => Math.max(most, v.x + v.w / 2), -Infinity),
    };
  });
}

function enteringAt(drawing: Drawing, hops: readonly Hop[], rank: number): (readonly [number, number])[] {
  const found = new Map<string, readonly [number, number]>();
  for (const hop of hops) {
    if (at(drawing.vertices, hop.lower).rank === rank) found.set(`${hop.upper},${hop.upperDx}`, [hop.upper, hop.upperDx]);
  }
  const x = ([i, dx]: readonly [number, number]): number => at(drawing.vertices, i).x + dx;
  return [...found.values()].sort((a, b) => x(b) - x(a));
}

/** Width and height of the strips side by side. */
export function stripsSize(strips: readonly Strip[]): { w: number; h: number } {
  let w = 0;
  let h = 0;
  strips.forEach((strip, k) => {
    w += strip.right - strip.left + (k > 0 ? gutter(strip) : 0);
    h = Math.max(h, strip.bottom - strip.top + lanesHigh(strip) + lanesHigh(strips[k + 1]));
  });
  return { w, h };
}

/** Width between a strip and the one before. */
function gutter({ entering }: Strip): number {
  return 2 * SPACE.sibling + LANE * Math.max(0, entering.length - 1);
}

/** Height of the lines that enter a strip from above, or leave the one before below. */
function lanesHigh(strip: Strip | undefined): number {
  return strip && strip.entering.length > 0 ? LANE_MARGIN + LANE * (strip.entering.length - 1) + 6 : 0;
}

/** Moves the strips side by side, with the bands; returns them as they stand then. */
export function placeStrips(drawing: Drawing, layers: readonly (readonly number[])[], bands: Band[], strips: readonly Strip[]): Strip[] {
  let left = 0;
  const under = Math.max(0, ...strips.map(lanesHigh));
  return strips.map((strip, k) => {
    if (k > 0) left += gutter(strip);
    const dx = Math.round(left - strip.left);
    // All strips begin at one height, below the lines that enter from above.
    const dy = Math.round(under - strip.top);
    for (let rank = strip.first; rank < strip.end; rank++) {
      for (const i of layers[rank] ?? []) {
        at(drawing.vertices, i).x += dx;
        at(drawing.vertices, i).y += dy;
      }
      const band = at(bands, rank);
      bands[rank] = { top: band.top + dy, bottom: band.bottom + dy };
    }
    left += strip.right - strip.left;
    return { ...strip, left: strip.left + dx, right: strip.right + dx, top: strip.top + dy, bottom: strip.bottom + dy };
  });
}

/** The way of a line over the cut before a strip: x, y, x, y ... from the end of the one to the beginning of the other. */
export function detour(before: Strip, strip: Strip, [from, dx]: readonly [number, number], x0: number, x1: number): number[] {
  const n = strip.entering.length;
  const lane = Math.max(0, strip.entering.findIndex(([i, d]) => i === from && d === dx));
  const below = before.bottom + LANE_MARGIN + LANE * lane;
  const between = before.right + SPACE.sibling + LANE * lane;
  const above = strip.top - LANE_MARGIN - LANE * (n - 1 - lane);
  return [x0, below, between, below, between, above, x1, above];
}
