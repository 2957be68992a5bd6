/** Two steps side by side: what each box took in one and in the other. Pure. */
import { duration, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { HeatBoxes, type Heat } from "./heat.js";
import type { BoxId } from "./ids.js";

/** Nanoseconds of a box in both steps; null where it did not run. */
export interface BothTimes {
  readonly before_ns: number | null;
  readonly after_ns: number | null;
}

export class StepDifference {
  readonly #before: HeatBoxes;
  readonly #after: HeatBoxes;

  constructor(model: GraphModel, before: Heat, after: Heat) {
    this.#before = new HeatBoxes(model, before.ops);
    this.#before.take(before.self_ns);
    this.#after = new HeatBoxes(model, after.ops);
    this.#after.take(after.self_ns);
  }

  /** Null where nothing of a box ran in either. */
  of(box: BoxId): BothTimes | null {
    const [before_ns, after_ns] = [this.#before.of(box), this.#after.of(box)];
    return before_ns === null && after_ns === null ? null : { before_ns, after_ns };
  }
}

/** How much longer the second step took there. */
export const changeOf = ({ before_ns, after_ns }: BothTimes): number => (after_ns ?? 0) - (before_ns ?? 0);

/** "+1.20 ms", "−300 µs", "same", "new", "gone". */
export function changeText(both: BothTimes): string {
  if (both.before_ns === null) return "new";
  if (both.after_ns === null) return "gone";
  const change = changeOf(both);
  if (change === 0) return "same";
  return `${change < 0 ? "\u2212" : "+"}${duration(Math.abs(change) / 1e9)}`;
}

/** "1.20 ms in step 3, 4.00 ms in step 12". */
export function bothText({ before_ns, after_ns }: BothTimes, before: number, after: number | null): string {
  const of = (ns: number | null, where: string): string => `${ns === null ? "did not run" : duration(ns / 1e9)} in ${where}`;
  return `${of(before_ns, `step ${whole(before)}`)}, ${of(after_ns, after === null ? "a usual step" : `step ${whole(after)}`)}`;
}
