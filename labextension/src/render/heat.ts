/**
 * What is drawn over the picture where shares of a step are shown: a bar at the foot of every box, its share in figures
 * where it is large, and a veil over branches that were not taken. No box changes its size or place for it. Pure.
 */
import type { Positions, Rect } from "../layout/types.js";
import type { BoxId } from "../model/ids.js";
import { shareText } from "../model/figures.js";
import { FONT_PX } from "../layout/measure.js";
import type { Mark, ShapeMark } from "./marks.js";
import { rampColor, rampInk } from "./ramp.js";
import type { Theme } from "./theme.js";

const BAR_PX = 4;
const TAG_PX = 15;
/** From this share on a box tells it in figures. */
const TOLD_SHARE = 0.05;
const MOST_GROWN = 2.2;

export interface HeatPicture {
  /** 0 to 1; null where nothing is known of a box. */
  share(box: BoxId): number | null;
  readonly untaken: ReadonlySet<BoxId>;
  /** What a box tells in the place of its share, the telling parts first: as many as have room. */
  readonly told?: (box: BoxId) => readonly string[];
  /** Open scopes tell their share at the top, where their name is. */
  isOpen(box: BoxId): boolean;
}

export function heatMarks(heat: HeatPicture, positions: Positions, theme: Theme, zoom: number): Mark[] {
  const size = Math.min(MOST_GROWN, Math.max(1, 1 / zoom));
  const bars: Mark[] = [];
  const tags: Mark[] = [];
  for (const [box, rect] of positions.boxes) {
    if (heat.untaken.has(box)) bars.push(veil(rect, theme));
    const share = heat.share(box);
    if (share === null || rect.w <= 0) continue;
    const isOpen = heat.isOpen(box);
    bars.push(...bar(rect, share, isOpen, theme, size));
    if (isOpen || (share < TOLD_SHARE && !heat.told)) continue;
    const content = heat.told ? fitting(heat.told(box), rect.w, size) : shareText(share);
    if (content !== "") tags.push(...tag(rect, share, content, theme, size));
  }
  return [...bars, ...tags];
}

function bar({ x, y, w, h }: Rect, share: number, isOpen: boolean, theme: Theme, size: number): Mark[] {
  const [left, room, height] = [x + 5, Math.max(0, w - 10), BAR_PX * size];
  const top = isOpen ? y + 2 : y + h - height - 1.5;
  return [
    shape({ x: left, y: top, w: room, h: height }, theme.isDark ? "#ffffff1f" : "#0000001a"),
    ...(share > 0 ? [shape({ x: left, y: top, w: Math.max(1.5, room * Math.min(1, share)), h: height }, rampColor(share, theme), theme.isDark ? "" : "#0000004d")] : []),
  ];
}

/** Across the lower wall, at its right end. */
function tag({ x, y, w, h }: Rect, share: number, content: string, theme: Theme, size: number): Mark[] {
  const height = TAG_PX * size;
  const width = tagWidth(content, size);
  const at = { x: x + w - width + 4, y: y + h - height * 0.45, w: width, h: height };
  return [
    { ...shape(at, rampColor(share, theme), theme.background), r: height / 2, width: 1.25 * size },
    {
      kind: "text", id: "", text: content, x: at.x + width / 2, y: at.y + height / 2 + 0.5, size: (FONT_PX.type - 0.5) * size, weight: 600,
      fill: rampInk(share, theme), anchor: "middle", room: width, halo: "", from: 0,
    },
  ];
}

const tagWidth = (content: string, size: number): number => content.length * FONT_PX.type * 0.6 * size + 9 * size;

/** As many parts as are no wider than a box. */
function fitting(parts: readonly string[], w: number, size: number): string {
  let count = parts.length;
  while (count > 1 && tagWidth(parts.slice(0, count).join(", "), size) > w) count -= 1;
  return parts.slice(0, count).join(", ");
}

/** Grey over what did not run, with a dashed wall: not colour alone tells it. */
function veil(rect: Rect, theme: Theme): ShapeMark {
  return { ...shape(rect, theme.isDark ? "#111111b0" : "#e9ecefb8", theme.muted), r: 8, width: 1.25, isDashed: true };
}

function shape(rect: Rect, fill: string, stroke = ""): ShapeMark {
  return { kind: "shape", id: "", shape: "box", ...rect, r: 2, fill, stroke, width: 0.75 };
}
