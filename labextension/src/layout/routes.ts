/**
 * The routes of lines. A route is x, y, x, y ...; between points that share an x or a y the line is
 * straight, between others it swings with upright ends (`render/trace.ts` draws it so).
 */
import { at, type Drawing, type Vertex, type Wire } from "./drawing.js";
import type { Band } from "./coordinates.js";

/** Distance between the ends of lines on a box's upper edge, at most. */
const END_GAP = 16;
/** Distance between lines that run back. */
const LANE_GAP = 8;

/** Link id -> route, relative to the drawing. `right` is where lines that go back may run. */
export function routeAll(drawing: Drawing, bands: readonly Band[], right: number): Map<string, number[]> {
  const ends = spreadEnds(drawing);
  const routes = new Map<string, number[]>();
  const lanes = new Map<string, number>();
  for (const wire of drawing.wires) {
    if (wire.isBack) routes.set(wire.link.id, backRoute(drawing, wire, right, laneOf(wire, lanes)));
    else if (wire.path.length === 0) routes.set(wire.link.id, farRoute(drawing, wire));
    else routes.set(wire.link.id, forwardRoute(drawing, wire, bands, ends));
  }
  return routes;
}

/** Lines that come into a box end side by side, in the order of where they come from. */
function spreadEnds(drawing: Drawing): Map<string, number> {
  const into = new Map<number, Set<number>>();
  for (const wire of drawing.wires) {
    const before = wire.path[wire.path.length - 2];
    if (before === undefined || wire.toDx !== 0) continue;
    const known = into.get(wire.to);
    if (known) known.add(before);
    else into.set(wire.to, new Set([before]));
  }
  const ends = new Map<string, number>();
  for (const [to, befores] of into) {
    const { w, kind } = at(drawing.vertices, to);
    if (befores.size < 2 || kind !== "box") continue;
    const sorted = [...befores].sort((a, b) => at(drawing.vertices, a).x - at(drawing.vertices, b).x);
    const gap = Math.min(END_GAP, (w * 0.6) / (sorted.length - 1));
    sorted.forEach((before, k) => ends.set(`${before},${to}`, (k - (sorted.length - 1) / 2) * gap));
  }
  return ends;
}

function forwardRoute(
  drawing: Drawing, wire: Wire, bands: readonly Band[], ends: ReadonlyMap<string, number>,
): number[] {
  const route: number[] = [];
  const last = wire.path.length - 1;
  wire.path.forEach((i, k) => {
    const vertex = at(drawing.vertices, i);
    const band = at(bands, vertex.rank);
    const endDx = wire.toDx || (ends.get(`${wire.path[k - 1]},${i}`) ?? 0);
    const x = vertex.x + (k === 0 ? wire.fromDx : k === last ? endDx : 0);
    const top = k === 0 ? bottomOf(vertex) : band.top;
    const bottom = k === last ? vertex.y : band.bottom;
    push(route, x, top);
    push(route, x, bottom);
  });
  return route;
}

/** A line without way points: it runs behind the boxes. */
function farRoute(drawing: Drawing, wire: Wire): number[] {
  const from = at(drawing.vertices, wire.from);
  const to = at(drawing.vertices, wire.to);
  return [from.x + wire.fromDx, bottomOf(from), to.x + wire.toDx, to.y];
}

/** Lines that go back from one source share a lane. */
function laneOf({ link }: Wire, lanes: Map<string, number>): number {
  const lane = lanes.get(link.source) ?? lanes.size;
  lanes.set(link.source, lane);
  return lane;
}

/** A line against the stream: out below, up outside on the right, in above. Lanes keep apart. */
function backRoute(drawing: Drawing, wire: Wire, right: number, lane: number): number[] {
  const from = at(drawing.vertices, wire.from);
  const to = at(drawing.vertices, wire.to);
  const apart = LANE_GAP * Math.min(lane, 3);
  const below = bottomOf(from) + 12 + apart;
  const above = to.y - 12 - apart;
  const x = right + 14 + LANE_GAP * lane;
  const [x0, x1] = [from.x + asideOf(wire, wire.fromDx, from), to.x + asideOf(wire, wire.toDx, to)];
  return [x0, bottomOf(from), x0, below, x, below, x, above, x1, above, x1, to.y];
}

/** A return stands beside the other lines of a closed body, which has no ports. */
function asideOf({ link }: Wire, dx: number, { w }: Vertex): number {
  return link.isReturn && dx === 0 ? Math.round(w * 0.3) : dx;
}

function bottomOf(vertex: Vertex): number {
  return vertex.y + vertex.h;
}

function push(route: number[], x: number, y: number): void {
  const n = route.length;
  if (n >= 2 && route[n - 2] === x && route[n - 1] === y) return;
  route.push(x, y);
}
