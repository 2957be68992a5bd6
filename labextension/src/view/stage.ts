/** The canvas: keeps scene and camera, draws at most once a frame, moves from layout to layout. */
import { EMPTY, type Positions, type Rect } from "../layout/types.js";
import { boxAt } from "../layout/hit.js";
import { between } from "../layout/tween.js";
import type { BoxId } from "../model/ids.js";
import { Signal } from "../model/signal.js";
import { paintOver, type Camera } from "../render/paint.js";
import { hoverMarks } from "../render/hover.js";
import { scene, type Picture } from "../render/scene.js";
import type { Mark, Scene } from "../render/marks.js";
import { LIGHT, plain, type Theme } from "../render/theme.js";
import type { SessionState } from "../wire/messages.js";
import { bringIn, fitIn, holdStill, showNear, showOpened, zoomAt } from "./camera.js";
import { make, OWN_KEYS } from "./dom.js";
import { BreakpointLayer } from "./breakpoint_layer.js";
import { NoteLayer } from "./note_layer.js";
import { Pixels } from "./pixels.js";
import { RunningLayer } from "./running_layer.js";

const MOVE_MS = 180;
/** Below this zoom names are cut to be read. */
export const LEGIBLE = 0.62;
/** What is sought is shown at this zoom at least. */
const READABLE = 0.85;
/** Pictures with more boxes than this change at once. */
const MOST_MOVING = 600;

/** What is drawn over boxes, at their places and at a zoom. */
export type Overlay = (positions: Positions, theme: Theme, zoom: number) => readonly Mark[];

export class Stage {
  readonly element = make("div", {
    class: "fs-stage", tabindex: "0", role: "application", "aria-roledescription": "graph", "data-testid": "fs-stage",
    ...OWN_KEYS,
  });
  readonly canvas = make("canvas", { "aria-hidden": "true" });
  readonly #ctx: CanvasRenderingContext2D | null;
  readonly #until: AbortSignal;
  #theme: Theme = LIGHT;
  #picture: Picture | null = null;
  #run: SessionState | null = null;
  #positions: Positions = EMPTY;
  /** Where a movement started, and when; null when nothing moves. */
  #moving: { from: Positions; camera: Camera; startedAt: number } | null = null;
  #camera: Camera = { x: 0, y: 0, zoom: 1 };
  /** The camera on its way there. */
  #seenFrom: Camera = this.#camera;
  #scene: Scene | null = null;
  readonly #pixels: Pixels;
  /** What runs, drawn over the scene. */
  readonly running = new RunningLayer();
  /** What is fetched and fed, and the values. */
  readonly notes = new NoteLayer();
  readonly breakpoints = new BreakpointLayer();
  /** Where the boxes are seen now, on the way to their positions. */
  #seen: Positions = EMPTY;
  /** The box under the pointer, in whichever view. */
  #hover: BoxId | null = null;
  #frame = 0;
  #width = 0;
  #height = 0;
  /** Another part of the picture is seen. */
  readonly moved = new Signal<void>();
  #lit: ReadonlySet<BoxId> | null = null;
  #overlay: Overlay | null = null;
  /** What was told last of where the picture lies. */
  #told: Camera = this.#camera;
  #toldSize = 0;
  /** Called when the stage is first seen: only then its fonts and colours are known. */
  onShown: () => void = () => undefined;
  /** Until the user moves the picture, it is fitted to the stage. */
  #isFitted = true;
  /** Whether all of it is to be seen, as was asked for, even where its names cannot be read. */
  #isWhole = false;
  /** Whether the user has moved the picture by hand since it last showed something by itself. */
  #isByHand = false;

