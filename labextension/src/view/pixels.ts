/**
 * The scene as pixels, while the picture is moved: a pan shifts what was drawn and draws the strips that come into sight; a
 * zoom shows what was drawn larger or smaller, until it rests. A scene of few marks is drawn anew each time.
 */
import { paint, type Camera, type Region } from "../render/paint.js";
import type { Scene } from "../render/marks.js";

/** A scene with so many marks is kept as pixels: to draw it takes longer than a frame. */
export const MANY_MARKS = 1200;
/** A zoom that changes no more for so long is drawn as it is to be. */
const REST_MS = 120;

interface Size {
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
}

interface Drawn extends Size {
  readonly scene: Scene;
  readonly camera: Camera;
}

interface Layer {
  readonly canvas: HTMLCanvasElement;
  readonly ctx: CanvasRenderingContext2D;
}

export class Pixels {
  /** What is kept, and where it is shifted to. */
  #front: Layer | null = null;
  #back: Layer | null = null;
  /** What the front shows; null where it shows nothing of use. */
  #kept: Drawn | null = null;
  /** What was drawn last, with or without pixels. */
  #last: Drawn | null = null;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #isResting = true;
  readonly #again: () => void;

  /** `again` is called where what is seen is to be drawn anew. */
  constructor(again: () => void, until: AbortSignal) {
    this.#again = again;
    until.addEventListener("abort", () => {
      clearTimeout(this.#rest);
      this.#front = this.#back = this.#kept = this.#last = null;
    }, { once: true });
  }

  /** Draws a scene; returns the camera by which it is seen, which may differ by less than a pixel. */
  draw(ctx: CanvasRenderingContext2D, scene: Scene, camera: Camera, size: Size): Camera {
    const last = this.#last;
    const isSame = last?.scene === scene && last.width === size.width && last.height === size.height && last.ratio === size.ratio;
    if (!isSame || scene.marks.length < MANY_MARKS) return this.#drawAnew(ctx, { scene, camera, ...size });
    if (camera.zoom === (this.#kept ?? last).camera.zoom) return this.#shift(ctx, { scene, camera, ...size });
    if (this.#isResting && camera.zoom === last.camera.zoom) return this.#drawAnew(ctx, { scene, camera, ...size });
    return this.#stretch(ctx, { scene, camera, ...size });
  }

  #drawAnew(ctx: CanvasRenderingContext2D, drawn: Drawn): Camera {
    paint(ctx, drawn.scene, drawn.camera, drawn.width, drawn.height, drawn.ratio);
    this.#last = drawn;
    this.#kept = null;
    return drawn.camera;
  }

  /** Pans: moves by whole pixels of the screen. */
  #shift(ctx: CanvasRenderingContext2D, drawn: Drawn): Camera {
    const kept = this.#kept ?? this.#keep(drawn);
    if (!kept || !this.#front) return this.#drawAnew(ctx, drawn);
    const { ratio } = drawn;
    const dx = Math.round((drawn.camera.x - kept.camera.x) * ratio);
    const dy = Math.round((drawn.camera.y - kept.camera.y) * ratio);
    const camera = { zoom: kept.camera.zoom, x: kept.camera.x + dx / ratio, y: kept.camera.y + dy / ratio };
    if (dx !== 0 || dy !== 0) this.#move({ ...drawn, camera }, dx, dy);
    this.#last = drawn;
    blit(ctx, this.#front.canvas);
    return camera;
  }

  /** Draws all of it to pixels. */
  #keep(drawn: Drawn): Drawn | null {
    const front = (this.#front ??= layer());
    if (!front) return null;
    fitTo(front, drawn);
    paint(front.ctx, drawn.scene, drawn.camera, drawn.width, drawn.height, drawn.ratio);
    return (this.#kept = drawn);
  }

  /** What was drawn moves by pixels; what comes into sight is drawn. */
  #move(drawn: Drawn, dx: number, dy: number): void {
    const [front, back] = [this.#front, (this.#back ??= layer())];
    if (!front || !back) return;
    fitTo(back, drawn);
    back.ctx.setTransform(1, 0, 0, 1, 0, 0);
    back.ctx.drawImage(front.canvas, dx, dy);
    for (const strip of stripsOf(dx / drawn.ratio, dy / drawn.ratio, drawn)) paintStrip(back.ctx, drawn, strip);
    [this.#front, this.#back] = [back, front];
    this.#kept = drawn;
  }

  /** Zooms what was drawn; when the zoom rests, it is drawn as it is to be. */
  #stretch(ctx: CanvasRenderingContext2D, drawn: Drawn): Camera {
    const kept = this.#kept ?? this.#keep({ ...drawn, camera: this.#last?.camera ?? drawn.camera });
    if (!kept || !this.#front) return this.#drawAnew(ctx, drawn);
    const { camera, ratio, scene } = drawn;
    const factor = camera.zoom / kept.camera.zoom;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = scene.background;
    ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    ctx.setTransform(factor, 0, 0, factor, ratio * (camera.x - kept.camera.x * factor), ratio * (camera.y - kept.camera.y * factor));
    ctx.drawImage(this.#front.canvas, 0, 0);
    this.#last = drawn;
    this.#isResting = false;
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => {
      this.#isResting = true;
      this.#again();
    }, REST_MS);
    return camera;
  }
}

function layer(): Layer | null {
  const canvas = document.createElement("canvas");
  const ctx = canvas.getContext("2d", { alpha: false });
  return ctx && { canvas, ctx };
}

function fitTo({ canvas }: Layer, { width, height, ratio }: Size): void {
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
}

function blit(ctx: CanvasRenderingContext2D, from: HTMLCanvasElement): void {
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.drawImage(from, 0, 0);
}

/** What of a stage comes into sight when what it shows moves; one pixel more, for lines that end between pixels. */
export function stripsOf(dx: number, dy: number, { width, height }: Pick<Size, "width" | "height">): Region[] {
  const strips: Region[] = [];
  const [w, h] = [Math.min(width, Math.abs(dx) + 1), Math.min(height, Math.abs(dy) + 1)];
  if (dx !== 0) strips.push({ x: dx > 0 ? 0 : width - w, y: 0, w, h: height });
  if (dy !== 0) strips.push({ x: 0, y: dy > 0 ? 0 : height - h, w: width, h });
  return strips;
}

function paintStrip(ctx: CanvasRenderingContext2D, { scene, camera, width, height, ratio }: Drawn, strip: Region): void {
  ctx.save();
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.beginPath();
  ctx.rect(strip.x, strip.y, strip.w, strip.h);
  ctx.clip();
  paint(ctx, scene, camera, width, height, ratio, strip);
  ctx.restore();
}
