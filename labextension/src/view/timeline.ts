/** The timeline's canvas: what part of time is seen, what is chosen in it, and drawing at most once a frame. */
import { placeLanes, ROW_PX, zoomTime, type PlacedLane, type PlacedRow, type TimeWindow } from "../layout/timeline.js";
import { arrowsOf, type Arrow } from "../model/arrows.js";
import { extentOf, type RecordedStep, type Recording } from "../model/recording.js";
import type { TimeRange } from "../model/range.js";
import type { ChosenIteration } from "../model/running.js";
import { Signal } from "../model/signal.js";
import { firstAfter, rowsOf, type Slices } from "../model/timeline_rows.js";
import { footOf, namesWidthOf, RULER_PX, TimelinePainter, type Hit, type TimelinePicture } from "../render/timeline.js";
import { LIGHT, type Theme } from "../render/theme.js";
import { make, OWN_KEYS } from "./dom.js";

/** A slice that is chosen: in a row, by its place there. */
interface Chosen {
  readonly slices: Slices;
  readonly at: number;
}

/** The room for lanes' names: so much at least, and at most where they are long. */
const NAMES_PX = { least: 112, most: 190 } as const;
const NARROW_NAMES_PX = { least: 76, most: 112 } as const;
/** Below this width the lanes' names take less room. */
const NARROW_PX = 620;
/** A part of a step is shown with this much around it. */
const MARGIN = 0.04;
/** What is gone to is shown this wide at least. */
const LEGIBLE_PX = 90;

export class Timeline {
  readonly canvas = make("canvas", {
    class: "fs-timeline-canvas", tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-label": "Timeline: nothing is recorded",
    "data-testid": "fs-timeline-canvas", ...OWN_KEYS,
  });
  /** A slice was chosen, by a click or by keys. */
  readonly chose = new Signal<{ readonly slices: Slices; readonly at: number; readonly lane: number }>();
  /** Another stretch is selected, or what it holds is told anew. */
  readonly selected = new Signal<void>();
  #range: TimeRange | null = null;
  /** Another part of time is seen. */
  readonly moved = new Signal<void>();
  readonly #painter: TimelinePainter | null;
  readonly #until: AbortSignal;
  #recording: Recording | null = null;
  #lanes: readonly PlacedLane[] = [];
  #lanesHeight = 0;
  #window: TimeWindow = { begin_ns: 0, ns_per_px: 1 };
  #extent = { begin_ns: 0, end_ns: 1 };
  #scroll = 0;
  #width = 0;
  #height = 0;
  #frame = 0;
  #theme: Theme = LIGHT;
  #shares: ArrayLike<number> = [];
  #selected: Uint8Array | null = null;
  #iteration: ChosenIteration | null = null;
  #steps: readonly RecordedStep[] = [];
  #chosen: Chosen | null = null;
  #arrows: readonly Arrow[] = [];
  /** Shown once the canvas has a size. */
  /** The room that names take, of which recording at which width. */
  #namesWidth: readonly [Recording | null, number, number] = [null, 0, 0];
  #wanted: { readonly begin_ns: number; readonly end_ns: number } | null = null;

