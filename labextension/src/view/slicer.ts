/**
 * Does work in slices on the page's main thread, so that no task of the page is long: pointer, keys and drawing come between
 * two slices. What the user waits for goes before what the kernel has told.
 */
import type { Sliced } from "../wire/sliced.js";

/** How long a slice lasts, but for its last stretch. */
const SLICE_MS = 8;

export class Slicer {
  readonly #urgent: Sliced<void>[] = [];
  readonly #later: Sliced<void>[] = [];
  readonly #next = new MessageChannel();
  #isRunning = false;

  constructor(until: AbortSignal) {
    this.#next.port1.onmessage = () => this.#run();
    until.addEventListener("abort", () => {
      this.#urgent.length = this.#later.length = 0;
      this.#next.port1.close();
    }, { once: true });
  }

  /** Does work after all that was given before; where there is none, its first slice at once. */
  later(work: Sliced<void>): void {
    this.#later.push(work);
    this.#begin();
  }

  /** Does work before all that may be done later. */
  soon(work: Sliced<void>): void {
    this.#urgent.push(work);
    this.#begin();
  }

  #begin(): void {
    if (!this.#isRunning) this.#run();
  }

  #run(): void {
    this.#isRunning = true;
    const end = performance.now() + SLICE_MS;
    try {
      while (performance.now() < end && this.#step());
    } finally {
      this.#isRunning = this.#urgent.length + this.#later.length > 0;
      if (this.#isRunning) this.#next.port2.postMessage(null);
    }
  }

  /** One stretch of work; whether there was any. */
  #step(): boolean {
    const queue = this.#urgent.length > 0 ? this.#urgent : this.#later;
    const [work] = queue;
    if (!work) return false;
    let isDone = true;
    try {
      isDone = work.next().done ?? false;
    } finally {
      // What fails is over, too.
      if (isDone) queue.splice(queue.indexOf(work), 1);
    }
    return true;
  }
}