  constructor(until: AbortSignal) {
    this.#until = until;
    this.#pixels = new Pixels(() => this.#draw(), until);
    this.#ctx = this.canvas.getContext("2d");
    this.element.append(this.canvas);
    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(this.element);
    until.addEventListener("abort", () => {
      observer.disconnect();
      cancelAnimationFrame(this.#frame);
    }, { once: true });
  }

  get positions(): Positions {
    return this.#positions;
  }

  get theme(): Theme {
    return this.#theme;
  }

  /** The part of the picture that is seen. */
  get sight(): Rect {
    const { x, y, zoom } = this.#camera;
    return { x: -x / zoom, y: -y / zoom, w: this.#width / zoom, h: this.#height / zoom };
  }

  /** Where a box is seen on the stage; null where it is not in the picture. */
  seenRect(box: BoxId): Rect | null {
    const rect = this.#positions.boxes.get(box);
    const { x, y, zoom } = this.#camera;
    return rect ? { x: rect.x * zoom + x, y: rect.y * zoom + y, w: rect.w * zoom, h: rect.h * zoom } : null;
  }

  /** Brings a point of the picture to the middle. */
  centerOn(x: number, y: number): void {
    const { zoom } = this.#camera;
    this.#take({ zoom, x: this.#width / 2 - x * zoom, y: this.#height / 2 - y * zoom });
  }

  /** All other boxes are faint; null for none. */
  setLit(lit: ReadonlySet<BoxId> | null): void {
    if (lit === this.#lit) return;
    this.#lit = lit;
    this.element.dataset.lit = lit ? String(lit.size) : "";
    this.#draw();
  }

  get zoom(): number {
    return this.#camera.zoom;
  }

  /** What is shown; null before the first layout. */
  get picture(): Picture | null {
    return this.#picture;
  }

  /** The picture as it will be when all has moved to its place. */
  currentScene(theme: Theme = this.#theme): Scene | null {
    return this.#picture && scene(this.#picture, this.#positions, this.#run, theme);
  }

  /** Whether an overlay's colours stand alone. */
  get isPlain(): boolean {
    return this.#overlay !== null;
  }

  /** What the scene on the canvas is drawn with. */
  get #inks(): Theme {
    return this.#overlay === null ? this.#theme : plain(this.#theme);
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.#renew();
  }

  setRun(run: SessionState | null): void {
    const isOther = (run?.state === "closed") !== (this.#run?.state === "closed");
    this.#run = run;
    if (isOther) this.#renew();
  }

  /** Draws what runs anew: chips, what is held, values on their way. */
  renewRunning(): void {
    this.element.dataset.tokens = String(this.running.tokens);
    this.element.dataset.held = this.running.held ?? "";
    this.element.dataset.failed = this.running.failedBox ?? "";
    this.element.dataset.breakpoints = [...this.breakpoints.boxes(this.running.edgePaths).keys()].join(" ");
    this.#draw();
  }

  /** The same boxes with another selection. */
  setSelection(selected: Pick<Picture, "selection" | "related">): void {
    if (!this.#picture) return;
    this.#picture = { ...this.#picture, ...selected };
    this.#renew();
  }

  /** Marks that a panel draws over the picture, wherever its boxes are; null for none. */
  setOverlay(overlay: Overlay | null): void {
    const isOther = (overlay === null) !== (this.#overlay === null);
    if (overlay === null && !isOther) return;
    this.#overlay = overlay;
    if (isOther) this.#renew();
    else this.#draw();
  }

  /** Marks the box under the pointer. */
  setHover(box: BoxId | null): void {
    if (box === this.#hover) return;
    this.#hover = box;
    this.element.dataset.hover = box ?? "";
    this.#draw();
  }

  /**
   * A new layout. The box `hold` stays where it is seen, if it fits there; the box `sought` comes into sight.
   */
  show(picture: Picture, positions: Positions, hold: BoxId | null, sought: BoxId | null = null): void {
    const known = this.#positions;
    const camera = this.#camera;
    this.#picture = picture;
    this.#positions = positions;
    const [before, after] = [known.boxes.get(hold ?? ""), positions.boxes.get(hold ?? "")];
    if (before && after) {
      this.#isFitted = false;
      this.#isByHand = false;
      this.#camera = showOpened(holdStill(camera, before, after), after, this.#width, this.#height, LEGIBLE);
    } else if (this.#isFitted) {
      this.#camera = this.#fitted();
    }
    const place = positions.boxes.get(sought ?? "");
    if (place) this.#camera = showNear(this.#camera, place, this.#width, this.#height, READABLE);
    this.#moving = this.#movement();
    this.#renew();
  }

  /** From where the picture moves; null where it changes at once. */
  #movement(): { from: Positions; camera: Camera; startedAt: number } | null {
    const isQuiet = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const canMove = this.#seen !== EMPTY && this.#positions.boxes.size <= MOST_MOVING && !isQuiet;
    return canMove ? { from: this.#seen, camera: this.#seenFrom, startedAt: performance.now() } : null;
  }

  /** Whether the picture is shown as it fits the stage, and follows its size. */
  get isFitted(): boolean {
    return this.#isFitted;
  }

  fit(): void {
    this.#isFitted = this.#isWhole = true;
    this.#isByHand = true;
    this.#moving = null;
    this.#camera = this.#fitted();
    this.#draw();
  }

  zoomBy(factor: number, x = this.#width / 2, y = this.#height / 2): void {
    this.#take(zoomAt(this.#camera, factor, x, y));
  }

  panBy(dx: number, dy: number): void {
    this.#take({ ...this.#camera, x: this.#camera.x + dx, y: this.#camera.y + dy });
  }

  /** Brings a box into sight. */
  reveal(box: BoxId): void {
    const rect = this.#positions.boxes.get(box);
    if (rect) this.#glide(bringIn(this.#camera, rect, this.#width, this.#height));
  }

  /** Brings a box into sight with what is around it, large enough to be read. */
  revealNear(box: BoxId): void {
    const rect = this.#positions.boxes.get(box);
    if (rect) this.#glide(showNear(this.#camera, rect, this.#width, this.#height, READABLE));
  }

  /** Brings a box into sight, unless the user has moved the picture by hand. */
  keepInSight(box: BoxId): void {
    if (!this.#isByHand) this.reveal(box);
  }

  /** From now on the picture may move by itself again. */
  letGo(): void {
    this.#isByHand = false;
  }

  /** The box under a point of the stage. */
  hit(x: number, y: number): BoxId | null {
    const { x: px, y: py } = this.toPicture(x, y);
    return this.#picture && boxAt(this.#picture.graph, this.#positions, px, py);
  }

  toPicture(x: number, y: number): { x: number; y: number } {
    return { x: (x - this.#camera.x) / this.#camera.zoom, y: (y - this.#camera.y) / this.#camera.zoom };
  }

  /** Where the user has moved the picture to. */
  #take(camera: Camera): void {
    this.#isFitted = false;
    this.#isByHand = true;
    if (this.#moving) this.#scene = null;
    this.#moving = null;
    this.#camera = camera;
    this.#draw();
  }

  /** Moves to where something is seen, in the time in which boxes move. */
  #glide(camera: Camera): void {
    const { x, y, zoom } = this.#camera;
    if (!this.isShown || (camera.x === x && camera.y === y && camera.zoom === zoom)) return;
    this.#isFitted = false;
    this.#camera = camera;
    this.#moving = this.#movement();
    this.#renew();
  }

  #fitted(): Camera {
    return fitIn(this.#positions.w, this.#positions.h, this.#width, this.#height, this.#isWhole ? 0 : LEGIBLE);
  }

  get isShown(): boolean {
    return this.#width > 0;
  }

  #resize(): void {
    const isFirst = this.#width === 0 && this.element.clientWidth > 0;
    if (this.element.clientWidth === 0) return;
    this.#width = this.element.clientWidth;
    this.#height = this.element.clientHeight;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.#width * ratio);
    this.canvas.height = Math.round(this.#height * ratio);
    if (this.#isFitted) this.#camera = this.#fitted();
    if (isFirst) this.onShown();
    // At once: a resized canvas is empty, and would be seen so for a frame.
    this.#paint();
  }

  #renew(): void {
    this.#scene = null;
    this.#draw();
  }

  #draw(): void {
    if (this.#frame || this.#until.aborted) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #paint(): void {
    if (!this.#ctx || !this.#picture || this.#width === 0) return;
    let camera = this.#camera;
    if (this.#moving) camera = this.#step(this.#picture, this.#moving);
    else this.#seen = this.#positions;
    this.#seenFrom = camera;
    this.#scene ??= this.currentScene(this.#inks);
    const ratio = devicePixelRatio || 1;
    const now = performance.now();
    const seen = this.#scene ? this.#pixels.draw(this.#ctx, this.#scene, camera, { width: this.#width, height: this.#height, ratio }) : camera;
    const over = this.#overlay?.(this.#seen, this.#theme, camera.zoom) ?? [];
    const hovered = hoverMarks(this.#seen.boxes.get(this.#hover ?? ""), this.#theme, camera.zoom);
    this.#paintOver([...over, ...hovered, ...this.running.marks(this.#seen, this.#theme, now, camera.zoom)], seen, ratio);
    if (this.#lit) this.#veil(this.#ctx, this.#lit, seen, ratio);
    const marks = [this.notes, this.breakpoints].flatMap((layer) => layer.marks(this.running.edgePaths, this.#seen, this.#theme, camera.zoom));
    this.#paintOver(marks, seen, ratio);
    if (this.running.moves(now)) this.#draw();
    this.#tellMoved(camera);
    this.element.dataset.zoom = camera.zoom.toFixed(3);
    this.element.dataset.inSight = String(this.#isInSight(this.running.held));
  }

  #paintOver(marks: readonly Mark[], camera: Camera, ratio: number): void {
    if (!this.#ctx || marks.length === 0) return;
    const all = { x: 0, y: 0, w: this.#width, h: this.#height };
    paintOver(this.#ctx, { marks, font: this.#theme.font }, camera, all, ratio);
  }

  /** Makes all but some boxes faint. */
  #veil(ctx: CanvasRenderingContext2D, lit: ReadonlySet<BoxId>, camera: Camera, ratio: number): void {
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.globalAlpha = 0.74;
    ctx.fillStyle = this.#theme.background;
    ctx.beginPath();
    ctx.rect(0, 0, this.#width, this.#height);
    for (const id of lit) {
      const rect = this.#seen.boxes.get(id);
      if (rect) ctx.rect(rect.x * camera.zoom + camera.x - 3, rect.y * camera.zoom + camera.y - 3, rect.w * camera.zoom + 6, rect.h * camera.zoom + 6);
    }
    ctx.fill("evenodd");
    ctx.globalAlpha = 1;
  }

  #tellMoved(camera: Camera): void {
    const told = this.#told;
    if (told.x === camera.x && told.y === camera.y && told.zoom === camera.zoom && this.#toldSize === this.#width + this.#height) return;
    this.#told = camera;
    this.#toldSize = this.#width + this.#height;
    this.moved.emit();
  }

  /** Whether all of a box is, or will be, on the stage. */
  #isInSight(box: BoxId | null): boolean {
    const rect = this.#positions.boxes.get(box ?? "");
    if (!rect) return false;
    const { x, y, zoom } = this.#camera;
    const [left, top] = [rect.x * zoom + x, rect.y * zoom + y];
    return left >= 0 && top >= 0 && left + rect.w * zoom <= this.#width && top + rect.h * zoom <= this.#height;
  }

  /** One frame of a movement. */
  #step(picture: Picture, moving: { from: Positions; camera: Camera; startedAt: number }): Camera {
    const t = Math.min(1, (performance.now() - moving.startedAt) / MOVE_MS);
    if (t >= 1) {
      this.#seen = this.#positions;
      this.#moving = null;
      this.#scene = null;
      return this.#camera;
    }
    const eased = 1 - (1 - t) ** 3;
    this.#seen = between(picture.graph, moving.from, this.#positions, eased);
    this.#scene = scene(picture, this.#seen, this.#run, this.#inks);
    this.#draw();
    const mix = (a: number, b: number): number => a + (b - a) * eased;
    return {
      x: mix(moving.camera.x, this.#camera.x), y: mix(moving.camera.y, this.#camera.y),
      zoom: mix(moving.camera.zoom, this.#camera.zoom),
    };
  }
}
