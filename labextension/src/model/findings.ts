/** "Why is it slow?": what the kernel has found of the steps that were traced. It is asked for while somebody looks. */
import type { Wish } from "../wire/channel.js";
import type { Findings } from "../wire/messages.js";
import { duration, plural } from "./figures.js";
import { Signal } from "./signal.js";

/** While steps are traced, what is shown follows so often. */
const REFRESH_MS = 1000;

export class FindingsModel {
  /** An answer has come. */
  readonly changed = new Signal<void>();
  #request = 0;
  #asked = "";
  #askedAt_ms = -Infinity;
  #answer: Findings | null = null;

  get answer(): Findings | null {
    return this.#answer;
  }

  /** What is to be asked now of a program; null where nothing was traced since it was asked last, or that was just now. */
  question(program: number, version: number, now_ms: number): Wish<"ask_findings"> | null {
    const key = `${program} ${version}`;
    if (key === this.#asked || now_ms - this.#askedAt_ms < REFRESH_MS) return null;
    this.#asked = key;
    this.#askedAt_ms = now_ms;
    return { request_id: ++this.#request, program };
  }

  /** What was asked is not waited for: the kernel may never have heard it, or nobody looks. */
  forget(): void {
    [this.#asked, this.#askedAt_ms, this.#answer] = ["", -Infinity, null];
  }

  take(answer: Findings): void {
    if (answer.request_id !== this.#request || this.#asked === "") return;
    this.#answer = answer;
    this.changed.emit();
  }
}

/** "12 steps of 3.1 ms each, with the time before them"; or why nothing is known. */
export function headText(answer: Findings | null, isRecording: boolean): string {
  if (answer === null) return isRecording ? "Waiting for steps\u2026" : "";
  if (answer.error !== "" || answer.steps === 0) return isRecording ? "No whole step was traced yet: run some steps." : "Nothing was traced: record some steps.";
  const of = `${plural(answer.steps, "step")} of ${duration(answer.step_s)}`;
  return answer.findings.length === 0 ? `${of}: nothing stands out.` : `${of}:`;
}
