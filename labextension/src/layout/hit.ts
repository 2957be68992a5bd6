/** Which box lies under a point. */
import type { BoxId } from "../model/ids.js";
import { ROOT } from "../model/ids.js";
import type { VisibleGraph } from "../model/visible.js";
import type { Positions } from "./types.js";

/** The innermost box at a point of the picture, or null. */
export function boxAt(graph: VisibleGraph, positions: Positions, x: number, y: number): BoxId | null {
  let found: BoxId | null = null;
  let inside: readonly BoxId[] = graph.boxes.get(ROOT)?.children ?? [];
  while (inside.length > 0) {
    const hit = inside.find((id) => {
      const rect = positions.boxes.get(id);
      return rect && x >= rect.x && x <= rect.x + rect.w && y >= rect.y && y <= rect.y + rect.h;
    });
    if (hit === undefined) break;
    found = hit;
    inside = graph.boxes.get(hit)?.children ?? [];
  }
  return found;
}
