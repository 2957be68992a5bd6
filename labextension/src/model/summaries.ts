/** Summaries: curves, histograms, pictures and texts of runs, as the kernel tells them, and how a curve lies in its chart. */
import type { HistogramSeries, ImageSeries, ScalarSeries, Summaries, SummaryState, TextSeries } from "../wire/messages.js";
import { column } from "../wire/tables.js";
import { significant, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { bytesText } from "./running.js";
import { Signal } from "./signal.js";

/** What lies along a chart's horizontal axis. */
export type Across = "step" | "time";

/** What has one tag: a chart with a curve per run, or something per run. */
export interface Group<T> {
  readonly tag: string;
  readonly series: readonly T[];
}

export class SummariesModel {
  readonly changed = new Signal<void>();
  readonly #model: GraphModel;
  #answer: Summaries | null = null;
  #request = 0;
  /** What was asked last, and of which state; null for nothing. */
  #asked: { readonly step: number | null; readonly version: number } | null = null;
  #step: number | null = null;
  #isLog = false;
  #across: Across = "step";

  constructor(model: GraphModel) {
    this.#model = model;
  }

  /** What was written so far; null for nothing. */
  get state(): SummaryState | null {
    return this.#model.session?.summaries ?? null;
  }

  get answer(): Summaries | null {
    return this.state === null ? null : this.#answer;
  }

  get isLog(): boolean {
    return this.#isLog;
  }

  get across(): Across {
    return this.#across;
  }

  /** The steps that have pictures or texts, growing. */
  get steps(): readonly number[] {
    return this.answer ? Array.from(column(this.answer.steps, "step")) : [];
  }

  /** The position of the chosen step among them, or of the last one before it; the newest where none is chosen, -1 for none. */
  get row(): number {
    const { steps } = this;
    const step = this.#step;
    if (step === null) return steps.length - 1;
    const later = steps.findIndex((one) => one > step);
    return later < 0 ? steps.length - 1 : Math.max(0, later - 1);
  }

  /** The names of the runs, in one order for all charts. */
  get runs(): readonly string[] {
    const { scalars = [], histograms = [], images = [], texts = [] } = this.answer ?? {};
    return [...new Set([...scalars, ...histograms, ...images, ...texts].map(({ run }) => run))].sort();
  }

  setLog(isLog: boolean): void {
    this.#isLog = isLog;
    this.changed.emit();
  }

  setAcross(across: Across): void {
    this.#across = across;
    this.changed.emit();
  }

  /** Chooses a step of `steps`; the last one stands for the newest, whichever that is. */
  chooseRow(row: number): void {
    this.#step = row >= this.steps.length - 1 ? null : (this.steps[row] ?? null);
    this.changed.emit();
  }

  /** What is to be asked now; null where all that can be known is told. */
  question(): { readonly step: number | null } | null {
    const { state } = this;
    if (state === null) return null;
    const isKnown = this.#asked?.version === state.version && this.#asked.step === this.#step;
    return isKnown ? null : { step: this.#step };
  }

  /** Waits for the answer to a question; returns its number. */
  await({ step }: { readonly step: number | null }): number {
    this.#asked = { step, version: this.state?.version ?? -1 };
    return ++this.#request;
  }

  take(told: Summaries): void {
    if (told.request_id !== this.#request) return;
    this.#answer = told;
    this.changed.emit();
  }

  forget(): void {
    this.#asked = null;
  }
}

export function byTag<T extends { readonly tag: string }>(series: readonly T[]): Group<T>[] {
  const found = new Map<string, T[]>();
  for (const one of series) found.set(one.tag, [...(found.get(one.tag) ?? []), one]);
  return [...found].map(([tag, list]) => ({ tag, series: list }));
}

/** A run's name: its folder without what all have in front. */
export function runNames(runs: readonly string[]): ReadonlyMap<string, string> {
  const folders = runs.filter((run) => run !== "");
  const parts = folders.map((run) => run.split("/"));
  const shortest = Math.min(...parts.map((list) => list.length));
  let common = 0;
  while (common < shortest - 1 && parts.every((list) => list[common] === parts[0]?.[common])) common++;
  return new Map(runs.map((run) => [run, run === "" ? "no folder" : run.split("/").slice(common).join("/")]));
}

/** 'kept 12 kB of 33.6 MB', and what is not. */
export function stateText({ nbytes, max_bytes, dropped }: SummaryState, left_out: number): string {
  return [
    `${bytesText(nbytes)} of ${bytesText(max_bytes)} kept`,
    ...(dropped > 0 ? [`${whole(dropped)} older points dropped`] : []),
    ...(left_out > 0 ? [`${whole(left_out)} series not shown`] : []),
  ].join(", ");
}

/** A curve in a square of 1: what can be drawn in one go, single points, and where it is not finite. */
export interface ChartCurve {
  readonly run: string;
  readonly lines: readonly (readonly (readonly [number, number])[])[];
  /** Across. */
  readonly wrong: readonly number[];
  /** The newest value. */
  readonly last: number;
}

export interface Chart {
  readonly curves: readonly ChartCurve[];
  readonly across: readonly Tick[];
  readonly down: readonly Tick[];
  /** Whether the scale is logarithmic: it is not where a value is 0 or less. */
  readonly isLog: boolean;
}

export interface Tick {
  /** 0 at the left, or at the top, to 1. */
  readonly at: number;
  readonly text: string;
}

/** The curves of a tag's runs in one chart. */
export function chartOf(series: readonly ScalarSeries[], across: Across, isLogWanted: boolean): Chart {
  const values = series.flatMap((one) => Array.from(column(one.values, "value")).filter(Number.isFinite));
  const isLog = isLogWanted && values.length > 0 && values.every((value) => value > 0);
  const scale = (value: number): number => (isLog ? Math.log10(value) : value);
  const [left, right] = ends(series.flatMap((one) => Array.from(column(one.values, across))), 0);
  const [low, high] = ends(values.map(scale), 0.04);
  const x = (value: number): number => (right > left ? (value - left) / (right - left) : 0.5);
  const y = (value: number): number => (high > low ? 1 - (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5);
  const curves = series.map((one): ChartCurve => {
    const [along, numbers] = [column(one.values, across), column(one.values, "value")];
    const lines: (readonly [number, number])[][] = [[]];
    const wrong: number[] = [];
    numbers.forEach((value, k) => {
      if (Number.isFinite(value)) lines[lines.length - 1]?.push([x(along[k] ?? 0), y(scale(value))]);
      else {
        wrong.push(x(along[k] ?? 0));
        lines.push([]);
      }
    });
    return { run: one.run, lines: lines.filter((line) => line.length > 0), wrong, last: numbers[numbers.length - 1] ?? NaN };
  });
  const [far, height] = [ticks(left, right, 4), isLog ? powers(low, high) : ticks(low, high, 5)];
  return {
    curves, isLog,
    across: far.map((value) => ({ at: x(value), text: `${tickText(value, far)}${across === "time" ? "\u00a0s" : ""}` })),
    down: height.map((value) => ({ at: y(value), text: isLog ? powerText(value) : tickText(value, height) })),
  };
}

/** The least and the largest, with some room around: a share of what lies between them. */
function ends(values: readonly number[], room: number): readonly [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (low > high) return [0, 1];
  if (low === high) return room > 0 ? [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1] : [low, high];
  const more = (high / 2 - low / 2) * 2 * room;
  const isRoom = Number.isFinite(low - more) && Number.isFinite(high + more);
  return isRoom ? [low - more, high + more] : [low, high];
}

/** Round numbers between two, so many or fewer by about a half. */
export function ticks(low: number, high: number, about: number): number[] {
  const range = high - low;
  if (!(range > 0) || !Number.isFinite(range)) return [low];
  const power = 10 ** Math.floor(Math.log10(range / about));
  const gap = power * ([1, 2, 5, 10].find((one) => range / (one * power) <= about) ?? 10);
  const first = Math.ceil(low / gap - 1e-9);
  const count = Math.floor(high / gap + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, Math.min(count, 2 * about)) }, (_, k) => (first + k) * gap);
}

/** A tick with as many digits as its neighbours are apart: 0, 20, 40; 0.05, 0.10. */
function tickText(value: number, all: readonly number[]): string {
  const gap = all.length > 1 ? Math.abs((all[1] ?? 0) - (all[0] ?? 0)) : 0;
  const largest = Math.max(...all.map(Math.abs));
  if (gap === 0 || largest >= 1e6 || largest < 1e-4) return largest >= 1e6 || (largest < 1e-4 && largest > 0) ? String(Number(value.toPrecision(3))) : significant(value);
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(gap) - 1e-9)));
  return digits === 0 ? whole(value) : value.toFixed(digits);
}

