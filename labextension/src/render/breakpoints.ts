/** The marks of breakpoints: a dot at the left end of a box's upper wall, a ring where it is off. Pure. */
import type { Rect } from "../layout/types.js";
import type { Mark } from "./marks.js";
import type { Theme } from "./theme.js";

/** Breakpoints at a box. */
export interface BoxPoint {
  readonly rect: Rect;
  readonly isOn: boolean;
}

const DOT_PX = 12;
/** From afar the dot is drawn larger against the picture, up to so many times. */
const MOST_GROWN = 2.4;

export function breakpointMarks(points: readonly BoxPoint[], { alert, background }: Theme, zoom: number): Mark[] {
  const side = DOT_PX * Math.min(MOST_GROWN, Math.max(1, 1 / zoom));
  return points.map(({ rect, isOn }): Mark => ({
    kind: "shape", id: "breakpoint", shape: "pill", x: rect.x - side / 4, y: rect.y - side / 2, w: side, h: side, r: side / 2,
    fill: isOn ? alert : background, stroke: isOn ? background : alert, width: isOn ? 1.5 : 2,
  }));
}
