/** Draws a timeline on a canvas: ruler, lanes, gaps and the memory curve. Only what is seen is looked at. */
import { arrowsInSight, type Arrow } from "../model/arrows.js";
import { deviceText } from "../model/cluster.js";
import { ROW_PX, see, SeenRow, tickStep, type PlacedLane, type PlacedRow, type TimeWindow } from "../layout/timeline.js";
import { textWidth } from "../layout/text.js";
import { bytesText } from "../model/running.js";
import { duration, whole } from "../model/figures.js";
import type { LaneKind, RecordedFrame, RecordedStep, Recording } from "../model/recording.js";
import type { TimeRange } from "../model/range.js";
import { sentIn } from "../model/slice_facts.js";
import type { Slices } from "../model/timeline_rows.js";
import { fitText } from "./fit.js";
import { rampColor, rampInk } from "./ramp.js";
import type { Theme } from "./theme.js";

export const RULER_PX = 34;
const MEMORY_PX = 44;
/** A lane of the host: what happens there is short, and seen all the same. */
const LEAST_EVENT_PX = 3;
/** Wide enough for a name, slices have one. */
const LEAST_LABEL_PX = 22;
/** The size of lanes' names, and what is free around them. */
const NAME_PX = 11;
const NAME_MARGIN_PX = 18;
const TICK_PX = 84;
const CRITICAL_PX = 3;

export interface TimelinePicture {
  readonly recording: Recording;
  readonly lanes: readonly PlacedLane[];
  readonly sight: TimeWindow;
  readonly width: number;
  readonly height: number;
  /** Width of the lanes' names at the left. */
  readonly names_px: number;
  /** How far the lanes are scrolled. */
  readonly scroll_px: number;
  /** The share of each node, by its index. */
  readonly shares: ArrayLike<number>;
  /** 1 for nodes that are selected. */
  readonly selected: Uint8Array | null;
  readonly chosen: { readonly frame: string; readonly number: number } | null;
  /** All steps that are kept; that of the recording among them. */
  readonly steps: readonly RecordedStep[];
  /** What goes from lane to lane. */
  readonly arrows: readonly Arrow[];
  /** The stretch that is selected. */
  readonly range: TimeRange | null;
  /** The span of the chosen slice; -1 for none. */
  readonly chosenSpan: number;
}

/** What is under a point. */
export interface Hit {
  readonly slices: Slices;
  readonly first: number;
  readonly last: number;
  readonly lane: number;
}

export class TimelinePainter {
  readonly #ctx: CanvasRenderingContext2D;
  readonly #seen = new SeenRow();
  readonly #sums = new WeakMap<Slices, RowSums>();
  #shares: ArrayLike<number> | null = null;
  #fitted = new Map<string, string>();
  #hatch: CanvasPattern | string | null = null;
  #hatchInk = "";
  /** How many slices the latest picture shows, and how many of these are merged: for people and tests. */
  told = { shown: 0, merged: 0, arrows: 0 };

  constructor(ctx: CanvasRenderingContext2D) {
    this.#ctx = ctx;
  }

