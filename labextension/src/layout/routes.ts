/**
 * The routes of lines. A route is x, y, x, y ...; between points that share an x or a y the line is
 * straight, between others it swings with upright ends (`render/trace.ts` draws it so).
 */
import { at, bottomOf, lowerOf, topOf, upperOf, type Drawing, type Part, type Vertex, type Wire } from "./drawing.js";
import type { Band } from "./coordinates.js";
import { detour, type Strip } from "./strips.js";
import { DETOUR, SPACE } from "./types.js";

/** Distance between the ends of lines on a box's upper edge, at most. */
const END_GAP = 16;
/** Lines to the side keep this far from a box's corners. */
const CORNER = 8;
/** Distance between lines that run back. */
const LANE_GAP = 8;

export interface Places {
  readonly bands: readonly Band[];
  readonly strips: readonly Strip[];
}

/** Link id -> route, relative to the drawing. What would run far around becomes a stub. */
export function routeAll(drawing: Drawing, places: Places): Map<string, number[]> {
  const ends = spreadEnds(drawing);
  const routes = new Map<string, number[]>();
  const lanes = new Map<string, number>();
  for (const wire of drawing.wires) {
    const route = wire.course === "back" ? backRoute(drawing, wire, places, laneOf(wire, lanes))
      : wire.course === "level" ? levelRoute(drawing, wire)
      : wire.course === "down" || wire.course === "up" ? rankRoute(drawing, wire, places, ends) : null;
    if (route) routes.set(wire.link.id, route);
    else if (wire.course !== "side") wire.course = "stub";
  }
  return routes;
}

/** Lines at a box's upper edge stand side by side, in the order of where they come from. */
function spreadEnds(drawing: Drawing): Map<string, number> {
  const into = new Map<string, { part: Part; at: Map<string, number> }>();
  for (const wire of drawing.wires) {
    const before = wire.path[wire.path.length - 2];
    const { i, part, dx } = lowerOf(wire);
    if (before === undefined || !part || dx !== part.dx) continue;
    const key = `${i},${part.id}`;
    const known = into.get(key) ?? { part, at: new Map<string, number>() };
    const dxBefore = wire.path.length === 2 ? upperOf(wire).dx : 0;
    known.at.set(endKey(wire), at(drawing.vertices, before).x + dxBefore);
    into.set(key, known);
  }
  const ends = new Map<string, number>();
  for (const { part, at: befores } of into.values()) {
    if (befores.size < 2) continue;
    const sorted = [...befores].sort((a, b) => a[1] - b[1]);
    const gap = Math.min(END_GAP, (part.w * DETOUR.endsShare) / (sorted.length - 1));
    sorted.forEach(([key], k) => ends.set(key, (k - (sorted.length - 1) / 2) * gap));
  }
  return ends;
}

function endKey(wire: Wire): string {
  const { i, part } = lowerOf(wire);
  return `${wire.path[wire.path.length - 2]},${wire.path.length === 2 ? upperOf(wire).dx : 0},${i},${part?.id},${wire.course}`;
}

/** From rank to rank, over cuts by a detour; against the ranks the same way backwards. */
function rankRoute(drawing: Drawing, wire: Wire, places: Places, ends: ReadonlyMap<string, number>): number[] {
  const [upper, lower] = [upperOf(wire), lowerOf(wire)];
  const route: number[] = [];
  const last = wire.path.length - 1;
  wire.path.forEach((i, k) => {
    const vertex = at(drawing.vertices, i);
    const band = at(places.bands, vertex.rank);
    const x = vertex.x + (k === 0 ? upper.dx : k === last ? lower.dx + (ends.get(endKey(wire)) ?? 0) : 0);
    const cut = k > 0 ? cutBetween(drawing, at(wire.path, k - 1), i, places) : null;
    if (cut) route.push(...detour(cut[0], cut[1], [at(wire.path, k - 1), k === 1 ? upper.dx : 0], route[route.length - 2] ?? x, x));
    push(route, x, k === 0 ? bottomOf(vertex, upper.part) : band.top);
    push(route, x, k === last ? topOf(vertex, lower.part) : band.bottom);
  });
  return wire.course === "up" ? reversed(route) : route;
}

function stripAt({ strips }: Places, rank: number): number {
  return strips.findIndex(({ first, end }) => rank >= first && rank < end);
}

function cutBetween(drawing: Drawing, a: number, b: number, places: Places): readonly [Strip, Strip] | null {
  const [k, l] = [a, b].map((i) => stripAt(places, at(drawing.vertices, i).rank));
  const [before, strip] = [places.strips[k ?? 0], places.strips[l ?? 0]];
  return k !== l && before && strip ? [before, strip] : null;
}

