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

export function paint(
  ctx: CanvasRenderingContext2D, scene: Scene, camera: Camera, width: number, height: number, ratio: number,
): void {
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = scene.background;
  ctx.fillRect(0, 0, width, height);
  paintOver(ctx, scene, camera, width, height, ratio);
}

/** Draws marks over what is there. */
export function paintOver(
  ctx: CanvasRenderingContext2D, scene: Pick<Scene, "marks" | "font">, camera: Camera, width: number, height: number, ratio: number,
): void {
  const { zoom } = camera;
  ctx.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * camera.x, ratio * camera.y);
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  const view: View = {
    ctx, zoom, font: scene.font, left: -camera.x / zoom, top: -camera.y / zoom,
    right: (width - camera.x) / zoom, bottom: (height - camera.y) / zoom,
  };
  for (const mark of scene.marks) if (isInside(mark, view)) paintMark(view, mark);
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
    ctx.strokeText(seen.text, mark.x, mark.y);
  }
  ctx.fillStyle = mark.fill;
  ctx.fillText(seen.text, mark.x, mark.y);
}

const known = new Map<string, SeenText | null>();
const MOST_KNOWN = 20_000;

/** Measuring is dear; a text of one style, room and zoom is cut once. */
function cachedText(ctx: CanvasRenderingContext2D, mark: TextMark, zoom: number, font: string): SeenText | null {
  if (isTooSmall(mark, zoom)) return null;
  const key = `${mark.weight} ${mark.size} ${sizeAt(zoom, mark)} ${Math.round(mark.room)} ${font} ${mark.text}`;
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

function isInside(mark: Mark, view: View): boolean {
  if (mark.kind === "path") return isRouteInside(mark.route, view);
  if (mark.kind === "shape") return overlaps(view, mark.x, mark.y, mark.x + mark.w, mark.y + mark.h);
  const left = mark.anchor === "start" ? 0 : mark.room;
  return overlaps(view, mark.x - left, mark.y - 10, mark.x + mark.room, mark.y + 10);
}

function isRouteInside(route: readonly number[], view: View): boolean {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let k = 0; k < route.length; k += 2) {
    const [x, y] = [route[k] ?? 0, route[k + 1] ?? 0];
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  return overlaps(view, left - 4, top - 4, right + 4, bottom + 4);
}

function overlaps(view: View, left: number, top: number, right: number, bottom: number): boolean {
  return right >= view.left && left <= view.right && bottom >= view.top && top <= view.bottom;
}
