/** Lays out one scope, given the layouts of the open scopes inside it. Pure. */
import { startDrawing, type Drawing, type Vertex } from "./drawing.js";
import { makeChains } from "./chains.js";
import { placeX, placeY, type Band } from "./coordinates.js";
import { placeAside } from "./aside.js";
import { placeRows, rowWidth } from "./grid.js";
import { layOutIslands, splitIslands } from "./islands.js";
import { makeNet, orderLayers } from "./order.js";
import { assignRanks, breakCycles, wrapRows } from "./ranks.js";
import { routeAll } from "./routes.js";
import { SPACE, type Rect, type ScopeInput, type ScopeLayout } from "./types.js";

/** Boxes beyond which a scope becomes a grid: ranks of that many tell nothing any more. */
export const TOO_MANY = 2500;
/** Boxes beyond which a scope becomes a grid if its ranks would be a thin ribbon. */
const MANY = 400;
const RIBBON = 5;

export function layoutScope(
  input: ScopeInput, inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null,
): ScopeLayout {
  return layOutIslands(splitIslands(input), (part) => layoutPart(part, inside, before));
}

function layoutPart(
  input: ScopeInput, inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null,
): ScopeLayout {
  const drawing = startDrawing(input, inside, before);
  breakCycles(drawing);
  const ranks = assignRanks(drawing);
  const isGrid = wantsGrid(input.boxes.length, ranks);
  const bands = isGrid ? layOutGrid(drawing) : layOutRanks(drawing, ranks);
  const extent = extentOf(drawing, isGrid);
  const routes = routeAll(drawing, bands, extent.right);
  if (!isGrid) placeAside(drawing, input.control, extent, bounds([], routes.values()).right);
  return finish(drawing, routes, input.header);
}

function wantsGrid(boxes: number, ranks: number): boolean {
  return boxes > TOO_MANY || (boxes > MANY && ranks > RIBBON * Math.sqrt(boxes));
}

function layOutRanks(drawing: Drawing, ranks: number): Band[] {
  const wrapped = wrapRows(drawing, ranks);
  const hops = makeChains(drawing);
  const net = makeNet(drawing, hops, wrapped.ranks);
  orderLayers(drawing, net);
  placeX(drawing, net, wrapped.isRow);
  return placeY(drawing, net, hops, wrapped.isRow);
}

/** Row by row in the order of ranks, so that data still runs downwards by and large. */
function layOutGrid(drawing: Drawing): Band[] {
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
  return [];
}

export interface Extent {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** The extent of what stands in ranks, or of the whole grid. */
function extentOf(drawing: Drawing, isGrid: boolean): Extent {
  const aside = new Set(isGrid ? [] : drawing.aside);
  return bounds(drawing.vertices.filter((_, i) => !aside.has(i)), []);
}

function bounds(vertices: readonly Vertex[], routes: Iterable<readonly number[]>): Extent {
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
  return left <= right ? { left, top, right, bottom } : { left: 0, top: 0, right: 0, bottom: 0 };
}

/** Shifts everything inside the walls and collects the result. */
function finish(
  drawing: Drawing, routes: ReadonlyMap<string, readonly number[]>, header: number,
): ScopeLayout {
  const all = bounds(drawing.vertices, routes.values());
  const contentW = Math.max(all.right - all.left, header - 2 * SPACE.padding);
  const hasIn = drawing.vertices.some((v) => v.kind === "in");
  const hasOut = drawing.vertices.some((v) => v.kind === "out");
  const w = 2 * Math.ceil(contentW / 2 + SPACE.padding);
  const above = (header === 0 ? 0 : SPACE.header) + (hasIn ? 0 : SPACE.padding);
  // The ports stand in the wall; a box that stands aside may reach further down than they do, and so may a return.
  const lowest = bounds(drawing.vertices.filter((v) => v.kind === "box"), []).bottom + SPACE.padding;
  const returns = drawing.wires.filter((wire) => wire.isBack).map((wire) => routes.get(wire.link.id) ?? []);
  const below = hasOut ? Math.max(0, lowest - all.bottom, bounds([], returns).bottom + SPACE.padding / 2 - all.bottom) : SPACE.padding;
  const dx = Math.round((w - (all.right - all.left)) / 2 - all.left);
  const dy = Math.round(above - all.top);
  const h = Math.round(all.bottom - all.top + above + below);
  return collect(drawing, routes, { w, h, dx, dy });
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
  for (const v of drawing.vertices) {
    if (v.kind === "box") boxes.set(v.id, { x: v.x - v.w / 2 + dx, y: v.y + dy, w: v.w, h: v.h });
    else if (v.kind === "in") inPorts.set(v.id, v.x + dx);
    else if (v.kind === "out") outPorts.set(v.id, v.x + dx);
  }
  const shifted = new Map<string, number[]>();
  for (const { link } of drawing.wires) {
    const route = shift(routes.get(link.id) ?? [], dx, dy);
    // Lines that begin or end at a port reach to the wall itself, under the header.
    if (link.from === null) route.unshift(route[0] ?? 0, 0);
    if (link.to === null) route.push(route[route.length - 2] ?? 0, h);
    shifted.set(link.id, route);
  }
  return { w, h, boxes, routes: shifted, inPorts, outPorts };
}

function shift(route: readonly number[], dx: number, dy: number): number[] {
  return route.map((value, k) => value + (k % 2 === 0 ? dx : dy));
}
