/** Lays out one scope, given the layouts of the open scopes inside it: of several drawings the one that fills its room best. Pure. */
import { blockOf, fitZoom, placeAside, type Block } from "./aside.js";
import { makeChains } from "./chains.js";
import { placeX, placeY, type Band } from "./coordinates.js";
import { at, startDrawing, type Drawing, type Hop, type Part, type Vertex } from "./drawing.js";
import { placeRows, rowWidth } from "./grid.js";
import { layOutIslands, splitIslands } from "./islands.js";
import { makeNet, orderLayers, type Net } from "./order.js";
import { assignRanks, breakCycles, chooseCourses, cutLongLines, wrapRows } from "./ranks.js";
import { routeAll } from "./routes.js";
import { placeSides, routeSides, sidesHeight, sidesWidth } from "./sides.js";
import { crossingsOf, cutFarLines, cutRanks, placeStrips, stripsOf, stripsSize, withoutCuts, type Strip } from "./strips.js";
import { FITTED_ZOOM, ROOM, SPACE, type Rect, type Room, type ScopeInput, type ScopeLayout } from "./types.js";

/** Boxes beyond which a scope becomes a grid: ranks of that many tell nothing any more. */
export const TOO_MANY = 2500;
/** Boxes beyond which a scope becomes a grid if its ranks would be a thin ribbon. */
const MANY = 400;
const RIBBON = 5;
/** Boxes beyond which only one drawing is made. */
const MOST_TRIED = 120;

/** Boxes of a rank before it is wrapped into rows: the choices. */
const WIDEST: readonly number[] = [24, 10, 6, 4];
const MOST_STRIPS = 5;
/** What a strip more, and a narrower wrapping, must gain to be worth it. */
const STRIP_COST = 0.94;
const WRAP_COST = 0.95;
/** And to cut a loop's body apart. */
const RETURN_COST = 0.85;
/** Of the ways to draw a scope, those that are carried out. */
const CARRIED_OUT = 3;

export function layoutScope(
  input: ScopeInput, inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null,
): ScopeLayout {
  return layOutIslands(splitIslands(input), (part) => layoutPart(part, inside, before));
}

function layoutPart(
  input: ScopeInput, inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null,
): ScopeLayout {
  const start: Start = () => {
    const drawing = startDrawing(input, inside, before);
    return { drawing, ranks: rankAll(drawing) };
  };
  const { drawing, ranks } = start();
  if (wantsGrid(input.boxes.length, ranks)) {
    layOutGrid(drawing);
    return finish(drawing, new Map(), input.header);
  }
  const best = bestPlan(input, start);
  return finish(best.drawing, draw(best), input.header);
}

function rankAll(drawing: Drawing): number {
  breakCycles(drawing);
  const ranks = assignRanks(drawing);
  cutLongLines(drawing);
  return ranks;
}

function wantsGrid(boxes: number, ranks: number): boolean {
  return boxes > TOO_MANY || (boxes > MANY && ranks > RIBBON * Math.sqrt(boxes));
}

/** Which ranks are wrapped, and at which ranks strips begin. */
interface Cuts {
  readonly widest: number;
  readonly starts: readonly number[];
}

/** The ranks ordered and placed, the strips still one below the other. */
interface Ranked {
  readonly cuts: Cuts;
  readonly drawing: Drawing;
  readonly net: Net;
  readonly hops: readonly Hop[];
  readonly bands: Band[];
  readonly isRow: readonly boolean[];
}

/** How a drawing is cut, and how well it fills its room then. */
interface Plan extends Ranked {
  readonly strips: readonly Strip[];
  readonly block: Block | null;
  readonly worth: number;
}

type Start = () => { drawing: Drawing; ranks: number };

/** Estimates what each way of wrapping and cutting is worth, carries the most promising ones out, and takes the best. */
function bestPlan(input: ScopeInput, start: Start): Plan {
  const room = input.room ?? ROOM;
  const estimates: Plan[] = [];
  let most = Infinity;
  WIDEST.forEach((widest, k) => {
    if (most <= widest || (k > 0 && input.boxes.length > MOST_TRIED)) return;
    const whole = layOutRanks(start(), { widest, starts: [0] });
    most = Math.max(0, ...whole.net.layers.map((layer) => layer.filter((i) => at(whole.drawing.vertices, i).kind === "box").length));
    for (let count = 1; count <= Math.min(MOST_STRIPS, Math.max(1, whole.bands.length)); count++) {
      const starts = cutRanks(whole.bands, crossingsOf(whole.drawing, whole.hops, whole.bands.length), whole.isRow, count);
      estimates.push(planOf(whole, starts, room));
    }
  });
  const promising = estimates.sort((a, b) => b.worth - a.worth).slice(0, input.boxes.length > MOST_TRIED ? 1 : CARRIED_OUT);
  const plans = promising.map((plan) => {
    if (plan.cuts.starts.length === 1) return plan;
    return planOf(layOutRanks(start(), plan.cuts), plan.cuts.starts, room);
  });
  return plans.reduce((best, plan) => (plan.worth > best.worth ? plan : best));
}

