/** Positions on the way from one layout to the next. */
import type { BoxId } from "../model/ids.js";
import type { VisibleGraph } from "../model/visible.js";
import type { Positions, Rect } from "./types.js";

/** Share `t` of the way, 0 to 1. Boxes that are new grow out of the scope that was closed before. */
export function between(graph: VisibleGraph, before: Positions, after: Positions, t: number): Positions {
  const boxes = new Map<BoxId, Rect>();
  for (const [id, to] of after.boxes) {
    const from = before.boxes.get(id) ?? origin(graph, before, after, id);
    boxes.set(id, from ? mixRect(from, to, t) : to);
  }
  const routes = new Map<string, readonly number[]>();
  for (const [id, to] of after.routes) {
    const from = before.routes.get(id);
    // A line whose course changed in kind appears at the end.
    if (from?.length === to.length) routes.set(id, to.map((value, k) => mix(from[k] ?? value, value, t)));
  }
  return { w: after.w, h: after.h, boxes, routes };
}

/** Where a new box would lie if its scope, opened, had the closed scope's size. */
function origin(graph: VisibleGraph, before: Positions, after: Positions, id: BoxId): Rect | null {
  const to = after.boxes.get(id);
  let at = graph.boxes.get(id)?.parent ?? null;
  while (at !== null) {
    const small = before.boxes.get(at);
    const large = after.boxes.get(at);
    if (small && large && to) {
      const [sx, sy] = [small.w / large.w, small.h / large.h];
      return {
        x: small.x + (to.x - large.x) * sx, y: small.y + (to.y - large.y) * sy, w: to.w * sx, h: to.h * sy,
      };
    }
    at = graph.boxes.get(at)?.parent ?? null;
  }
  return null;
}

function mixRect(a: Rect, b: Rect, t: number): Rect {
  return { x: mix(a.x, b.x, t), y: mix(a.y, b.y, t), w: mix(a.w, b.w, t), h: mix(a.h, b.h, t) };
}

const mix = (a: number, b: number, t: number): number => a + (b - a) * t;