function reversed(route: readonly number[]): number[] {
  const found: number[] = [];
  for (let k = route.length - 2; k >= 0; k -= 2) found.push(route[k] ?? 0, route[k + 1] ?? 0);
  return found;
}

/** Between parts of one vertex straight across; between vertices of a rank below them. */
function levelRoute(drawing: Drawing, wire: Wire): number[] | null {
  const { from, to, fromPart, toPart, fromDx, toDx } = wire;
  const [a, b] = [at(drawing.vertices, from), at(drawing.vertices, to)];
  if (!fromPart || !toPart) return null;
  if (from === to) return withinVertex(a, fromPart, toPart);
  const [x0, x1] = [a.x + fromDx, b.x + toDx];
  const below = Math.max(a.y + a.h, b.y + b.h) + DETOUR.below;
  return [x0, bottomOf(a, fromPart), x0, below, x1, below, x1, bottomOf(b, toPart)];
}

function withinVertex(vertex: Vertex, from: Part, to: Part): number[] {
  if (from.dx === to.dx) {
    const [x, isDown] = [vertex.x + from.dx, from.dy < to.dy];
    return isDown ? [x, bottomOf(vertex, from), x, topOf(vertex, to)] : [x, topOf(vertex, from), x, bottomOf(vertex, to)];
  }
  const sign = from.dx < to.dx ? 1 : -1;
  const [base, gradient] = sign > 0 ? [from, to] : [to, from];
  const y = vertex.y + gradient.dy + gradient.h / 2;
  // Of several gradients some reach further up or down than the box that they stand beside.
  const beside = Math.min(Math.max(y, topOf(vertex, base) + CORNER), bottomOf(vertex, base) - CORNER);
  const [y0, y1] = sign > 0 ? [beside, y] : [y, beside];
  const [x0, x1] = [vertex.x + from.dx + (sign * from.w) / 2, vertex.x + to.dx - (sign * to.w) / 2];
  const turn = vertex.x + base.dx + base.w / 2 + SPACE.beside / 2;
  return y0 === y1 ? [x0, y0, x1, y1] : [x0, y0, turn, y0, turn, y1, x1, y1];
}

/** Lines that go back from one box to another run as one, whatever they carry. */
function laneOf({ from, to }: Wire, lanes: Map<string, number>): number {
  const pair = `${from},${to}`;
  const lane = lanes.get(pair) ?? lanes.size;
  lanes.set(pair, lane);
  return lane;
}

/** A line against the stream: out below, up outside on the right, in above; of several strips around all of them. Lanes keep apart. */
function backRoute(drawing: Drawing, wire: Wire, places: Places, lane: number): number[] {
  const [from, to] = [at(drawing.vertices, wire.from), at(drawing.vertices, wire.to)];
  const apart = LANE_GAP * Math.min(lane, 3);
  const below = bottomOf(from, wire.fromPart) + DETOUR.back + apart;
  const above = topOf(to, wire.toPart) - DETOUR.back - apart;
  const [x0, x1] = [from.x + asideOf(wire, wire.fromDx, wire.fromPart), to.x + asideOf(wire, wire.toDx, wire.toPart)];
  const start = [x0, bottomOf(from, wire.fromPart), x0, below];
  const end = [x1, above, x1, topOf(to, wire.toPart)];
  const [k, l] = [from, to].map(({ rank }) => stripAt(places, rank));
  const [mine, first] = [places.strips[k ?? 0], places.strips[0]];
  const x = (mine?.right ?? 0) + DETOUR.beside + LANE_GAP * lane;
  if (k === l || !first) return [...start, x, below, x, above, ...end];
  const under = Math.max(...places.strips.map(({ bottom }) => bottom)) + DETOUR.under + LANE_GAP * lane;
  const left = first.left - DETOUR.beside - LANE_GAP * lane;
  return [...start, x, below, x, under, left, under, left, above, ...end];
}

/** A return stands beside the other lines of a closed body, which has no ports. */
function asideOf({ link }: Wire, dx: number, part: Part | null): number {
  return link.isReturn && part && dx === part.dx ? dx + Math.round(part.w * DETOUR.returnShare) : dx;
}

function push(route: number[], x: number, y: number): void {
  const n = route.length;
  if (n >= 2 && route[n - 2] === x && route[n - 1] === y) return;
  route.push(x, y);
}