function layOutRanks({ drawing, ranks }: ReturnType<Start>, cuts: Cuts): Ranked {
  const wrapped = wrapRows(drawing, ranks, cuts.widest);
  chooseCourses(drawing);
  cutFarLines(drawing, cuts.starts);
  const hops = makeChains(drawing);
  const net = makeNet(drawing, hops, wrapped.ranks);
  orderLayers(drawing, net);
  placeX(drawing, withoutCuts(drawing, net, cuts.starts), wrapped.isRow);
  return { cuts, drawing, net, hops, bands: placeY(drawing, net, hops, wrapped.isRow), isRow: wrapped.isRow };
}

function planOf(ranked: Ranked, starts: readonly number[], room: Room): Plan {
  const { drawing, net, hops, bands, cuts } = ranked;
  const strips = net.layers.some((layer) => layer.length > 0) ? stripsOf(drawing, net.layers, bands, hops, starts) : [];
  const size = stripsSize(strips);
  const main = { w: size.w + sidesWidth(drawing), h: Math.max(size.h, sidesHeight(drawing)) };
  const block = blockOf(drawing.aside.map((i) => at(drawing.vertices, i)), main, room);
  const { w, h } = block ?? main;
  const zoom = Math.min(FITTED_ZOOM, fitZoom({ w: w + 2 * SPACE.padding, h: h + 2 * SPACE.padding }, room));
  const hasReturns = starts.length > 1 && drawing.wires.some(({ course }) => course === "back");
  const cost = WRAP_COST ** WIDEST.indexOf(cuts.widest) * STRIP_COST ** (starts.length - 1) * (hasReturns ? RETURN_COST : 1);
  return { ...ranked, cuts: { ...cuts, starts }, strips, block, worth: zoom * cost };
}

/** Carries a plan out; returns the routes. */
function draw({ drawing, net, bands, strips, block }: Plan): Map<string, number[]> {
  const placed = placeStrips(drawing, net.layers, bands, strips);
  const routes = routeAll(drawing, { bands, strips: placed });
  const aside = new Set(drawing.aside);
  const sides = new Set(drawing.sides.flat());
  const main = bounds(drawing.vertices.filter((_, i) => !aside.has(i) && !sides.has(i)), routes.values());
  const columns = placeSides(drawing, main?.right ?? 0, main?.top ?? 0, main?.bottom ?? 0);
  const last = placed[placed.length - 1];
  for (const [link, route] of routeSides(drawing, columns, (i, part) => isRightmost(drawing, net, last, i, part))) routes.set(link, route);
  const all = bounds(drawing.vertices.filter((_, i) => !aside.has(i)), routes.values());
  placeAside(drawing.aside.map((i) => at(drawing.vertices, i)), block, all);
  return routes;
}

/** Whether nothing stands between a box and the columns on the right. */
function isRightmost(drawing: Drawing, { layers }: Net, last: Strip | undefined, i: number, part: Part): boolean {
  const vertex = at(drawing.vertices, i);
  const layer = layers[vertex.rank] ?? [];
  const isLast = last !== undefined && vertex.rank >= last.first;
  return isLast && layer[layer.length - 1] === i && part.dx + part.w / 2 >= vertex.w / 2 - 1;
}

/** Row by row in the order of ranks, so that data still runs downwards by and large. */
function layOutGrid(drawing: Drawing): void {
  const boxes = drawing.vertices.filter((vertex) => vertex.kind === "box");
  boxes.sort((a, b) => a.rank - b.rank);
  const width = rowWidth(boxes, SPACE.sibling);
  const size = placeRows(boxes, 0, SPACE.padding, width, SPACE.sibling);
  for (const kind of ["in", "out"] as const) {
    const ports = drawing.vertices.filter((vertex) => vertex.kind === kind);
    ports.forEach((port, k) => {
      port.x = ((k + 1) * size.w) / (ports.length + 1);
      port.y = kind === "in" ? 0 : size.h + 2 * SPACE.padding;
    });
  }
  for (const wire of drawing.wires) wire.course = "stub";
}

interface Extent {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** The extent of vertices and routes; null where there are none. */
function bounds(vertices: readonly Vertex[], routes: Iterable<readonly number[]>): Extent | null {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const v of vertices) {
    left = Math.min(left, v.x - v.w / 2);
    right = Math.max(right, v.x + v.w / 2);
    top = Math.min(top, v.y);
    bottom = Math.max(bottom, v.y + v.h);
  }
  for (const route of routes) {
    for (let k = 0; k < route.length; k += 2) {
      left = Math.min(left, route[k] ?? left);
      right = Math.max(right, route[k] ?? right);
      top = Math.min(top, route[k + 1] ?? top);
      bottom = Math.max(bottom, route[k + 1] ?? bottom);
    }
  }
  return left <= right ? { left, top, right, bottom } : null;
}

