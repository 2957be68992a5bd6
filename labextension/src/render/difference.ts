/** What is drawn over the picture where two steps are compared: orange where the second took longer, blue where less. Pure. */
import { FONT_PX } from "../layout/measure.js";
import type { Positions } from "../layout/types.js";
import { ROOT, type BoxId } from "../model/ids.js";
import { changeOf, changeText, type BothTimes } from "../model/step_difference.js";
import type { Mark } from "./marks.js";
import type { Theme } from "./theme.js";

const TAG_PX = 15;
const MOST_GROWN = 2.2;
/** Boxes whose change is less than this share of the greatest one have no figure. */
const TOLD = 0.08;

/** Longer and shorter; source: Okabe and Ito 2008. */
export const DIFFERENCE = { longer: "#d55e00", shorter: "#0072b2" } as const;

export interface DifferencePicture {
  of(box: BoxId): BothTimes | null;
  isOpen(box: BoxId): boolean;
}

export function differenceMarks(picture: DifferencePicture, positions: Positions, theme: Theme, zoom: number): Mark[] {
  const size = Math.min(MOST_GROWN, Math.max(1, 1 / zoom));
  const told = [...positions.boxes].flatMap(([box, rect]) => {
    const both = box === ROOT || rect.w <= 0 || picture.isOpen(box) ? null : picture.of(box);
    return both ? [{ rect, both }] : [];
  });
  const most = Math.max(1, ...told.map(({ both }) => Math.abs(changeOf(both))));
  const marks: Mark[] = [];
  for (const { rect, both } of told) {
    const change = changeOf(both) / most;
    const colour = change < 0 ? DIFFERENCE.shorter : DIFFERENCE.longer;
    const strength = Math.round(0x14 + 0x4c * Math.abs(change)).toString(16);
    marks.push({ kind: "shape", id: "", shape: "box", ...rect, r: 6, fill: `${colour}${strength}`, stroke: colour, width: Math.abs(change) < TOLD ? 0 : 1.5 });
    if (Math.abs(change) < TOLD) continue;
    const text = changeText(both);
    const [height, width] = [TAG_PX * size, (text.length * FONT_PX.type * 0.6 + 9) * size];
    const at = { x: rect.x + rect.w - width + 4, y: rect.y + rect.h - height * 0.45, w: width, h: height };
    marks.push(
      { kind: "shape", id: "", shape: "box", ...at, r: height / 2, fill: colour, stroke: theme.background, width: 1.25 * size },
      { kind: "text", id: "", text, x: at.x + width / 2, y: at.y + height / 2 + 0.5, size: (FONT_PX.type - 0.5) * size, weight: 600, fill: "#ffffff", anchor: "middle", room: width, halo: "", from: 0 },
    );
  }
  return marks;
}