/** Exponents of ten between two of them, not too many. */
function powers(low: number, high: number): number[] {
  const found = ticks(low, high, 5);
  const wholes = found.filter(Number.isInteger);
  return wholes.length >= 2 ? wholes : found;
}

function powerText(exponent: number): string {
  const value = 10 ** exponent;
  return value >= 1e-4 && value < 1e6 ? significant(value) : `1e${Math.round(exponent)}`;
}

/** What a chart shows, in words. */
export function chartText(tag: string, { curves, isLog }: Chart, names: ReadonlyMap<string, string>): string {
  const told = curves.map(({ run, last, wrong }) => `${names.get(run) ?? run} at ${significant(last)}${wrong.length > 0 ? ", not finite in places" : ""}`);
  return `${tag}${isLog ? ", logarithmic" : ""}: ${told.join("; ")}`;
}

/** A histogram over steps as a picture: levels 0 to 254, a column per histogram, the largest values on top. */
export function levelsOf({ bins, shares }: HistogramSeries): { readonly columns: number; readonly levels: readonly number[] } {
  const list = column(shares, "share");
  const columns = list.length / bins;
  let most = 0;
  for (const share of list) most = Math.max(most, share);
  const levels = Array.from({ length: list.length }, (_, k) => {
    const [row, at] = [Math.floor(k / columns), k % columns];
    const share = list[at * bins + (bins - 1 - row)] ?? 0;
    return most > 0 ? Math.round(254 * share / most) : 0;
  });
  return { columns, levels };
}

/** 'steps 0 to 90'. */
export function histogramNote({ values, points, dropped }: HistogramSeries): string {
  const steps = column(values, "step");
  const [first, last] = [steps[0] ?? 0, steps[steps.length - 1] ?? 0];
  const some = points > steps.length ? `${steps.length} of ${whole(points)} histograms, ` : "";
  return `${some}${first === last ? `step ${whole(first)}` : `steps ${whole(first)} to ${whole(last)}`}${dropped > 0 ? `, ${whole(dropped)} older ones dropped` : ""}`;
}

/** 'steps 0 to 90, from -3.1 to 2.9'. */
export function histogramText(series: HistogramSeries): string {
  return `${histogramNote(series)}, from ${significant(series.low)} to ${significant(series.high)}`;
}

export function imageText({ step, width, height, data, nbytes }: ImageSeries): string {
  return `step ${whole(step)}, ${width} \u00d7 ${height}${data === "" ? `: with ${bytesText(nbytes)} it is too large to be shown here` : ""}`;
}

export function textNote({ step, left_out }: TextSeries): string {
  return `step ${whole(step)}${left_out > 0 ? `, ${whole(left_out)} characters more` : ""}`;
}
