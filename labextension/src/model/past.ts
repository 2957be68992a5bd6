/** The past of a session: the values that a recorded tensor had over steps and iterations, and which of them is looked at. */
import type { HistoryState, TensorHistory, ValueState } from "../wire/messages.js";
import { column } from "../wire/tables.js";
import { plural, significant, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { bytesText } from "./running.js";
import { Signal } from "./signal.js";

/** A value's place in time. */
export interface Moment {
  readonly step: number;
  /** The numbers of the iterations of the loops around, the outermost first; none outside of loops. */
  readonly iterations: readonly number[];
  /** Which of those of one step and iterations: a function may be called again. */
  readonly again: number;
}

/** What is asked of the kernel. */
export interface PastQuestion {
  readonly tensor: string;
  readonly most: number;
  readonly row: number | null;
  /** Where along the axes before the last two its picture is taken. */
  readonly at: readonly number[];
}

/** Values that are asked for at most, the newest. */
const MOST = 1000;

export class PastModel {
  readonly changed = new Signal<void>();
  readonly #model: GraphModel;
  #tensor = "";
  #moment: Moment | null = null;
  /** The step that is looked at, where no moment is chosen; null for the newest. */
  #step: number | null = null;
  #answer: TensorHistory | null = null;
  #rows: readonly Moment[] = [];
  #request = 0;
  /** The row whose value the answer tells. */
  #answeredRow: number | null = null;
  /** What was asked last, and of which state of the history. */
  #asked: PastQuestion | null = null;
  #askedVersion = -1;
  #problem = "";
  #at: readonly number[] = [];

  constructor(model: GraphModel) {
    this.#model = model;
  }

  /** What is recorded; null for nothing. */
  get state(): HistoryState | null {
    return this.#model.session?.history ?? this.#model.history;
  }

  /** The tensor that is looked at: the chosen one, or else the first. */
  get tensor(): string | null {
    const tensors = this.state?.tensors ?? [];
    return tensors.includes(this.#tensor) ? this.#tensor : (tensors[0] ?? null);
  }

  get answer(): TensorHistory | null {
    return this.#answer?.tensor === this.tensor ? this.#answer : null;
  }

  /** What was refused last; "" for nothing. */
  get problem(): string {
    return this.#problem;
  }

  get moments(): readonly Moment[] {
    return this.answer ? this.#rows : [];
  }

  /** The row that is looked at: of the chosen moment while it is kept, else the newest; -1 for none. */
  get row(): number {
    const { moments } = this;
    const [wanted, step] = [this.#moment, this.#step];
    if (wanted === null && step !== null) return moments.reduce((last, one, row) => (one.step <= step ? row : last), Math.min(0, moments.length - 1));
    const found = wanted === null ? -1 : moments.findIndex((one) => isSame(one, wanted));
    return found < 0 ? moments.length - 1 : found;
  }

  /** The value of that row, where it is told. */
  get shown(): ValueState | null {
    return this.#answeredRow === this.row ? (this.answer?.shown ?? null) : null;
  }

  chooseTensor(name: string): void {
    [this.#tensor, this.#moment, this.#problem, this.#at] = [name, null, "", []];
    this.changed.emit();
  }

  /** Where pictures are taken, along the axes before the last two. */
  get at(): readonly number[] {
    return this.#at;
  }

  lookAt(at: readonly number[]): void {
    this.#at = at;
    this.changed.emit();
  }

  /** Looks at the last value of a step, or of the last one before it that has one; null for the newest. */
  chooseStep(step: number | null): void {
    [this.#step, this.#moment] = [step, null];
    this.changed.emit();
  }

  /** The first of some tensors whose values are recorded; null for none. */
  recordedOf(names: readonly string[]): string | null {
    return names.find((name) => this.state?.tensors.includes(name)) ?? null;
  }

  chooseRow(row: number): void {
    this.#moment = this.moments[row] ?? null;
    this.changed.emit();
  }

  /** What is to be asked now; null where all that can be known is told, or nothing is recorded. */
  question(): PastQuestion | null {
    const { tensor, state } = this;
    if (tensor === null || state === null) return null;
    const wanted = { tensor, most: MOST, row: this.row < 0 ? null : this.row, at: this.#at };
    const isOld = state.version !== this.#askedVersion || this.#asked?.tensor !== tensor;
    return isOld || wanted.row !== this.#asked?.row || wanted.at.join() !== this.#asked.at.join() ? wanted : null;
  }

  /** Waits for the answer to a question; returns its number. */
  await(question: PastQuestion): number {
    [this.#asked, this.#askedVersion] = [question, this.state?.version ?? -1];
    return ++this.#request;
  }

  take(told: TensorHistory): void {
    if (told.request_id !== this.#request) return;
    this.#answer = told;
    this.#answeredRow = this.#asked?.row ?? null;
    this.#rows = momentsOf(told);
    this.changed.emit();
  }

  takeReply(ok: boolean, message: string): void {
    this.#problem = ok ? "" : message;
    this.changed.emit();
  }

  forget(): void {
    [this.#asked, this.#askedVersion, this.#answeredRow] = [null, -1, null];
  }
}

const isSame = (a: Moment, b: Moment): boolean => a.step === b.step && a.iterations.join() === b.iterations.join() && a.again === b.again;

function momentsOf({ values }: TensorHistory): Moment[] {
  const steps = column(values, "step");
  const around = values.columns.map(([name]) => name).filter((name) => name.startsWith("around"));
  const loops = [...around, "iteration"].map((name) => column(values, name));
  const seen = new Map<string, number>();
  return Array.from(steps, (step, row) => {
    const iterations = loops.map((counts) => counts[row] ?? -1).filter((count) => count >= 0);
    const key = `${step} ${iterations.join()}`;
    const again = seen.get(key) ?? 0;
    seen.set(key, again + 1);
    return { step, iterations, again };
  });
}

/** 'step 12, iteration 3'; of a loop in a loop 'step 12, iteration 3 in 1'. */
export function momentText({ step, iterations }: Moment): string {
  return `step ${step}${iterations.length === 0 ? "" : `, iteration ${[...iterations].reverse().join(" in ")}`}`;
}

/** Of a recording: 'values of 3 tensors, 1.2 MB'. */
export function recordedText({ tensors, nbytes }: HistoryState): string {
  return `values of ${plural(tensors.length, "tensor")}, ${bytesText(nbytes)}`;
}

/** 'steps 3 to 41 can be computed again, 1.2 MB of 268 MB'. */
export function stateText({ steps, first, last, nbytes, max_bytes }: HistoryState): string {
  const told = steps === 0 ? "no step was recorded yet" : steps === 1 ? `step ${first} can be computed again` : `steps ${whole(first ?? 0)} to ${whole(last ?? 0)} can be computed again`;
  return `${told}, ${bytesText(nbytes)} of ${bytesText(max_bytes)}`;
}

/** The curve of a tensor's values in a square of 1: the band from least to largest, the mean, and where it is not finite. */
export interface Curve {
  /** Points of the band, there and back; of each part of the mean's line. */
  readonly band: readonly (readonly [number, number])[];
  readonly mean: readonly (readonly (readonly [number, number])[])[];
  /** Across, of each value that has elements which are not finite. */
  readonly wrong: readonly number[];
  readonly low: number;
  readonly high: number;
}

export function curveOf({ values }: TensorHistory): Curve {
  const [least, largest, mean] = ["min", "max", "mean"].map((name) => Array.from(column(values, name)));
  const [finite, size] = [column(values, "finite"), column(values, "size")];
  const known = (list: readonly number[] | undefined): number[] => (list ?? []).filter((one) => Number.isFinite(one));
  const [low, high] = [Math.min(...known(least)), Math.max(...known(largest))];
  const across = (row: number): number => (values.rows < 2 ? 0.5 : row / (values.rows - 1));
  const down = (value: number): number => (high > low ? 1 - (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5);
  const there: (readonly [number, number])[] = [];
  const back: (readonly [number, number])[] = [];
  const lines: (readonly [number, number])[][] = [[]];
  const wrong: number[] = [];
  for (let row = 0; row < values.rows; row++) {
    const [a, b, m] = [least?.[row] ?? NaN, largest?.[row] ?? NaN, mean?.[row] ?? NaN];
    if ((finite[row] ?? 0) < (size[row] ?? 0)) wrong.push(across(row));
    if (Number.isFinite(m)) lines[lines.length - 1]?.push([across(row), down(m)]);
    else lines.push([]);
    if (!Number.isFinite(a) || !Number.isFinite(b)) continue;
    there.push([across(row), down(b)]);
    back.unshift([across(row), down(a)]);
  }
  return { band: [...there, ...back], mean: lines.filter((line) => line.length > 0), wrong, low, high };
}

/** What the curve shows, in words. */
export function curveText(tensor: string, { low, high, wrong }: Curve, count: number): string {
  const range = Number.isFinite(low) ? `, from ${significant(low)} to ${significant(high)}` : "";
  return `${whole(count)} values of ${tensor}${range}${wrong.length > 0 ? `, ${whole(wrong.length)} of them not finite` : ""}`;
}
