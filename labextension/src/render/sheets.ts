/** What shows behind and around a closed scope: that there is more inside, how a stack or a fan repeats. Pure. */
import { SHEET_PX } from "../layout/measure.js";
import type { Rect } from "../layout/types.js";
import type { Box } from "../model/visible.js";
import type { Mark, ShapeMark } from "./marks.js";
import type { PlacedBox } from "./scene.js";
import type { Theme } from "./theme.js";

/** How far a stack's returning line reaches out. */
const REACH_PX = 11;

/** Copies one after the other lie behind each other, copies side by side beside; a plain scope has one sheet behind. */
export function sheets({ box, rect }: PlacedBox, theme: Theme): Mark[] {
  if (box.frame || box.isVariable) return [];
  const { group } = box;
  if (!group) return [sheet(rect, 3, 3, theme)];
  if (group.kind === "stack") {
    return [sheet(rect, 2 * SHEET_PX, 2 * SHEET_PX, theme), sheet(rect, SHEET_PX, SHEET_PX, theme), ...(group.carries ? [returning(box.id, rect, group.carries.bytes, theme)] : [])];
  }
  if (group.kind === "fan") return [sheet(rect, 2 * SHEET_PX, 0, theme), sheet(rect, SHEET_PX, 0, theme)];
  return [];
}

/** How far the sheets reach below a closed box. */
export function sheetsBelow({ scope, group, isOpen, isVariable, frame }: Box): number {
  if (!scope || isOpen || isVariable || frame) return 0;
  return group ? (group.kind === "stack" ? 2 * SHEET_PX : 0) : 3;
}

function sheet({ x, y, w, h }: Rect, dx: number, dy: number, theme: Theme): ShapeMark {
  return { kind: "shape", id: "", shape: "box", x: x + dx, y: y + dy, w, h, r: 8, fill: theme.folder, stroke: theme.border, width: 0.75 };
}

/** The state that each copy hands to the next. */
function returning(id: string, { x, y, w, h }: Rect, bytes: number, theme: Theme): Mark {
  const [left, right] = [x + w, x + w + SHEET_PX + REACH_PX];
  return {
    kind: "path", id: `${id}|return`, route: [left, y + h * 0.75, right, y + h * 0.75, right, y + h * 0.25, left, y + h * 0.25],
    stroke: theme.body, width: lineWidth(bytes), isDashed: false, hasArrow: true, opacity: 1,
  };
}

/** How wide a line is that carries so many bytes: it grows with their logarithm. */
export function lineWidth(bytes: number): number {
  return Math.min(4, 1 + 0.5 * Math.log10(Math.max(1, bytes / 100)));
}
