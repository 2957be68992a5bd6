/**
 * What is drawn over the picture where colour tells devices: over each box a wash in the colours of the devices that its
 * operations stand on, and a bar of these at its foot; gaps in the bar where devices share a colour. No box moves for it. Pure.
 */
import type { Positions, Rect } from "../layout/types.js";
import type { Counts } from "../model/devices.js";
import { ROOT, type BoxId } from "../model/ids.js";
import type { Mark, ShapeMark } from "./marks.js";
import { deviceColor, devicePattern, type Theme } from "./theme.js";

const BAR_PX = 6;
const MOST_GROWN = 2.2;
/** Opacity of the wash, as two hexadecimal digits: names under it stay legible. */
const WASH = "30";
const GAP_PX = 2;
/** A segment is as wide as this at least, so that no device is missed. */
const LEAST_PX = 4;
const MOST_GAPS = 40;

export interface DevicePicture {
  /** How many operations of a box stand on each device; null where nothing is known of it. */
  counts(box: BoxId): Counts | null;
  isOpen(box: BoxId): boolean;
}

export function deviceMarks(picture: DevicePicture, positions: Positions, theme: Theme, zoom: number): Mark[] {
  const size = Math.min(MOST_GROWN, Math.max(1, 1 / zoom));
  const marks: Mark[] = [];
  for (const [box, rect] of positions.boxes) {
    const counts = rect.w > 0 && box !== ROOT ? picture.counts(box) : null;
    if (!counts) continue;
    const isOpen = picture.isOpen(box);
    const height = BAR_PX * size;
    const bar = { x: rect.x + 4, y: isOpen ? rect.y + 2 : rect.y + rect.h - height - 1, w: Math.max(0, rect.w - 8), h: height };
    if (!isOpen) for (const { device, x, w } of segments(counts, rect)) marks.push(shape({ ...rect, x, w }, deviceColor(device) + WASH));
    for (const { device, x, w } of segments(counts, bar)) marks.push(...barMarks({ ...bar, x, w }, device, theme));
  }
  return marks;
}

/** A piece of a bar in a device's colour and pattern. */
export function barMarks(rect: Rect, device: number, { background }: Pick<Theme, "background">): ShapeMark[] {
  const marks = [shape(rect, deviceColor(device))];
  const every = devicePattern(device);
  if (every === 0) return marks;
  const period = Math.max(every, rect.w / MOST_GAPS);
  for (let x = rect.x + period - GAP_PX; x + GAP_PX <= rect.x + rect.w; x += period) marks.push(shape({ ...rect, x, w: GAP_PX }, background));
  return marks;
}

/** The parts of a bar, by device; what is not placed has none. */
export function segments(counts: Counts, { x, w }: Pick<Rect, "x" | "w">): { device: number; x: number; w: number }[] {
  const placed = counts.subarray(0, counts.length - 1);
  const all = placed.reduce((sum, count) => sum + count, 0);
  const used = [...placed].flatMap((count, device) => (count > 0 ? [{ device, count }] : []));
  const least = Math.min(LEAST_PX, w / Math.max(1, used.length));
  const free = w - least * used.length;
  let at = x;
  return used.map(({ device, count }) => {
    const part = { device, x: at, w: least + (free * count) / all };
    at += part.w;
    return part;
  });
}

function shape(rect: Rect, fill: string): ShapeMark {
  return { kind: "shape", id: "", shape: "box", ...rect, r: 2, fill, stroke: "", width: 0 };
}