  paint(picture: TimelinePicture, theme: Theme, ratio: number): void {
    const ctx = this.#ctx;
    const { width, height, names_px, scroll_px } = picture;
    if (this.#shares !== picture.shares) this.#shares = picture.shares;
    this.told = { shown: 0, merged: 0, arrows: 0 };
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = theme.background;
    ctx.fillRect(0, 0, width, height);
    ctx.textBaseline = "middle";
    const bottom = height - footOf(picture);
    ctx.save();
    ctx.beginPath();
    ctx.rect(names_px, 0, width - names_px, height);
    ctx.clip();
    this.#steps(picture, theme, bottom);
    ctx.save();
    ctx.beginPath();
    ctx.rect(names_px, RULER_PX, width - names_px, bottom - RULER_PX);
    ctx.clip();
    for (const lane of picture.lanes) {
      for (const placed of lane.rows) {
        const y = placed.y + RULER_PX - scroll_px;
        if (y + ROW_PX > RULER_PX && y < bottom) this.#row(picture, placed, y, theme);
      }
    }
    this.#arrows(picture, theme);
    ctx.restore();
    this.#gaps(picture, theme, bottom);
    this.#memory(picture, theme, bottom);
    this.#range(picture, theme);
    ctx.restore();
    this.#names(picture, theme, bottom);
  }

  /** What is under a point of the canvas; null for nothing. */
  hit(picture: TimelinePicture, x: number, y: number): Hit | null {
    const { lanes, sight, width, height, names_px, scroll_px } = picture;
    if (x < names_px || y < RULER_PX || y > height - footOf(picture)) return null;
    for (const { lane, rows } of lanes) {
      for (const { row, y: top } of rows) {
        const at = top + RULER_PX - scroll_px;
        if (y < at || y >= at + ROW_PX) continue;
        see(row.slices, sight, width - names_px, this.#seen);
        const found = this.#seen.at(x - names_px);
        return found < 0 ? null : { slices: row.slices, lane, first: this.#seen.first[found] ?? 0, last: this.#seen.last[found] ?? 0 };
      }
    }
    return null;
  }

  #row(picture: TimelinePicture, { row }: PlacedRow, y: number, theme: Theme): void {
    const { recording, sight, width, names_px, selected } = picture;
    const ctx = this.#ctx;
    const seen = this.#seen;
    see(row.slices, sight, width - names_px, seen);
    const kind = recording.lanes[row.lane]?.kind ?? "device";
    const sums = this.#sumsOf(row.slices, picture);
    for (let i = 0; i < seen.count; i++) {
      const [first, last] = [seen.first[i] ?? 0, seen.last[i] ?? 0];
      const left = Math.max(-4, seen.x[i] ?? 0);
      const right = Math.min(width - names_px + 4, (seen.x[i] ?? 0) + (seen.w[i] ?? 0));
      const least = kind === "device" || kind === "helper" ? 1 : LEAST_EVENT_PX;
      const [x, w, h] = [names_px + left, Math.max(least, right - left), ROW_PX - 2];
      this.told.shown += last - first + 1;
      const isMerged = last > first;
      if (isMerged) this.told.merged += last - first + 1;
      const span = row.slices.span[first] ?? -1;
      const isIteration = !isMerged && span < 0;
      const share = isIteration ? 0 : sums.shareOf(first, last);
      ctx.fillStyle = isIteration ? theme.bodyFill : fillOf(kind, share, theme);
      ctx.fillRect(x, y, w, h);
      if (w > 3) {
        ctx.strokeStyle = isIteration ? theme.body : theme.background;
        ctx.lineWidth = 1;
        ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
      }
      if (isMerged && w > 6) this.#stripe(x, y, w, h, theme);
      if (sums.isCritical(first, last)) {
        ctx.fillStyle = theme.text;
        ctx.fillRect(x, y + h - CRITICAL_PX + 1, w, CRITICAL_PX - 1);
      }
      if (selected !== null || picture.chosen !== null) this.#mark(picture, row.slices, first, last, x, y, w, h, theme);
      if (w >= LEAST_LABEL_PX) {
        ctx.fillStyle = isIteration ? theme.text : inkOf(kind, share, theme);
        const sent = isMerged ? [] : sentIn(recording.spans, row.slices, first, first);
        this.#text(isMerged ? `${whole(last - first + 1)} ops` : [nameOf(recording, row.slices, first), ...sent].join(", "), x + 4, y + h / 2, w - 8, 11, theme);
      }
    }
  }

  /** From where a value is sent to where it has come: between the edges of two lanes that face each other. */
  #arrows({ arrows, lanes, sight, width, names_px, scroll_px, selected, chosenSpan }: TimelinePicture, theme: Theme): void {
    const ctx = this.#ctx;
    const isMarked = ({ span, node }: Arrow): boolean => span === chosenSpan || selected?.[node] === 1;
    const seen = arrowsInSight(arrows, sight.begin_ns, sight.begin_ns + (width - names_px) * sight.ns_per_px, isMarked);
    const placed = new Map(lanes.map((one) => [one.lane, one]));
    const at = (ns: number): number => names_px + (ns - sight.begin_ns) / sight.ns_per_px;
    for (const arrow of seen) {
      const [from, to] = [placed.get(arrow.from), placed.get(arrow.to)];
      if (!from || !to) continue;
      const isDown = to.y > from.y;
      const [x, y] = [at(arrow.begin_ns), from.y + (isDown ? from.h : 0) + RULER_PX - scroll_px];
      const [toX, toY] = [at(arrow.end_ns), to.y + (isDown ? 0 : to.h) + RULER_PX - scroll_px];
      const isBold = isMarked(arrow);
      ctx.strokeStyle = ctx.fillStyle = isBold ? theme.accent : theme.text;
      ctx.globalAlpha = isBold ? 1 : 0.55;
      ctx.lineWidth = isBold ? 2 : 1;
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(toX, toY);
      ctx.stroke();
      this.#head(x, y, toX, toY, isBold ? 8 : 6);
      this.told.arrows += 1;
    }
    ctx.globalAlpha = 1;
  }

  #head(x: number, y: number, toX: number, toY: number, size: number): void {
    const ctx = this.#ctx;
    const angle = Math.atan2(toY - y, toX - x);
    ctx.beginPath();
    ctx.moveTo(toX, toY);
    for (const side of [-0.4, 0.4]) ctx.lineTo(toX - size * Math.cos(angle + side), toY - size * Math.sin(angle + side));
    ctx.closePath();
    ctx.fill();
  }

