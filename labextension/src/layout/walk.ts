/** Where an arrow key leads from a box: up and down along data, left and right to the neighbour. */
import { ROOT, type BoxId } from "../model/ids.js";
import type { VisibleGraph } from "../model/visible.js";
import type { Positions, Rect } from "./types.js";

export type Direction = "up" | "down" | "left" | "right";

export function walk(
  graph: VisibleGraph, positions: Positions, from: BoxId | null, direction: Direction,
): BoxId | null {
  const box = from === null ? undefined : graph.boxes.get(from);
  const rect = from === null ? undefined : positions.boxes.get(from);
  if (!box || !rect) return firstOf(graph.boxes.get(ROOT)?.children ?? [], positions);
  if (box.isOpen && direction === "down") return firstOf(box.children, positions);
  const isUpright = direction === "up" || direction === "down";
  const along = isUpright ? alongData(graph, box.id, direction) : [];
  const next = along.length > 0 ? along : beside(graph, positions, box.id, rect, direction);
  return nearest(next, positions, rect);
}

function alongData(graph: VisibleGraph, id: BoxId, direction: Direction): BoxId[] {
  const found: BoxId[] = [];
  for (const edge of graph.edges) {
    // Returns run against the stream, and the line from a result to the wall of its body leads nowhere.
    if (edge.kind === "return" || (edge.kind === "data" && graph.boxes.get(edge.to)?.isOpen)) continue;
    if (direction === "down" && edge.from === id) found.push(edge.to);
    if (direction === "up" && edge.to === id) found.push(edge.from);
  }
  return found;
}

/** Siblings on the given side. */
function beside(
  graph: VisibleGraph, positions: Positions, id: BoxId, rect: Rect, direction: Direction,
): BoxId[] {
  const parent = graph.boxes.get(graph.boxes.get(id)?.parent ?? ROOT);
  return (parent?.children ?? []).filter((other) => {
    const place = positions.boxes.get(other);
    if (!place || other === id) return false;
    if (direction === "left") return place.x + place.w <= rect.x;
    if (direction === "right") return place.x >= rect.x + rect.w;
    return direction === "up" ? place.y + place.h <= rect.y : place.y >= rect.y + rect.h;
  });
}

function nearest(boxes: readonly BoxId[], positions: Positions, from: Rect): BoxId | null {
  let best: BoxId | null = null;
  let least = Infinity;
  for (const id of boxes) {
    const rect = positions.boxes.get(id);
    if (!rect) continue;
    const dx = rect.x + rect.w / 2 - from.x - from.w / 2;
    const dy = rect.y + rect.h / 2 - from.y - from.h / 2;
    const distance = dx * dx + dy * dy;
    if (distance < least) [best, least] = [id, distance];
  }
  return best;
}

/** The one nearest to the upper left corner. */
function firstOf(boxes: readonly BoxId[], positions: Positions): BoxId | null {
  let best: BoxId | null = null;
  let least = Infinity;
  for (const id of boxes) {
    const rect = positions.boxes.get(id);
    if (rect && rect.x + rect.y < least) [best, least] = [id, rect.x + rect.y];
  }
  return best;
}
