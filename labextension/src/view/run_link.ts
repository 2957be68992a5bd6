/** A view's link to what is to be run: as the kernel tells it, and what the user chooses. All views of a graph share it. */
import { NO_SETUP, setupFrom } from "../model/run_setup.js";
import { Signal } from "../model/signal.js";
import type { Choose, RunSetup } from "../wire/messages.js";
import type { WidgetState } from "./store_sync.js";

export class RunLink {
  readonly changed = new Signal<RunSetup>();
  readonly #state: WidgetState | null;
  #setup: RunSetup = NO_SETUP;

  /** Without a state nothing can be chosen: the picture is a saved one. */
  constructor(state: WidgetState | null, until: AbortSignal) {
    this.#state = state;
    const take = (): void => {
      this.#setup = setupFrom(state?.get("run_setup"));
      this.changed.emit(this.#setup);
    };
    state?.on("change:run_setup", take);
    until.addEventListener("abort", () => state?.off("change:run_setup", take), { once: true });
    this.#setup = setupFrom(state?.get("run_setup"));
  }

  get setup(): RunSetup {
    return this.#setup;
  }

  get isLive(): boolean {
    return this.#state !== null;
  }

  /** Whether it can be run. */
  get isReady(): boolean {
    return this.#setup.state === "ready" && this.#setup.problem === "";
  }

  fetch(names: readonly string[]): void {
    this.#choose("fetches", names);
  }

  /** Gives a tensor what was typed; null takes it from the feeds. */
  feed(name: string, text: string | null): void {
    this.#choose("feed", [name, text]);
  }

  /** Compares with this run from now on; null with the one before. */
  compareWith(run: number | null): void {
    this.#choose("baseline", run);
  }

  #choose(what: Choose["what"], value: Choose["value"]): void {
    this.#state?.send({ kind: "choose", what, value });
  }
}