  /** Around what is selected; a merged mark that holds it has a line on top. */
  #mark({ recording: { spans, frames }, selected, chosen }: TimelinePicture, slices: Slices, first: number, last: number, x: number, y: number, w: number, h: number, theme: Theme): void {
    let isIn = false;
    for (let i = first; i <= Math.min(last, first + 4000) && !isIn; i++) {
      const span = slices.span[i] ?? -1;
      if (span >= 0) isIn = selected !== null && selected[spans.node[span] ?? -1] === 1;
      else isIn = chosen !== null && isChosen(frames, spans.frame[slices.first[i] ?? 0] ?? -1, spans.iteration[slices.first[i] ?? 0] ?? 0, chosen);
    }
    if (!isIn) return;
    const ctx = this.#ctx;
    ctx.fillStyle = theme.accent;
    ctx.fillRect(x, y - 1, w, 2.5);
    if (w <= 4) return void ctx.fillRect(x, y, w, h);
    ctx.strokeStyle = theme.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(x + 1, y + 1, w - 2, h - 2);
  }

  /** Thin lines: more than one slice. */
  #stripe(x: number, y: number, w: number, h: number, theme: Theme): void {
    const ctx = this.#ctx;
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, h);
    ctx.clip();
    ctx.strokeStyle = theme.isDark ? "#ffffff38" : "#0000002e";
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let at = Math.ceil(x / 4) * 4; at < x + w; at += 4) {
      ctx.moveTo(at + 0.5, y);
      ctx.lineTo(at + 0.5, y + h);
    }
    ctx.stroke();
    ctx.restore();
  }

  #sumsOf(slices: Slices, { recording, shares }: TimelinePicture): RowSums {
    let sums = this.#sums.get(slices);
    if (!sums || sums.shares !== shares) this.#sums.set(slices, sums = new RowSums(slices, recording, shares));
    return sums;
  }

  #steps({ recording, steps, sight, width, names_px }: TimelinePicture, theme: Theme, bottom: number): void {
    const ctx = this.#ctx;
    const at = (ns: number): number => names_px + (ns - sight.begin_ns) / sight.ns_per_px;
    const shown = recording.step;
    ctx.fillStyle = theme.isDark ? "#ffffff0d" : "#0000000a";
    ctx.fillRect(at(shown.begin_ns), 0, at(shown.end_ns) - at(shown.begin_ns), bottom);
    let free = -Infinity;
    // The step that is shown may be newer than what was told of all.
    for (const { number, begin_ns, end_ns } of [shown, ...steps.filter((step) => step.number !== shown.number)]) {
      const isShown = number === shown.number;
      const [left, right] = [at(begin_ns), at(end_ns)];
      if (right < names_px || left > width) continue;
      ctx.fillStyle = isShown ? theme.accent : theme.border;
      ctx.fillRect(left, 0, Math.max(1, right - left - 1), 3);
      const from = Math.max(left, names_px) + 3;
      if ((from < free && from > free - 60) || right - left < 8) continue;
      ctx.fillStyle = isShown ? theme.text : theme.muted;
      const room = Math.min(right, width) - from;
      const text = room > 52 ? `step ${whole(number)}` : whole(number);
      this.#text(text, from, 11, room, 11, theme, isShown ? 600 : 400);
      free = from + 30;
    }
    this.#ticks({ sight, width, names_px, origin: shown.begin_ns }, theme, bottom);
  }

  #ticks({ sight, width, names_px, origin }: { sight: TimeWindow; width: number; names_px: number; origin: number }, theme: Theme, bottom: number): void {
    const ctx = this.#ctx;
    const gap = tickStep(sight.ns_per_px, TICK_PX);
    const first = Math.ceil((sight.begin_ns - origin) / gap);
    const count = Math.ceil(((width - names_px) * sight.ns_per_px) / gap);
    for (let k = first; k <= first + count; k++) {
      const x = names_px + (origin + k * gap - sight.begin_ns) / sight.ns_per_px;
      ctx.fillStyle = theme.isDark ? "#ffffff1c" : "#00000014";
      ctx.fillRect(Math.round(x), RULER_PX - 15, 1, bottom - RULER_PX + 15);
      ctx.fillStyle = theme.muted;
      this.#text(k === 0 ? "0" : tickText(k * gap, gap), Math.round(x) + 3, RULER_PX - 8, TICK_PX - 6, 10.5, theme);
    }
  }

  #gaps({ recording, sight, width, names_px }: TimelinePicture, theme: Theme, bottom: number): void {
    const ctx = this.#ctx;
    for (const { begin_ns, end_ns, what } of recording.gaps) {
      const left = Math.max(names_px, names_px + (begin_ns - sight.begin_ns) / sight.ns_per_px);
      const right = Math.min(width, names_px + (end_ns - sight.begin_ns) / sight.ns_per_px);
      if (right <= left) continue;
      ctx.fillStyle = this.#hatched(theme);
      ctx.fillRect(left, RULER_PX, Math.max(1, right - left), bottom - RULER_PX);
      if (right - left < 40) continue;
      ctx.fillStyle = theme.background;
      ctx.fillRect(left + 4, RULER_PX + 3, Math.min(right - left - 8, 8 + what.length * 6.2), 16);
      ctx.fillStyle = theme.muted;
      this.#text(what, left + 8, RULER_PX + 11, right - left - 16, 11, theme);
    }
  }

  /** What is not selected is veiled, and the ends stand in the ruler. */
  #range({ range, sight, width, height, names_px }: TimelinePicture, theme: Theme): void {
    if (range === null) return;
    const ctx = this.#ctx;
    const [left, right] = [range.begin_ns, range.end_ns].map((ns) => names_px + (ns - sight.begin_ns) / sight.ns_per_px) as [number, number];
    ctx.fillStyle = theme.isDark ? "#00000080" : "#ffffffa0";
    ctx.fillRect(names_px, RULER_PX, left - names_px, height);
    ctx.fillRect(right, RULER_PX, width - right, height);
    ctx.fillStyle = theme.accent;
    ctx.fillRect(left, RULER_PX - 4, Math.max(1, right - left), 4);
    for (const x of [left, right]) ctx.fillRect(x - 0.5, RULER_PX - 15, 1, height);
  }

  /** Slanted lines: here nothing was recorded. */
  #hatched(theme: Theme): CanvasPattern | string {
    if (this.#hatch !== null && this.#hatchInk === theme.border) return this.#hatch;
    const tile = this.#ctx.canvas.ownerDocument.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    if (!pen) return theme.border;
    pen.strokeStyle = theme.border;
    pen.globalAlpha = 0.5;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) {
      pen.moveTo(shift, 8);
      pen.lineTo(shift + 8, 0);
    }
    pen.stroke();
    this.#hatchInk = theme.border;
    return this.#hatch = this.#ctx.createPattern(tile, "repeat") ?? theme.border;
  }

  #memory({ recording: { memory }, sight, width, names_px }: TimelinePicture, theme: Theme, bottom: number): void {
    const ctx = this.#ctx;
    const room = MEMORY_PX - 8;
    if (memory.at_ns.length === 0) return;
    ctx.fillStyle = theme.border;
    ctx.fillRect(names_px, bottom, width - names_px, 1);
    const most = mostOf(memory.bytes);
    if (most <= 0) return;
    const columns = width - names_px;
    ctx.beginPath();
    ctx.moveTo(names_px, bottom + MEMORY_PX - 2);
    let k = lastBefore(memory.at_ns, sight.begin_ns);
    for (let x = 0; x < columns; x++) {
      const until = sight.begin_ns + (x + 1) * sight.ns_per_px;
      let peak = k >= 0 ? (memory.bytes[k] ?? 0) : 0;
      // Of what falls on one pixel the most is shown.
      while (k + 1 < memory.at_ns.length && (memory.at_ns[k + 1] ?? Infinity) < until) peak = Math.max(peak, memory.bytes[++k] ?? 0);
      const y = bottom + MEMORY_PX - 2 - (peak / most) * room;
      ctx.lineTo(names_px + x, y);
      ctx.lineTo(names_px + x + 1, y);
    }
    ctx.lineTo(width, bottom + MEMORY_PX - 2);
    ctx.fillStyle = theme.isDark ? "#56b4e966" : "#0072b247";
    ctx.fill();
    ctx.strokeStyle = theme.isDark ? "#56b4e9" : "#0072b2";
    ctx.lineWidth = 1;
    ctx.stroke();
  }

  #names({ recording, lanes, width, height, names_px, scroll_px }: TimelinePicture, theme: Theme, bottom: number): void {
    const ctx = this.#ctx;
    ctx.fillStyle = theme.folder;
    ctx.fillRect(0, 0, names_px, height);
    ctx.fillStyle = theme.border;
    ctx.fillRect(names_px - 1, 0, 1, height);
    ctx.fillRect(0, RULER_PX - 1, width, 1);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, RULER_PX, width, bottom - RULER_PX);
    ctx.clip();
    for (const { lane, y, h } of lanes) {
      const top = y + RULER_PX - scroll_px;
      ctx.fillStyle = theme.border;
      ctx.globalAlpha = 0.4;
      ctx.fillRect(0, top + h + 1, width, 1);
      ctx.globalAlpha = 1;
      ctx.fillStyle = theme.text;
      const name = laneLabel(recording.lanes[lane]?.name ?? "", names_px - NAME_MARGIN_PX);
      this.#text(name, 6, Math.max(top, RULER_PX) + ROW_PX / 2 - 1, names_px - 10, 11, theme, 600);
    }
    ctx.restore();
    const most = mostOf(recording.memory.bytes);
    if (most <= 0) return;
    ctx.fillStyle = theme.text;
    this.#text("memory", 6, bottom + 12, names_px - 10, 11, theme, 600);
    ctx.fillStyle = theme.muted;
    this.#text(`most ${bytesText(most)}`, 6, bottom + 28, names_px - 10, 11, theme);
  }

  /** Measuring is dear: a text of one room is cut once. */
  #text(whole: string, x: number, y: number, room: number, size: number, theme: Theme, weight = 400): void {
    const ctx = this.#ctx;
    ctx.font = `${weight} ${size}px ${theme.font}`;
    ctx.textAlign = "left";
    const key = `${size}|${weight}|${Math.floor(room / 4)}|${whole}`;
    let text = this.#fitted.get(key);
    if (text === undefined) {
      if (this.#fitted.size > 20_000) this.#fitted.clear();
      text = fitText(whole, Math.floor(room / 4) * 4, (part) => ctx.measureText(part).width);
      this.#fitted.set(key, text);
    }
    if (text !== "" && text !== "\u2026") ctx.fillText(text, x, y);
  }
}

