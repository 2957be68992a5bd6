/** "Stop at the first NaN": whether steps are held at one, and what has made it. */
import type { Wish } from "../wire/channel.js";
import type { Culprit, StopState } from "../wire/messages.js";
import type { DebugModel } from "./debug.js";
import { Signal } from "./signal.js";

export class CulpritModel {
  /** An answer has come. */
  readonly changed = new Signal<void>();
  readonly #debug: DebugModel;
  #request = 0;
  #asked = "";
  #answer: Culprit | null = null;

  constructor(debug: DebugModel) {
    this.#debug = debug;
  }

  /** Whether steps are held at the first value that is not finite. */
  get isArmed(): boolean {
    return this.#debug.state?.breakpoints.some((point) => point.stops_at_nan && point.is_enabled) ?? false;
  }

  /** The step that is held for a value, of the stop that is looked at if that is one; null for none. */
  get stop(): StopState | null {
    const stops = this.#debug.state?.stops ?? [];
    const found = stops.filter(({ culprit }) => culprit !== null);
    return found.find(({ id }) => id === this.#debug.stop?.id) ?? found[0] ?? null;
  }

  /** The operations that are framed. */
  get ops(): readonly number[] {
    return (this.#debug.state?.stops ?? []).flatMap(({ culprit }) => (culprit === null ? [] : [culprit]));
  }

  /** What was answered of the held step; null where nothing was yet. */
  get answer(): Culprit | null {
    const { stop } = this;
    return stop !== null && this.#answer?.stop === stop.id ? this.#answer : null;
  }

  /** What is to be asked now; null where the answer is there, or on its way. */
  question(): Wish<"ask_culprit"> | null {
    const { stop } = this;
    if (stop === null || stop.id === this.#asked) return null;
    this.#asked = stop.id;
    return { request_id: ++this.#request, stop: stop.id };
  }

  /** What was asked is not waited for: the kernel may never have heard it. */
  forget(): void {
    this.#asked = "";
  }

  take(answer: Culprit): void {
    if (answer.request_id !== this.#request) return;
    this.#answer = answer;
    this.changed.emit();
  }
}

/** What the panel says by itself; "" where it tells of a culprit. */
export function ownText(culprit: Pick<CulpritModel, "stop" | "answer" | "isArmed">, isHeard: boolean): string {
  const { stop, answer, isArmed } = culprit;
  if (!isHeard) return "No session hears this view.";
  if (stop !== null) return answer === null ? "Looking for what made it\u2026" : answer.error;
  return isArmed
    ? "Armed: a step is held at the first value that is NaN or infinite, wherever it is made. Nothing was found yet."
    : "Not armed: press \u201cStop at first NaN\u201d, and run steps.";
}
