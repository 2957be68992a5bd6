/** Which open scopes are closed where a picture has no room for texts that can be read: the farthest first. Pure. */
import { pathOf, ROOT, type BoxId } from "../model/ids.js";
import type { VisibleGraph } from "../model/visible.js";
import { FONT_PX } from "./measure.js";
import type { Positions, Rect, Room } from "./types.js";

/** At this zoom names can be read as they are. */
export const WHOLE_ZOOM = 9 / FONT_PX.name;

/** About what a closed scope takes. */
const CLOSED_AREA = 130 * 70;

/**
 * Paths of the scopes to close so that a picture that is too large for its room at `WHOLE_ZOOM` fits there, of those that
 * `mayClose`: those farthest from the selection, or without one from where reading begins; never one around the selection.
 */
export function scopesToClose(
  { boxes }: VisibleGraph, positions: Positions, room: Room, selection: BoxId | null, mayClose: (path: string) => boolean,
): string[] {
  let excess = positions.w * positions.h - (room.w / WHOLE_ZOOM) * (room.h / WHOLE_ZOOM);
  if (positions.w * WHOLE_ZOOM <= room.w && positions.h * WHOLE_ZOOM <= room.h) return [];
  const kept = new Set<BoxId>([ROOT]);
  for (let at = selection; at !== null; at = boxes.get(at)?.parent ?? null) kept.add(at);
  const start = middleOf(positions.boxes.get(selection ?? "") ?? { x: 0, y: 0, w: 0, h: 0 });
  const left = new Map([...boxes.values()].flatMap(({ id, isOpen, children }) => (
    isOpen ? [[id, children.filter((child) => boxes.get(child)?.isOpen).length] as const] : []
  )));
  const candidates = new Set([...left.keys()].filter((id) => !kept.has(id) && mayClose(pathOf(id) ?? "")));
  const closed: string[] = [];
  while (candidates.size > 0 && (excess > 0 || closed.length === 0)) {
    // What holds open scopes waits until these are closed.
    const ready = [...candidates].filter((id) => left.get(id) === 0);
    const far = ready.map((id) => [id, distance(start, middleOf(positions.boxes.get(id)))] as const).sort((a, b) => b[1] - a[1])[0]?.[0];
    if (far === undefined) break;
    candidates.delete(far);
    closed.push(pathOf(far) ?? "");
    const parent = boxes.get(far)?.parent ?? ROOT;
    left.set(parent, (left.get(parent) ?? 1) - 1);
    const { w = 0, h = 0 } = positions.boxes.get(far) ?? {};
    excess -= Math.max(0, w * h - CLOSED_AREA);
  }
  return closed;
}

type Point = readonly [number, number];

const middleOf = (rect: Rect | undefined): Point => (rect ? [rect.x + rect.w / 2, rect.y + rect.h / 2] : [0, 0]);
const distance = ([ax, ay]: Point, [bx, by]: Point): number => Math.hypot(ax - bx, ay - by);
