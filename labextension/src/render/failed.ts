/**
 * The mark on the operation at which a step failed, or that made what a watchpoint holds a step for: an outline in the colour of
 * errors, and a flag with a cross, or a word. Pure.
 */
import type { Rect } from "../layout/types.js";
import type { Mark } from "./marks.js";
import type { Theme } from "./theme.js";

const GAP_PX = 3;
const FLAG_PX = 16;
/** From afar the mark is drawn larger against the picture, up to so many times. */
const MOST_GROWN = 2.4;

export function failedMarks(rect: Rect | undefined, { alert, background, font }: Theme, zoom: number, word = "\u00d7"): Mark[] {
  if (!rect || !font) return [];
  const grown = Math.min(MOST_GROWN, Math.max(1, 1 / zoom));
  const gap = GAP_PX * grown;
  const side = FLAG_PX * grown;
  const [x, y, w, h] = [rect.x - gap, rect.y - gap, rect.w + 2 * gap, rect.h + 2 * gap];
  const wide = word.length > 1 ? side * 2.2 : side;
  const at = { x: x - side / 2, y: y - side / 2 };
  return [
    { kind: "shape", id: "failed", shape: "box", x, y, w, h, r: 7, fill: "", stroke: alert, width: 2.5 * grown },
    { kind: "shape", id: "", shape: "pill", ...at, w: wide, h: side, r: side / 2, fill: alert, stroke: background, width: 1.5 },
    {
      kind: "text", id: "", text: word, x: at.x + wide / 2, y: y + 0.5, size: (word.length > 1 ? 10.5 : 13) * grown, weight: 600, fill: background, anchor: "middle",
      room: side * 2, halo: "", from: 0,
    },
  ];
}