/** What any stretch of a row adds up to, in no time. */
class RowSums {
  readonly shares: ArrayLike<number>;
  readonly #time: Float64Array;
  readonly #weighted: Float64Array;
  readonly #critical: Int32Array;

  constructor({ span, begin_ns, end_ns, count }: Slices, { spans }: Recording, shares: ArrayLike<number>) {
    this.shares = shares;
    this.#time = new Float64Array(count + 1);
    this.#weighted = new Float64Array(count + 1);
    this.#critical = new Int32Array(count + 1);
    for (let i = 0; i < count; i++) {
      const time = (end_ns[i] ?? 0) - (begin_ns[i] ?? 0) + 1;
      const at = span[i] ?? -1;
      const node = at < 0 ? -1 : (spans.node[at] ?? -1);
      this.#time[i + 1] = (this.#time[i] ?? 0) + time;
      this.#weighted[i + 1] = (this.#weighted[i] ?? 0) + time * (node < 0 ? 0 : (shares[node] ?? 0));
      this.#critical[i + 1] = (this.#critical[i] ?? 0) + (at < 0 ? 0 : (spans.isCritical[at] ?? 0));
    }
  }

  /** The share of the nodes from one slice to another, each as long as it is seen. */
  shareOf(first: number, last: number): number {
    const time = (this.#time[last + 1] ?? 0) - (this.#time[first] ?? 0);
    return time > 0 ? ((this.#weighted[last + 1] ?? 0) - (this.#weighted[first] ?? 0)) / time : 0;
  }

  isCritical(first: number, last: number): boolean {
    return (this.#critical[last + 1] ?? 0) > (this.#critical[first] ?? 0);
  }
}

/** What runs has the colour of its share; what is moved, and what waits, has a colour of its own and its lane's name. */
function fillOf(kind: LaneKind, share: number, theme: Theme): string {
  if (kind === "device" || kind === "helper") return rampColor(share, theme);
  if (kind === "wait" || kind === "pause") return theme.isDark ? "#4a4f55" : "#ced4da";
  if (kind === "python") return theme.isDark ? "#2f4a3a" : "#d3ead9";
  return theme.isDark ? "#2f6ea3" : "#74b3e3";
}

function inkOf(kind: LaneKind, share: number, theme: Theme): string {
  return kind === "device" || kind === "helper" ? rampInk(share, theme) : theme.text;
}

/** "tanh", and of an iteration "i = 12". */
export function nameOf({ nodes, spans, lanes }: Recording, slices: Slices, at: number): string {
  const span = slices.span[at] ?? -1;
  if (span < 0) return `i = ${whole(spans.iteration[slices.first[at] ?? 0] ?? 0)}`;
  if ((spans.stands_for[span] ?? 1) > 1) return `${whole(spans.stands_for[span] ?? 1)} ops`;
  const node = nodes[spans.node[span] ?? -1];
  return node ? node.name.replace(/^.*\/(?=[^/])/, "") : (lanes[spans.lane[span] ?? -1]?.name ?? "");
}

/** "CPU:0" of a device's whole name, "worker 1" of that of another process, and "CPU:0 \u2192 CPU:1" of what goes from one to another. */
export function laneName(name: string): string {
  return name.split(" \u2192 ").map((end) => {
    // Behind the name of another process' device stands how wrong its clock may be.
    const [, device, more] = /^(\/job:(?!localhost)\S+)(.*)$/.exec(end) ?? [];
    return device === undefined ? end.replace(/^.*\bdevice:/, "") : `${deviceText(device)}${more ?? ""}`;
  }).join(" \u2192 ");
}

/** A lane's name as it is written in so much room: how wrong its clock may be is left out first. */
export function laneLabel(name: string, room: number): string {
  const whole = laneName(name);
  return textWidth(whole, NAME_PX, true) <= room ? whole : withoutError(whole);
}

/** The room that the lanes' names take without the errors of clocks: no less and no more than this. */
export function namesWidthOf({ lanes }: Pick<Recording, "lanes">, least: number, most: number): number {
  const widths = lanes.map(({ name }) => textWidth(withoutError(laneName(name)), NAME_PX, true));
  return Math.round(Math.min(most, Math.max(least, ...widths.map((width) => width + NAME_MARGIN_PX))));
}

function withoutError(name: string): string {
  return name.replace(/ \u00b1 .*$/, "");
}

/** Height that the memory curve takes, where there is one. */
export function footOf({ recording }: Pick<TimelinePicture, "recording">): number {
  return recording.memory.at_ns.length > 0 ? MEMORY_PX : 0;
}

function isChosen(frames: readonly RecordedFrame[], frame: number, iteration: number, chosen: { readonly frame: string; readonly number: number }): boolean {
  return frames[frame]?.path === chosen.frame && iteration === chosen.number;
}

const most = new WeakMap<Float64Array, number>();

function mostOf(bytes: Float64Array): number {
  let found = most.get(bytes);
  if (found === undefined) most.set(bytes, found = bytes.reduce((a, b) => Math.max(a, b), 0));
  return found;
}

/** The last place of a sorted column that is not after a value; -1 for none. */
function lastBefore(column: Float64Array, value: number): number {
  let [low, high] = [0, column.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((column[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A time of the ruler, as exact as its marks lie apart. */
export function tickText(ns: number, gap_ns: number): string {
  const text = duration(ns / 1e9);
  if (Math.abs(ns) < gap_ns * 100) return text;
  const unit = [1e9, 1e6, 1e3, 1].find((size) => Math.abs(ns) >= size) ?? 1;
  const name = { 1e9: "s", 1e6: "ms", 1e3: "\u00b5s", 1: "ns" }[unit] ?? "ns";
  const digits = Math.max(0, Math.ceil(Math.log10(unit / gap_ns)));
  return `${(ns / unit).toFixed(Math.min(6, digits))}\u00a0${name}`;
}
