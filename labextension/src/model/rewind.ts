/**
 * Going through the steps that were recorded: those that were traced, and those that can be computed again. The step that is
 * looked at stands in the store; values, shares, devices, variables and the cluster are those of that step then.
 */
import { whole } from "./figures.js";
import type { StepHeat } from "./heat_step.js";
import type { PastModel } from "./past.js";
import { Signal } from "./signal.js";
import type { Store } from "./store.js";
import type { TraceModel } from "./trace.js";
import type { ValueState } from "../wire/messages.js";

/** Steps that can be gone to, at most: the newest. */
const MOST = 20_000;

/** The numbers of all recorded steps in their order. */
export function recordedSteps(traced: readonly { readonly number: number }[], history: { readonly steps: number; readonly first: number | null; readonly last: number | null } | null): number[] {
  const found = new Set(traced.map(({ number }) => number));
  const { steps = 0, first = null, last = null } = history ?? {};
  if (first !== null && last !== null) {
    // Of steps that are kept with gaps between them the ends are known.
    const hasAll = last - first + 1 === steps;
    for (const number of hasAll ? Array.from({ length: Math.min(MOST, steps) }, (_, k) => last - k) : [first, last]) found.add(number);
  }
  return [...found].sort((a, b) => a - b).slice(-MOST);
}

/** Of sorted numbers the place of the nearest one. */
export function nearest(steps: readonly number[], number: number): number {
  let [low, high] = [0, steps.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  const before = low - 1;
  return before >= 0 && number - (steps[before] ?? 0) <= (steps[low] ?? 0) - number ? before : low;
}

/** The step that others are compared with. */
export interface Base {
  readonly heat: StepHeat;
  /** The value that was shown of it; null for none. */
  readonly value: ValueState | null;
}

export class Rewind {
  readonly changed = new Signal<void>();
  readonly #store: Store;
  readonly #trace: TraceModel;
  readonly #past: PastModel;
  #isPlaying = false;
  #base: Base | null = null;

  constructor(store: Store, trace: TraceModel, past: PastModel) {
    [this.#store, this.#trace, this.#past] = [store, trace, past];
  }

  get steps(): readonly number[] {
    return recordedSteps(this.#trace.steps, this.#past.state);
  }

  /** The step that is looked at; null for the present. */
  get step(): number | null {
    return this.#store.step;
  }

  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  /** The step that what is shown is compared with; null for none. */
  get base(): Base | null {
    return this.#base;
  }

  /** Whether there is a step to compare with. */
  get canCompare(): boolean {
    return this.#base !== null || this.#trace.stepHeat !== null;
  }

  /** Compares what is shown from now on with the step that is looked at, or with none any more. */
  compare(): void {
    const { stepHeat } = this.#trace;
    if (this.#base === null && stepHeat === null) return;
    this.#base = this.#base === null && stepHeat ? { heat: stepHeat, value: this.#past.shown } : null;
    this.changed.emit();
  }

  /** Whether a step can be computed again. */
  canReplay(step: number): boolean {
    const { first = null, last = null } = this.#past.state ?? {};
    return first !== null && last !== null && step >= first && step <= last;
  }

  /** Goes to a recorded step, or with null to the present. */
  go(step: number | null, by: object): void {
    this.#setPlaying(false);
    this.#store.chooseStep(step, by);
  }

  /** Goes so many recorded steps on, in the present from the newest one; behind that lies the present. */
  move(count: number, by: object): void {
    const { steps, step } = this;
    const here = step === null ? steps.length - 1 : nearest(steps, step);
    const to = here + count;
    this.#setPlaying(false);
    this.#store.chooseStep(to >= steps.length ? null : (steps[Math.max(0, to)] ?? null), by);
  }

  /** Plays from the step that is looked at, or from the first one; or stops. */
  play(by: object): void {
    const { steps, step } = this;
    if (!this.#isPlaying && step === null) this.#store.chooseStep(steps[0] ?? null, by);
    this.#setPlaying(!this.#isPlaying && steps.length > 0);
  }

  /** Time for the next step of what plays: the newest one is the last. */
  tick(by: object): void {
    const { steps, step } = this;
    const next = step === null ? undefined : steps[nearest(steps, step) + 1];
    if (!this.#isPlaying || next === undefined) return this.#setPlaying(false);
    this.#store.chooseStep(next, by);
  }

  #setPlaying(isPlaying: boolean): void {
    if (isPlaying === this.#isPlaying) return;
    this.#isPlaying = isPlaying;
    this.changed.emit();
  }
}

/** "step 12 of 3 to 41". */
export function whereText(steps: readonly number[], step: number | null): string {
  if (steps.length === 0) return "";
  const [first, last] = [whole(steps[0] ?? 0), whole(steps[steps.length - 1] ?? 0)];
  return step === null ? `now; steps ${first} to ${last} are recorded` : `step ${whole(step)} of ${first} to ${last}`;
}