  constructor(until: AbortSignal) {
    this.#until = until;
    const ctx = this.canvas.getContext("2d", { alpha: false });
    this.#painter = ctx && new TimelinePainter(ctx);
    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(this.canvas);
    until.addEventListener("abort", () => {
      observer.disconnect();
      cancelAnimationFrame(this.#frame);
    }, { once: true });
  }

  get recording(): Recording | null {
    return this.#recording;
  }

  get width(): number {
    return this.#width;
  }

  get namesWidth(): number {
    const { least, most } = this.#width < NARROW_PX ? NARROW_NAMES_PX : NAMES_PX;
    if (!this.#recording) return least;
    const [recording, width, known] = this.#namesWidth;
    if (recording === this.#recording && width === this.#width) return known;
    const found = namesWidthOf(this.#recording, least, most);
    this.#namesWidth = [this.#recording, this.#width, found];
    return found;
  }

  /** The whole name of the lane whose name stands there; "" for none. */
  nameAt(x: number, y: number): string {
    const at = y - RULER_PX + this.#scroll;
    const lane = x < this.namesWidth && y > RULER_PX ? this.#lanes.find((one) => one.y <= at && at <= one.y + one.h) : undefined;
    return lane ? (this.#recording?.lanes[lane.lane]?.name ?? "") : "";
  }

  /** What times are told from: the begin of the chosen step, else of what was recorded. */
  get origin_ns(): number {
    return this.#recording?.step.begin_ns ?? this.#extent.begin_ns;
  }

  /** The part of time that is seen. */
  get sight(): { readonly begin_ns: number; readonly end_ns: number } {
    return { begin_ns: this.#window.begin_ns, end_ns: this.#window.begin_ns + this.seen_ns };
  }

  /** Nanoseconds that are seen. */
  get seen_ns(): number {
    return this.#room * this.#window.ns_per_px;
  }

  get #foot(): number {
    return this.#recording ? footOf({ recording: this.#recording }) : 0;
  }

  get #room(): number {
    return Math.max(1, this.#width - this.namesWidth);
  }

  get #most_ns_per_px(): number {
    return ((this.#extent.end_ns - this.#extent.begin_ns) * (1 + 2 * MARGIN)) / this.#room;
  }

  /** Takes a recording; another part of the same step leaves what is seen in its place, another step is shown whole. */
  take(recording: Recording | null): void {
    const isSame = recording !== null && recording.step.number === this.#recording?.step.number;
    this.#recording = recording;
    this.#chosen = null;
    this.#arrows = recording ? arrowsOf(recording) : [];
    const { lanes, h } = placeLanes(recording ? rowsOf(recording) : []);
    [this.#lanes, this.#lanesHeight] = [lanes, h];
    if (recording && !isSame) this.#extent = extentOf(recording);
    if (!isSame) this.#range = null;
    if (isSame) this.#draw();
    else this.fit();
    this.selected.emit();
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.#draw();
  }

  /** What each node's slices are coloured by. */
  setShares(shares: ArrayLike<number>): void {
    this.#shares = shares;
    this.#draw();
  }

  /** Marks what is selected: nodes, and an iteration. */
  mark(selected: Uint8Array | null, iteration: ChosenIteration | null): void {
    [this.#selected, this.#iteration] = [selected, iteration];
    this.#draw();
  }

  /** The steps that are kept, for the ruler. */
  setSteps(steps: readonly RecordedStep[]): void {
    this.#steps = steps;
    this.#draw();
  }

  /** Shows all that was recorded. */
  fit(): void {
    this.show(this.#extent.begin_ns, this.#extent.end_ns);
  }

  /** Shows a stretch of time, with a little around it. */
  show(begin_ns: number, end_ns: number): void {
    if (this.#width === 0) {
      this.#wanted = { begin_ns, end_ns };
      return;
    }
    const margin = (end_ns - begin_ns) * MARGIN;
    this.#look({ begin_ns: begin_ns - margin, ns_per_px: Math.max(1e-3, end_ns - begin_ns + 2 * margin) / this.#room });
  }

  /** The stretch of time that is selected; null for none. */
  get range(): TimeRange | null {
    return this.#range;
  }

  /** Selects what lies between two places of the canvas; null for nothing. */
  select(places: readonly [number, number] | null): void {
    const at = (x: number): number => this.#window.begin_ns + Math.max(0, Math.min(this.#room, x - this.namesWidth)) * this.#window.ns_per_px;
    const ends = places?.map(at).sort((a, b) => a - b);
    this.#range = ends ? { begin_ns: ends[0] ?? 0, end_ns: ends[1] ?? 0 } : null;
    this.#draw();
    this.selected.emit();
  }

  /** Selects what is seen: for keys. */
  selectSight(): void {
    this.select([this.namesWidth, this.#width]);
  }

  /** Zooms in or out; the time at a place of the canvas stays there. */
  zoomBy(factor: number, x: number = this.namesWidth + this.#room / 2): void {
    this.#look(zoomTime(this.#window, factor, Math.max(0, x - this.namesWidth), this.#most_ns_per_px));
  }

  panBy(dx: number, dy = 0): void {
    this.#scrollTo(this.#scroll - dy);
    this.#look({ ...this.#window, begin_ns: this.#window.begin_ns - dx * this.#window.ns_per_px });
  }

  /** Pans by a share of what is seen. */
  panByShare(share: number): void {
    this.panBy(-share * this.#room);
  }

  hit(x: number, y: number): Hit | null {
    const picture = this.#picture();
    return picture && this.#painter ? this.#painter.hit(picture, x, y) : null;
  }

  /** Chooses a slice; of merged ones the first, and these are zoomed into. */
  choose({ slices, first, last, lane }: Hit): void {
    if (last > first) this.#goTo(slices.begin_ns[first] ?? 0, slices.end_ns[last] ?? 0, true);
    this.#choose(slices, first, lane);
  }

  /** Chooses the slice beside the chosen one in its row, or the one over or under its middle in another row. */
  walk(direction: "left" | "right" | "up" | "down"): void {
    const rows = this.#lanes.flatMap(({ rows: own }) => own);
    const here = rows.findIndex(({ row }) => row.slices === this.#chosen?.slices);
    const from = rows[here];
    if (!from || !this.#chosen) return this.#enter(rows[0]);
    const { slices } = from.row;
    const at = this.#chosen.at;
    if (direction === "left" || direction === "right") {
      const next = at + (direction === "left" ? -1 : 1);
      if (next >= 0 && next < slices.count) this.#arrive(from, next);
      return;
    }
    const middle = ((slices.begin_ns[at] ?? 0) + (slices.end_ns[at] ?? 0)) / 2;
    const to = rows[here + (direction === "up" ? -1 : 1)];
    if (to) this.#arrive(to, Math.min(to.row.slices.count - 1, firstAfter(to.row.slices, direction === "down" ? (slices.begin_ns[at] ?? 0) : middle)));
  }

  /** Shows the chosen slice as wide as what is seen. */
  zoomToChosen(): void {
    if (this.#chosen) this.show(this.#chosen.slices.begin_ns[this.#chosen.at] ?? 0, this.#chosen.slices.end_ns[this.#chosen.at] ?? 1);
  }

  /** Brings the first slice of a node into sight, where none is seen. */
  reveal(isSought: (node: number) => boolean): void {
    const { recording } = this;
    if (!recording || this.#width === 0) return;
    const { spans } = recording;
    const end = this.#window.begin_ns + this.seen_ns;
    let found = -1;
    for (let i = 0; i < spans.count; i++) {
      if (!isSought(spans.node[i] ?? -1)) continue;
      if ((spans.end_ns[i] ?? 0) > this.#window.begin_ns && (spans.begin_ns[i] ?? 0) < end) return;
      if (found < 0) found = i;
    }
    if (found >= 0) this.#goTo(spans.begin_ns[found] ?? 0, spans.end_ns[found] ?? 0, false);
  }

  #enter(placed: PlacedRow | undefined): void {
    if (placed) this.#arrive(placed, Math.min(placed.row.slices.count - 1, firstAfter(placed.row.slices, this.#window.begin_ns)));
  }

  #arrive({ row, y }: PlacedRow, at: number): void {
    const { slices, lane } = row;
    const room = this.#height - RULER_PX - this.#foot;
    if (y < this.#scroll) this.#scrollTo(y);
    else if (y + ROW_PX > this.#scroll + room) this.#scrollTo(y + ROW_PX - room);
    this.#goTo(slices.begin_ns[at] ?? 0, slices.end_ns[at] ?? 0, false);
    this.#choose(slices, at, lane);
  }

  #choose(slices: Slices, at: number, lane: number): void {
    this.#chosen = { slices, at };
    this.#draw();
    this.chose.emit({ slices, at, lane });
  }

  /** Brings a stretch of time into sight, and with `isWide` so that what is in it can be told apart. */
  #goTo(begin_ns: number, end_ns: number, isWide: boolean): void {
    const { begin_ns: from, ns_per_px } = this.#window;
    if (isWide) return this.show(begin_ns, end_ns);
    if (end_ns > from && begin_ns < from + this.seen_ns && begin_ns >= from) return;
    const finer = Math.min(ns_per_px, Math.max(0.5, (end_ns - begin_ns) / LEGIBLE_PX));
    const scale = (end_ns - begin_ns) / ns_per_px > 2 ? ns_per_px : Math.max(finer, ns_per_px / 50);
    this.#look({ ns_per_px: scale, begin_ns: (begin_ns + end_ns) / 2 - (this.#room / 2) * scale });
  }

  /** What was recorded stays in sight. */
  #look({ begin_ns, ns_per_px }: TimeWindow): void {
    const seen = this.#room * ns_per_px;
    const slack = Math.min(seen, this.#extent.end_ns - this.#extent.begin_ns) * 0.5;
    const [least, most] = [this.#extent.begin_ns - slack, Math.max(this.#extent.begin_ns - slack, this.#extent.end_ns + slack - seen)];
    this.#window = { ns_per_px, begin_ns: Math.min(most, Math.max(least, begin_ns)) };
    this.#draw();
    this.moved.emit();
  }

  #scrollTo(scroll: number): void {
    const most = Math.max(0, this.#lanesHeight + 8 - (this.#height - RULER_PX - this.#foot));
    this.#scroll = Math.min(most, Math.max(0, scroll));
  }

  #resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth === 0) return;
    const seen = this.#width > 0 ? this.seen_ns : 0;
    [this.#width, this.#height] = [clientWidth, clientHeight];
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.#scrollTo(this.#scroll);
    if (this.#wanted) {
      const { begin_ns, end_ns } = this.#wanted;
      this.#wanted = null;
      this.show(begin_ns, end_ns);
    } else if (seen > 0) this.#look({ ...this.#window, ns_per_px: seen / this.#room });
    this.paint();
  }

  #draw(): void {
    if (this.#frame || this.#until.aborted) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.paint();
    });
  }

  #picture(): TimelinePicture | null {
    const recording = this.#recording;
    if (!recording || this.#width === 0) return null;
    return {
      recording, lanes: this.#lanes, sight: this.#window, width: this.#width, height: this.#height, names_px: this.namesWidth,
      scroll_px: this.#scroll, shares: this.#shares, selected: this.#selected, chosen: this.#iteration, steps: this.#steps,
      arrows: this.#arrows, range: this.#range, chosenSpan: this.#chosen?.slices.span[this.#chosen.at] ?? -1,
    };
  }

  /** Draws at once. */
  paint(): void {
    const picture = this.#picture();
    if (!picture || !this.#painter) return;
    const start = performance.now();
    this.#painter.paint(picture, this.#theme, devicePixelRatio || 1);
    this.canvas.dataset.paintMs = (performance.now() - start).toFixed(2);
    const { shown, merged, arrows } = this.#painter.told;
    this.canvas.dataset.shown = String(shown);
    this.canvas.dataset.merged = String(merged);
    this.canvas.dataset.arrows = String(arrows);
    this.canvas.dataset.seenNs = this.seen_ns.toPrecision(6);
  }
}
