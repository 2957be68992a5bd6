/**
 * Draws a scene on a canvas: the only place that does. Marks outside the canvas are skipped, and
 * what would be too small to see is drawn more simply.
 */
import { isTooSmall, seenText, sizeAt, type SeenText } from "./legible.js";
import type { Mark, PathMark, Scene, ShapeMark, TextMark } from "./marks.js";
import { traceOutline } from "./outline.js";
import { arrowHead, trace, traceStraight } from "./trace.js";

export interface Camera {
  /** Where the picture's origin lies on the canvas, in CSS pixels. */
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

/** Below this zoom lines are straight and shapes are plain rectangles. */
const FAR = 0.25;

interface View {
  readonly ctx: CanvasRenderingContext2D;
  readonly zoom: number;
  readonly font: string;
  /** The visible part of the picture. */
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A part of the canvas, in CSS pixels. */
export interface Region {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** Draws all of a canvas, or a part of it to which it is clipped. */
export function paint(
  ctx: CanvasRenderingContext2D, scene: Scene, camera: Camera, width: number, height: number, ratio: number,
  part: Region = { x: 0, y: 0, w: width, h: height },
): void {
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = scene.background;
  ctx.fillRect(part.x, part.y, part.w, part.h);
  paintOver(ctx, scene, camera, part, ratio);
}

/** Draws marks over what is there. */
export function paintOver(
  ctx: CanvasRenderingContext2D, scene: Pick<Scene, "marks" | "font">, camera: Camera, part: Region, ratio: number,
): void {
  const { zoom } = camera;
  ctx.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * camera.x, ratio * camera.y);
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  const view: View = {
    ctx, zoom, font: scene.font, left: (part.x - camera.x) / zoom, top: (part.y - camera.y) / zoom,
    right: (part.x + part.w - camera.x) / zoom, bottom: (part.y + part.h - camera.y) / zoom,
  };
  const { marks } = scene;
  const bounds = boundsOf(marks);
  for (let k = 0; k < marks.length; k++) if (isInside(bounds, 4 * k, view)) paintMark(view, marks[k]!);
  ctx.globalAlpha = 1;
}

function paintMark(view: View, mark: Mark): void {
  if (mark.kind === "shape") paintShape(view, mark);
  else if (mark.kind === "path") paintPath(view, mark);
  else paintText(view, mark);
}

function paintShape({ ctx, zoom }: View, mark: ShapeMark): void {
  ctx.globalAlpha = 1;
  ctx.fillStyle = mark.fill;
  ctx.strokeStyle = mark.stroke;
  ctx.lineWidth = mark.width;
  if (zoom < FAR) {
    if (mark.fill) ctx.fillRect(mark.x, mark.y, mark.w, mark.h);
    if (mark.stroke && mark.w * zoom > 3) ctx.strokeRect(mark.x, mark.y, mark.w, mark.h);
    return;
  }
  ctx.beginPath();
  traceOutline(ctx, mark);
  if (mark.fill) ctx.fill();
  if (!mark.stroke) return;
  if (mark.isDashed) ctx.setLineDash([5, 4]);
  ctx.stroke();
  if (mark.isDashed) ctx.setLineDash([]);
}

function paintPath({ ctx, zoom }: View, mark: PathMark): void {
  const isFar = zoom < FAR;
  ctx.globalAlpha = mark.opacity;
  ctx.strokeStyle = mark.stroke;
  // A line is never thinner than can be seen.
  ctx.lineWidth = Math.max(mark.width, 0.6 / zoom);
  ctx.setLineDash(mark.isDashed ? [5, 4] : []);
  ctx.beginPath();
  if (isFar) traceStraight(ctx, mark.route);
  else trace(ctx, mark.route);
  ctx.stroke();
  ctx.setLineDash([]);
  if (mark.hasArrow && !isFar) paintHead(ctx, mark);
}

function paintHead(ctx: CanvasRenderingContext2D, mark: PathMark): void {
  const [x = 0, y = 0, lx = 0, ly = 0, rx = 0, ry = 0] = arrowHead(mark.route, 6 + mark.width);
  ctx.fillStyle = mark.stroke;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(lx, ly);
  ctx.lineTo(rx, ry);
  ctx.fill();
}

function paintText({ ctx, zoom, font }: View, mark: TextMark): void {
  const seen = cachedText(ctx, mark, zoom, font);
  if (!seen) return;
  ctx.globalAlpha = 1;
  ctx.font = `${mark.weight} ${seen.size}px ${font}`;
  ctx.textAlign = mark.anchor === "middle" ? "center" : mark.anchor;
  if (mark.halo) {
    ctx.strokeStyle = mark.halo;
    ctx.lineWidth = 3;
    ctx.strokeText(seen.text, mark.x + seen.dx, mark.y);
  }
  ctx.fillStyle = mark.fill;
  ctx.fillText(seen.text, mark.x + seen.dx, mark.y);
}

const known = new Map<string, SeenText | null>();
const MOST_KNOWN = 20_000;

/** Measuring is dear; a text of one style, room and zoom is cut once. */
function cachedText(ctx: CanvasRenderingContext2D, mark: TextMark, zoom: number, font: string): SeenText | null {
  if (isTooSmall(mark, zoom)) return null;
  const key = `${mark.anchor} ${mark.weight} ${mark.size} ${sizeAt(zoom, mark)} ${Math.round(mark.room)} ${font} ${mark.text}`;
  let seen = known.get(key);
  if (seen === undefined) {
    if (known.size > MOST_KNOWN) known.clear();
    seen = seenText(mark, zoom, (text, size, weight) => {
      ctx.font = `${weight} ${size}px ${font}`;
      return ctx.measureText(text).width;
    });
    known.set(key, seen);
  }
  return seen;
}

/** Left, top, right and bottom of each mark, by the list of marks: a list is drawn many times while it is looked at. */
const boundsKnown = new WeakMap<readonly Mark[], Float64Array>();

function boundsOf(marks: readonly Mark[]): Float64Array {
  let bounds = boundsKnown.get(marks);
  if (!bounds) {
    bounds = new Float64Array(4 * marks.length);
    for (let k = 0; k < marks.length; k++) bounds.set(boundsOfMark(marks[k]!), 4 * k);
    boundsKnown.set(marks, bounds);
  }
  return bounds;
}

function boundsOfMark(mark: Mark): readonly [number, number, number, number] {
  if (mark.kind === "path") return boundsOfRoute(mark.route);
  if (mark.kind === "shape") return [mark.x - mark.width, mark.y - mark.width, mark.x + mark.w + mark.width, mark.y + mark.h + mark.width];
  const left = mark.anchor === "start" ? 0 : mark.room;
  return [mark.x - left, mark.y - 10, mark.x + mark.room, mark.y + 10];
}

function boundsOfRoute(route: readonly number[]): readonly [number, number, number, number] {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let k = 0; k < route.length; k += 2) {
    const [x, y] = [route[k] ?? 0, route[k + 1] ?? 0];
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  // Arrow heads stand beside the line.
  return [left - 6, top - 6, right + 6, bottom + 6];
}

function isInside(bounds: Float64Array, k: number, view: View): boolean {
  return bounds[k + 2]! >= view.left && bounds[k]! <= view.right && bounds[k + 3]! >= view.top && bounds[k + 1]! <= view.bottom;
}
