/**
 * Runs the layout off the main thread. The worker comes from a string, so that one file is enough
 * wherever the widget runs; where no worker can be made, the layout runs here, after a frame.
 */
import { LayoutMemory, layoutTree } from "./tree.js";
import type { Positions, ScopeInput } from "./types.js";
import { WORKER_SOURCE } from "./worker_source.js";

export class LayoutThread {
  #worker: Worker | null;
  #url: string | null = null;
  readonly #memory = new LayoutMemory();
  #last = 0;
  #done: ((positions: Positions) => void) | null = null;
  #root: ScopeInput | null = null;

  constructor(until: AbortSignal) {
    this.#worker = this.#start();
    until.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** Lays out; an answer that a later request has overtaken is dropped. */
  request(root: ScopeInput, done: (positions: Positions) => void): void {
    const id = ++this.#last;
    this.#root = root;
    this.#done = done;
    if (this.#worker) this.#worker.postMessage({ id, root });
    else requestAnimationFrame(() => setTimeout(() => this.#runHere(id)));
  }

  #start(): Worker | null {
    try {
      this.#url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
      const worker = new Worker(this.#url);
      worker.onmessage = ({ data }: MessageEvent<{ id: number; positions: Positions }>) =>
        this.#finish(data.id, data.positions);
      // A page's security policy may forbid such workers, which shows only now.
      worker.onerror = () => this.#fallBack();
      return worker;
    } catch {
      return null;
    }
  }

  #fallBack(): void {
    this.#release();
    this.#runHere(this.#last);
  }

  #runHere(id: number): void {
    if (id === this.#last && this.#root && this.#done) this.#finish(id, layoutTree(this.#root, this.#memory));
  }

  #finish(id: number, positions: Positions): void {
    const done = this.#done;
    if (id !== this.#last || !done) return;
    this.#done = null;
    this.#root = null;
    done(positions);
  }

  #stop(): void {
    this.#done = null;
    this.#root = null;
    this.#release();
  }

  #release(): void {
    this.#worker?.terminate();
    this.#worker = null;
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = null;
  }
}
