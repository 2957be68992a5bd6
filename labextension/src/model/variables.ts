/** The variables of the graph with what the session keeps of them: filtered, sorted, slots under their variables. */
import type { Wish } from "../wire/channel.js";
import type { ValueState, VariableState, Variables } from "../wire/messages.js";
import { plural, significant, typeText, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { bytesText } from "./running.js";
import { Signal } from "./signal.js";

/** While steps run, what is shown follows so often. */
export const REFRESH_MS = 1000;
/** An answer that has not come by then is lost: the kernel was started again. */
const LOST_MS = 8000;
/** Numbers are told of so many values at most. */
export const MOST_MEASURED = 16;

export const VARIABLE_COLUMNS = ["name", "bytes", "written"] as const;
export type VariableColumn = (typeof VARIABLE_COLUMNS)[number];

/** A variable as a row of the table. */
export interface VariableRow {
  /** Tells rows apart, also from time to time. */
  readonly key: string;
  readonly op: number;
  readonly name: string;
  /** What stands before its own name: its scope, "" of a slot under its variable. */
  readonly scope: string;
  readonly short: string;
  /** How deep it stands under a variable that it accompanies. */
  readonly depth: number;
  /** How many stand under it that are not shown. */
  readonly hidden: number;
  readonly type: string;
  readonly bytes: string;
  readonly device: string;
  readonly written: string;
  readonly isTrainable: boolean;
  readonly why: string;
  /** Null where nothing is known of its values, yet. */
  readonly value: ValueState | null;
}

export interface VariableOrder {
  /** Null for program order. */
  readonly by: VariableColumn | null;
  readonly filter: string;
  readonly withSlots: boolean;
}

export class VariablesModel {
  readonly changed = new Signal<void>();
  readonly #model: GraphModel;
  #request = 0;
  #answer: Variables | null = null;
  #isWaiting = false;
  #askedStep: number | null = null;
  /** The step before which the answer tells the values; null for now. */
  #step: number | null = null;
  #asked = "";
  #askedAt_ms = -Infinity;
  /** The newest numbers of values: what has scrolled out of sight keeps those that it had. */
  readonly #values = new Map<string, ValueState>();

  constructor(model: GraphModel) {
    this.#model = model;
  }

  get answer(): Variables | null {
    return this.#answer;
  }

  /** The step before which the answer tells the values; null for now. */
  get step(): number | null {
    return this.#step;
  }

  /** Numbers of a variable's value; null where none were told. */
  value(name: string): ValueState | null {
    return this.#values.get(name) ?? null;
  }

  /** What is to be asked now; null where nothing is, or not yet. */
  question(inSight: readonly string[], step: number | null, now_ms: number): Wish<"ask_variables"> | null {
    const { session, version } = this.#model;
    const measured = inSight.slice(0, MOST_MEASURED);
    const key = JSON.stringify([version, session?.state ?? "", session?.steps ?? 0, measured, step]);
    const isRunning = session?.state === "running" && step === null;
    if (key === this.#asked && !isRunning) return null;
    const wait_ms = this.#isWaiting ? LOST_MS : isRunning ? REFRESH_MS : 0;
    if (now_ms - this.#askedAt_ms < wait_ms) return null;
    this.#asked = key;
    this.#askedAt_ms = now_ms;
    this.#isWaiting = true;
    this.#askedStep = step;
    return { request_id: ++this.#request, measured, step };
  }

  /** What was asked is not waited for: the kernel may be another one, or nobody looks. */
  forget(): void {
    this.#asked = "";
    this.#askedAt_ms = -Infinity;
    this.#isWaiting = false;
  }

  take(answer: Variables): void {
    if (answer.request_id !== this.#request) return;
    this.#isWaiting = false;
    this.#answer = answer;
    if (this.#step !== this.#askedStep) this.#values.clear();
    this.#step = this.#askedStep;
    for (const value of answer.values) this.#values.set(value.name, value);
    for (const { name, is_initialized } of answer.rows) if (is_initialized === false) this.#values.delete(name);
    this.changed.emit();
  }

  rows(order: VariableOrder): VariableRow[] {
    return variableRows(this.#answer?.rows ?? [], order, this.#values, this.#step);
  }
}

interface Group {
  readonly first: VariableState;
  readonly under: VariableState[];
}

/** The rows of a table; a variable stands where its slots are found, too. */
export function variableRows(all: readonly VariableState[], { by, filter, withSlots }: VariableOrder, values: ReadonlyMap<string, ValueState>, step: number | null = null): VariableRow[] {
  const sought = filter.trim().toLowerCase();
  const isFound = (one: VariableState): boolean => sought === "" || textOf(one).includes(sought);
  const groups = groupsOf(all).filter(({ first, under }) => isFound(first) || under.some(isFound));
  if (by !== null) groups.sort(COMPARE[by]);
  return groups.flatMap(({ first, under }) => {
    const shown = withSlots ? under.filter((one) => isFound(first) || isFound(one)) : [];
    return [rowOf(first, null, withSlots ? 0 : under.length, values, step), ...shown.map((one) => rowOf(one, first, 0, values, step))];
  });
}

function groupsOf(all: readonly VariableState[]): Group[] {
  const groups = new Map<number, Group>();
  const found: Group[] = [];
  for (const one of all) {
    const group = one.primary === null ? undefined : groups.get(one.primary);
    if (group) group.under.push(one);
    else found.push({ first: one, under: [] });
    groups.set(one.op, group ?? found[found.length - 1]!);
  }
  return found;
}

const bytesIn = ({ first, under }: Group): number => [first, ...under].reduce((sum, { nbytes }) => sum + nbytes, 0);
const writtenIn = ({ first }: Group): number => (first.is_initialized ? (first.written_in ?? -1) : -2);
const COMPARE: Readonly<Record<VariableColumn, (a: Group, b: Group) => number>> = {
  name: (a, b) => a.first.name.localeCompare(b.first.name, "en", { numeric: true }),
  bytes: (a, b) => bytesIn(b) - bytesIn(a),
  written: (a, b) => writtenIn(b) - writtenIn(a),
};

const textOf = (one: VariableState): string => `${one.name} ${typeText(one)} ${one.device} ${writtenText(one)} ${one.is_trainable ? "trainable" : ""}`.toLowerCase();

function rowOf(one: VariableState, above: VariableState | null, hidden: number, values: ReadonlyMap<string, ValueState>, step: number | null): VariableRow {
  const start = above !== null && one.name.startsWith(`${above.name}/`) ? above.name.length + 1 : one.name.lastIndexOf("/") + 1;
  return {
    key: `o${one.op}`, op: one.op, name: one.name, scope: above === null ? one.name.slice(0, start) : "", short: one.name.slice(start),
    depth: above === null ? 0 : 1, hidden, type: typeText(one), bytes: one.is_initialized ? bytesText(one.nbytes) : "",
    device: one.device, written: writtenText(one, step),
    isTrainable: one.is_trainable, why: one.why, value: values.get(one.name) ?? null,
  };
}

/** "step 12"; of one without a value, that. */
export function writtenText({ is_initialized, written_in }: VariableState, before: number | null = null): string {
  if (is_initialized === null) return "not known";
  if (!is_initialized) return "not initialised";
  if (written_in === null && before !== null) return `before ${whole(before)}`;
  return written_in === null ? "outside of steps" : `step ${whole(written_in)}`;
}

/** As many digits as a narrow column has room for: "0.0148", "9.5e-5". */
function short(value: number): string {
  const size = Math.abs(value);
  return value !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(1) : significant(value);
}

/** "min", "mean" and "max" of a row; "" where they are not known. */
export function numbersOf({ value }: VariableRow): readonly [string, string, string] {
  const text = (number: number | null | undefined): string => (number === null || number === undefined ? "" : short(number));
  return [text(value?.min), text(value?.mean), text(value?.max)];
}

/** What is wrong in a value: "2 NaN, 1 infinite"; "" for nothing. */
export function wrongText({ value }: VariableRow): string {
  if (value === null) return "";
  return [...(value.nan > 0 ? [plural(value.nan, "NaN")] : []), ...(value.inf > 0 ? [`${whole(value.inf)} infinite`] : [])].join(", ");
}

/** How many elements the numbers are of, where these are not all; "" else. */
export function sampleText({ value }: VariableRow): string {
  if (value === null) return "";
  const [all, seen] = [value.shape.reduce((product, n) => product * n, 1), value.finite + value.nan + value.inf];
  return seen < all ? `of ${whole(seen)} elements that lie evenly among ${whole(all)}` : "";
}

/** "12 variables, 3.2 MB, 2.1 MB of it in slots; 1 not initialised; 3 rows shown". */
export function summaryOf({ rows, nbytes, left_out }: Variables, shown: number): string {
  const slots = rows.reduce((sum, { primary, nbytes: own }) => sum + (primary === null ? 0 : own), 0);
  const empty = rows.filter(({ is_initialized }) => is_initialized === false).length;
  return [
    `${plural(rows.length + left_out, "variable")}, ${bytesText(nbytes)}${slots > 0 ? `, ${bytesText(slots)} of it in slots` : ""}`,
    ...(empty > 0 ? [`${whole(empty)} not initialised`] : []),
    ...(left_out > 0 ? [`the first ${whole(rows.length)} are listed: session.variables() has all`] : []),
    ...(shown < rows.length ? [`${plural(shown, "row")} shown`] : []),
  ].join("; ");
}
