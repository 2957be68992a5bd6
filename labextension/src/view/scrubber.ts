/** The line under the picture that goes through the recorded steps: all of the view is that of the step that is chosen. */
import { nearest, whereText } from "../model/rewind.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

/** A step is shown for so long while steps are played. */
const PLAY_MS = 400;

class Scrubber {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "Recorded step", "data-testid": "fs-scrubber", ...OWN_KEYS });
  readonly #where = make("output", { "data-testid": "fs-scrubbed" });
  readonly #now = make("button", { type: "button", class: "fs-text-button", title: "Show what is, not what was", ...OWN_KEYS }, "Now");
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(view: ViewContext) {
    this.#view = view;
    const { commands, rewind, root, until, store, trace, model } = view;
    this.element = make(
      "div", { class: "fs-scrub", role: "group", "aria-label": "Recorded steps" }, commands.button("play"), commands.button("step-earlier"),
      this.#slider, commands.button("step-later"), this.#where, commands.button("compare"), this.#now,
    );
    this.#slider.addEventListener("input", () => {
      const { steps } = rewind;
      const place = Number(this.#slider.value);
      rewind.go(place >= steps.length ? null : (steps[place] ?? null), root);
    }, { signal: until });
    this.#now.addEventListener("click", () => rewind.go(null, root), { signal: until });
    const update = (): void => this.#update();
    rewind.changed.connect(update, until);
    store.changed.connect(({ what }) => what === "step" && update(), until);
    trace.changed.connect(update, until);
    model.changed.connect(update, until);
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
    this.#update();
  }

  #update(): void {
    const { rewind, root, commands } = this.#view;
    const { steps, step, isPlaying } = rewind;
    // One step is the newest: there is nothing to go through.
    this.element.hidden = steps.length < 2 && step === null;
    commands.refresh();
    if (this.element.hidden) return;
    this.#slider.max = String(steps.length);
    this.#slider.value = String(step === null ? steps.length : nearest(steps, step));
    const text = whereText(steps, step);
    this.#slider.setAttribute("aria-valuetext", text);
    setText(this.#where, text);
    this.#where.title = text;
    this.#now.disabled = step === null;
    this.element.dataset.step = step === null ? "" : String(step);
    clearTimeout(this.#timer);
    if (isPlaying) this.#timer = setTimeout(() => rewind.tick(root), PLAY_MS);
  }
}

export const scrubberPanel: Panel = { id: "scrubber", title: "Recorded steps", region: "bottom", order: 10, make: (view) => new Scrubber(view).element };
