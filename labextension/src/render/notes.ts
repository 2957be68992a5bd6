/** What stands beside operations that are fetched or fed: a value, or a word, on a label at the lower edge of the box. Pure. */
import { FONT_PX } from "../layout/measure.js";
import { textWidth } from "../layout/text.js";
import type { Rect } from "../layout/types.js";
import type { Badge } from "../model/run_setup.js";
import { fitText } from "./fit.js";
import type { Mark } from "./marks.js";
import type { Theme } from "./theme.js";

/** Notes on one box, as it is shown. */
export interface BoxNote {
  readonly rect: Rect;
  readonly text: string;
  readonly badge: Badge;
}

const HEIGHT_PX = 17;
const MOST_PX = 190;
const GAP_PX = 3;
/** From afar labels are drawn larger against the picture, up to so many times. */
const MOST_GROWN = 2.4;

export function noteMarks(notes: readonly BoxNote[], theme: Theme, zoom: number): Mark[] {
  const grown = Math.min(MOST_GROWN, Math.max(1, 1 / zoom));
  return notes.flatMap((note) => [outline(note, theme, grown), ...label(note, theme, grown)]);
}

function outline({ rect, badge }: BoxNote, theme: Theme, grown: number): Mark {
  const gap = GAP_PX * grown;
  const [x, y, w, h] = [rect.x - gap, rect.y - gap, rect.w + 2 * gap, rect.h + 2 * gap];
  return {
    kind: "shape", id: "note", shape: "box", x, y, w, h, r: 7, fill: "", stroke: colorOf(badge, theme), width: 2 * grown,
    isDashed: badge === "missing",
  };
}

function label({ rect, text, badge }: BoxNote, theme: Theme, grown: number): Mark[] {
  const size = FONT_PX.type * grown;
  const width = (part: string): number => textWidth(part, size, true);
  const fitted = fitText(text, MOST_PX * grown, width);
  const [w, h] = [width(fitted) + 14 * grown, HEIGHT_PX * grown];
  const x = rect.x + rect.w / 2 - w / 2;
  const y = rect.y + rect.h + GAP_PX * grown - 5 * grown;
  const color = colorOf(badge, theme);
  const isFilled = badge !== "value";
  return [
    { kind: "shape", id: "", shape: "box", x, y, w, h, r: 5, fill: isFilled ? color : theme.background, stroke: color, width: 1.5 * grown },
    {
      kind: "text", id: "", text: fitted, x: x + w / 2, y: y + h / 2 + 0.5, size, weight: 600, anchor: "middle",
      fill: isFilled ? theme.background : theme.text, room: w, halo: "", from: 0,
    },
  ];
}

function colorOf(badge: Badge, theme: Theme): string {
  if (badge === "failed") return theme.alert;
  if (badge === "missing") return theme.held;
  return badge === "feed" ? theme.feed : theme.accent;
}
