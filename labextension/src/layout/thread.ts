/**
 * Runs the layout off the main thread: in one worker, which all views of a page share. The worker comes from a string, so
 * that one file is enough wherever the widget runs; where no worker can be made, the layout runs here, after a frame.
 */
import type { LayoutMemory } from "./tree.js";
import type { Positions, ScopeInput } from "./types.js";
import { WORKER_SOURCE } from "./worker_source.js";

/** The layouts of one view; what was laid out before is kept for each view. */
export class LayoutThread {
  readonly #shared = PageWorker.join();
  readonly #view: number;
  #memory: LayoutMemory | null = null;
  #last = 0;
  #done: ((positions: Positions) => void) | null = null;
  #root: ScopeInput | null = null;

  constructor(until: AbortSignal) {
    this.#view = this.#shared.enter((id, positions) => (positions ? this.#finish(id, positions) : void this.#runHere(this.#last)));
    until.addEventListener("abort", () => {
      this.#done = null;
      this.#root = null;
      this.#shared.leave(this.#view);
    }, { once: true });
  }

  /** Lays out; an answer that a later request has overtaken is dropped. */
  request(root: ScopeInput, done: (positions: Positions) => void): void {
    const id = ++this.#last;
    this.#root = root;
    this.#done = done;
    if (!this.#shared.send({ view: this.#view, id, root })) requestAnimationFrame(() => setTimeout(() => void this.#runHere(id)));
  }

  /** The layout is in the worker already: only a page that can have none loads it again. */
  async #runHere(id: number): Promise<void> {
    const { LayoutMemory, layoutTree } = await import("./tree.js");
    this.#memory ??= new LayoutMemory();
    if (id === this.#last && this.#root && this.#done) this.#finish(id, layoutTree(this.#root, this.#memory));
  }

  #finish(id: number, positions: Positions): void {
    const done = this.#done;
    if (id !== this.#last || !done) return;
    this.#done = null;
    this.#root = null;
    done(positions);
  }
}

/** What the worker is asked; without a root the view has closed. */
export interface LayoutRequest {
  readonly view: number;
  readonly id: number;
  readonly root: ScopeInput | null;
}

export interface LayoutAnswer {
  readonly view: number;
  readonly id: number;
  readonly positions: Positions;
}

/** Takes an answer; null where the worker has failed. */
type Hear = (id: number, positions: Positions | null) => void;

/** The worker of this page, while it has views. */
class PageWorker {
  static #page: PageWorker | null = null;
  #worker: Worker | null = null;
  #url: string | null = null;
  #views = 0;
  readonly #hearing = new Map<number, Hear>();

  static join(): PageWorker {
    return (this.#page ??= new PageWorker());
  }

  /** Returns the view's number. */
  enter(hear: Hear): number {
    if (this.#hearing.size === 0) this.#start();
    this.#hearing.set(++this.#views, hear);
    return this.#views;
  }

  leave(view: number): void {
    this.#hearing.delete(view);
    if (this.#hearing.size === 0) this.#release();
    else this.send({ view, id: 0, root: null });
  }

  /** Whether there is a worker to hear it. */
  send(request: LayoutRequest): boolean {
    this.#worker?.postMessage(request);
    return this.#worker !== null;
  }

  #start(): void {
    try {
      this.#url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
      this.#worker = new Worker(this.#url);
      this.#worker.onmessage = ({ data: { view, id, positions } }: MessageEvent<LayoutAnswer>) => this.#hearing.get(view)?.(id, positions);
      // A page's security policy may forbid such workers, which shows only now.
      this.#worker.onerror = () => {
        this.#release();
        for (const hear of this.#hearing.values()) hear(0, null);
      };
    } catch {
      this.#release();
    }
  }

  #release(): void {
    this.#worker?.terminate();
    this.#worker = null;
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = null;
  }
}
