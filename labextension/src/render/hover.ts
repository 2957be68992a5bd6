/** The outline of the box under the pointer. Pure. */
import type { Rect } from "../layout/types.js";
import type { Mark } from "./marks.js";
import type { Theme } from "./theme.js";

/** Distance between box and outline, on the screen. */
const GAP_PX = 2;

export function hoverMarks(rect: Rect | undefined, { accent }: Theme, zoom: number): Mark[] {
  if (!rect) return [];
  const gap = GAP_PX / zoom;
  const [x, y, w, h] = [rect.x - gap, rect.y - gap, rect.w + 2 * gap, rect.h + 2 * gap];
  return [{ kind: "shape", id: "hover", shape: "box", x, y, w, h, r: 6, fill: "", stroke: accent, width: 1 / zoom }];
}
