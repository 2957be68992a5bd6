/** The list in the run bar that sets slow motion. */
import { make, OWN_KEYS } from "./dom.js";
import type { ViewContext } from "./context.js";
import { stateOf } from "./state.js";

/** Seconds per operation, 0 for full speed. */
const PACES: readonly (readonly [number, string])[] = [
  [0, "full speed"], [0.05, "0.05 s per op"], [0.25, "0.25 s per op"], [1, "1 s per op"],
];

export class Pace {
  readonly element = make("select", { class: "fs-pace", "aria-label": "Slow motion", title: "Slow motion", ...OWN_KEYS });
  readonly #view: ViewContext;

  constructor(view: ViewContext) {
    this.#view = view;
    this.element.append(...PACES.map(([seconds, text]) => make("option", { value: String(seconds) }, text)));
    this.element.addEventListener("change", () => {
      view.navigation.letGo();
      view.session.send("pace", Number(this.element.value));
    }, { signal: view.until });
  }

  update(): void {
    const { model } = this.#view;
    const { kind } = stateOf(this.#view);
    this.element.disabled = ["saved", "recording", "lost", "none", "closed"].includes(kind);
    this.#show(model.run?.pace_s ?? null);
  }

  /** Another view, or Python, may have set the pace; while the list is open it stays. */
  #show(pace_s: number | null): void {
    if (pace_s === null || document.activeElement === this.element) return;
    const value = String(pace_s);
    if (![...this.element.options].some((option) => option.value === value)) {
      this.element.append(make("option", { value }, `${value} s per op`));
    }
    if (this.element.value !== value) this.element.value = value;
  }
}