const NOWHERE: Extent = { left: 0, top: 0, right: 0, bottom: 0 };

/** Shifts everything inside the walls and collects the result. */
function finish(
  drawing: Drawing, routes: ReadonlyMap<string, readonly number[]>, header: number,
): ScopeLayout {
  const all = bounds(drawing.vertices, routes.values()) ?? NOWHERE;
  const contentW = Math.max(all.right - all.left, header - 2 * SPACE.padding);
  const hasIn = drawing.vertices.some((v) => v.kind === "in");
  const w = 2 * Math.ceil(contentW / 2 + SPACE.padding);
  const above = (header === 0 ? 0 : SPACE.header) + (hasIn ? 0 : SPACE.padding);
  // The ports stand in the wall; a box that stands aside may reach further down than they do, and so may a return.
  const ports = drawing.vertices.filter((v) => v.kind === "out");
  const lowest = bounds(drawing.vertices.filter((v) => v.kind === "box"), routesBeside(drawing, routes))?.bottom ?? all.bottom;
  const below = ports.length > 0 ? Math.max(0, lowest + SPACE.padding - all.bottom) : SPACE.padding;
  const dx = Math.round((w - (all.right - all.left)) / 2 - all.left);
  const dy = Math.round(above - all.top);
  const h = Math.round(all.bottom - all.top + above + below);
  return collect(drawing, routes, { w, h, dx, dy });
}

/** Routes that do not lead to the lower wall. */
function routesBeside({ wires }: Drawing, routes: ReadonlyMap<string, readonly number[]>): (readonly number[])[] {
  return wires.filter(({ link }) => link.to !== null).map(({ link }) => routes.get(link.id) ?? []);
}

interface Frame {
  readonly w: number;
  readonly h: number;
  readonly dx: number;
  readonly dy: number;
}

function collect(
  drawing: Drawing, routes: ReadonlyMap<string, readonly number[]>, { w, h, dx, dy }: Frame,
): ScopeLayout {
  const boxes = new Map<string, Rect>();
  const inPorts = new Map<string, number>();
  const outPorts = new Map<string, number>();
  for (const v of inReadingOrder(drawing)) {
    for (const part of v.parts) boxes.set(part.id, { x: v.x + part.dx - part.w / 2 + dx, y: v.y + part.dy + dy, w: part.w, h: part.h });
    if (v.kind === "in") inPorts.set(v.id, v.x + dx);
    else if (v.kind === "out") outPorts.set(v.id, v.x + dx);
  }
  const shifted = new Map<string, number[]>();
  for (const { link } of drawing.wires) {
    const found = routes.get(link.id);
    if (!found) continue;
    const route = shift(found, dx, dy);
    // Lines that begin or end at a port reach to the wall itself, under the header.
    if (link.from === null) route.unshift(route[0] ?? 0, 0);
    if (link.to === null) route.push(route[route.length - 2] ?? 0, h);
    shifted.set(link.id, route);
  }
  return { w, h, boxes, routes: shifted, inPorts, outPorts, order: orderOf(drawing) };
}

function shift(route: readonly number[], dx: number, dy: number): number[] {
  return route.map((value, k) => value + (k % 2 === 0 ? dx : dy));
}

/** Rank by rank - strips follow each other so - and from left to right; then side columns, then what stands aside. */
function inReadingOrder({ vertices, sides, aside }: Drawing): Vertex[] {
  const last = [...sides.flat(), ...aside];
  const others = new Set(last);
  const ranked = vertices.filter((_, i) => !others.has(i)).sort((a, b) => a.rank - b.rank || a.x - b.x);
  return [...ranked, ...sides.flatMap((column) => column.map((i) => at(vertices, i)).sort((a, b) => a.y - b.y)), ...aside.map((i) => at(vertices, i))];
}

/** The place of each vertex in its level, from 0 to 1. */
function orderOf({ vertices, sides, aside }: Drawing): Map<string, number> {
  const others = new Set([...sides.flat(), ...aside]);
  const levels = new Map<number, Vertex[]>();
  vertices.forEach((vertex, i) => {
    if (vertex.kind !== "point" && !others.has(i)) levels.set(vertex.level, [...(levels.get(vertex.level) ?? []), vertex]);
  });
  const order = new Map<string, number>();
  for (const level of levels.values()) {
    level.sort((a, b) => a.rank - b.rank || a.x - b.x);
    level.forEach(({ kind, id }, k) => order.set(kind === "box" ? id : `${kind === "in" ? "<" : ">"}${id}`, (k + 0.5) / level.length));
  }
  return order;
}
