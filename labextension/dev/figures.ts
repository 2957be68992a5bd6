/** Figures of a picture: what can be counted of how well it is read. Pure. */
import type { Positions, Rect } from "../src/layout/types.js";
import type { Room } from "../src/layout/types.js";
import type { Link } from "../src/model/links.js";
import type { VisibleGraph } from "../src/model/visible.js";
import { textWidth } from "../src/layout/text.js";
import { seenText } from "../src/render/legible.js";
import { roomIn, zoomToFit } from "../src/view/camera.js";
import type { Scene } from "../src/render/marks.js";

/** The stage's size. */
export interface StageSize { readonly width: number; readonly height: number }
const MARGIN_PX = 16;

/** What a fitted picture may take of a stage. */
export function roomOf({ width, height }: StageSize): Room {
  return roomIn(width, height, MARGIN_PX);
}

export function zoomOf({ w, h }: Positions, stage: StageSize): number {
  return zoomToFit(w, h, roomOf(stage));
}

type Point = readonly [number, number];
type Segment = readonly [Point, Point];

function segments(route: readonly number[]): Segment[] {
  const found: Segment[] = [];
  for (let k = 0; k + 3 < route.length; k += 2) {
    found.push([[route[k] ?? 0, route[k + 1] ?? 0], [route[k + 2] ?? 0, route[k + 3] ?? 0]]);
  }
  return found;
}

const side = ([ax, ay]: Point, [bx, by]: Point, [cx, cy]: Point): number => Math.sign((bx - ax) * (cy - ay) - (by - ay) * (cx - ax));

function doCross([a, b]: Segment, [c, d]: Segment): boolean {
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
}

/** Lines beyond which crossings are not counted: there are then more than anyone can follow. */
const MOST_COUNTED = 1500;

/** Pairs of lines that cross and have different sources; -1 where there are too many lines. */
export function crossings(links: readonly Link[], { routes }: Positions): number {
  const lines = links.flatMap((link) => {
    const route = routes.get(link.id);
    return route && route.length >= 4 ? [{ link, parts: segments(route), ...extent(route) }] : [];
  });
  if (lines.length > MOST_COUNTED) return -1;
  lines.sort((a, b) => a.left - b.left);
  let count = 0;
  lines.forEach((one, i) => {
    for (let k = i + 1; k < lines.length; k++) {
      const other = lines[k];
      if (!other || other.left > one.right) break;
      if (other.top > one.bottom || other.bottom < one.top || one.link.source === other.link.source) continue;
      if (one.parts.some((part) => other.parts.some((its) => doCross(part, its)))) count += 1;
    }
  });
  return count;
}

function extent(route: readonly number[]): { left: number; right: number; top: number; bottom: number } {
  const xs = route.filter((_, k) => k % 2 === 0);
  const ys = route.filter((_, k) => k % 2 === 1);
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
}

/** Length in pixels at zoom 1 of the longest line. */
export function longestLine({ routes }: Positions): number {
  let longest = 0;
  for (const route of routes.values()) {
    longest = Math.max(longest, segments(route).reduce((sum, [a, b]) => sum + Math.hypot(b[0] - a[0], b[1] - a[1]), 0));
  }
  return Math.round(longest);
}

/** Texts of a picture at a zoom. */
export interface Labels {
  /** In CSS pixels, of all texts that are drawn; 0 where a box's name is not. */
  readonly smallest: number;
  /** How many names are cut to a letter or nothing. */
  readonly cut: number;
  /** Second lines that are left out, for they could not be read. */
  readonly omitted: number;
}

export function labels(scene: Scene, zoom: number): Labels {
  let smallest = Infinity;
  let [cut, omitted] = [0, 0];
  for (const mark of scene.marks) {
    if (mark.kind !== "text" || mark.text === "") continue;
    const isName = mark.id !== "" && mark.weight === 600;
    const seen = seenText(mark, zoom, (text, size, weight) => textWidth(text, size, weight === 600));
    if (seen) smallest = Math.min(smallest, seen.size * zoom);
    else if (isName) smallest = 0;
    else if (mark.id !== "") omitted += 1;
    if (isName && seen && seen.text !== mark.text && seen.text.replace("\u2026", "").length < 2) cut += 1;
  }
  return { smallest: smallest === Infinity ? 0 : Math.round(smallest * 10) / 10, cut, omitted };
}

/** Shares of the stage's width and height that a fitted picture fills, and of its area that leaf and closed boxes do. */
export function cover(graph: VisibleGraph, positions: Positions, stage: StageSize): { width: number; height: number; boxes: number } {
  const zoom = zoomOf(positions, stage);
  const [width, height] = [stage.width - 2 * MARGIN_PX, stage.height - 2 * MARGIN_PX];
  let area = 0;
  for (const { id, isOpen } of graph.boxes.values()) {
    const rect = isOpen ? undefined : positions.boxes.get(id);
    if (rect) area += rect.w * rect.h;
  }
  const percent = (share: number): number => Math.round(100 * share);
  return {
    width: percent((positions.w * zoom) / width), height: percent((positions.h * zoom) / height),
    boxes: percent((area * zoom * zoom) / (width * height)),
  };
}

const isBefore = (a: number, aSize: number, b: number): boolean => a + aSize <= b;

/** "left" in a row, "above" in a column, or the reverse of these; "" of boxes in no row or column: what is wrapped anew is that. */
function relation(a: Rect, b: Rect): "left" | "right" | "above" | "below" | "" {
  const [isAbove, isBelow] = [isBefore(a.y, a.h, b.y), isBefore(b.y, b.h, a.y)];
  const [isLeft, isRight] = [isBefore(a.x, a.w, b.x), isBefore(b.x, b.w, a.x)];
  if (!isAbove && !isBelow) return isLeft ? "left" : isRight ? "right" : "";
  return isLeft || isRight ? "" : isAbove ? "above" : "below";
}

const REVERSE = { left: "right", right: "left", above: "below", below: "above", "": "none" } as const;

/** Percent of pairs of siblings that stand the other way round: in a row left for right, else above for below. */
export function flips(graph: VisibleGraph, before: Positions, after: Positions): number {
  let pairs = 0;
  let flipped = 0;
  for (const { children } of graph.boxes.values()) {
    const known = children.filter((id) => before.boxes.has(id) && after.boxes.has(id));
    known.forEach((a, i) => {
      for (const b of known.slice(i + 1)) {
        const [a0, b0, a1, b1] = [before.boxes.get(a), before.boxes.get(b), after.boxes.get(a), after.boxes.get(b)];
        if (!a0 || !b0 || !a1 || !b1) continue;
        pairs += 1;
        if (REVERSE[relation(a0, b0)] === relation(a1, b1)) flipped += 1;
      }
    });
  }
  return pairs === 0 ? 0 : Math.round((1000 * flipped) / pairs) / 10;
}
