/** Whose figures are shown - of which program, if there are several - and of how many steps and how old they are. */
import { basisText } from "../model/figures.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";

/** Ages are told anew so often. */
const REFRESH_MS = 1000;

export class ProgramChoice {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #choice = make("select", { "aria-label": "Figures of", "data-testid": "fs-program", ...OWN_KEYS });
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-basis" });

  constructor(view: ViewContext) {
    this.#view = view;
    const { trace, until } = view;
    this.element = make("span", { class: "fs-program" }, this.#choice, this.#note);
    this.#choice.addEventListener("change", () => trace.choose(this.#choice.value), { signal: until });
    trace.changed.connect((what) => what === "state" && this.update(), until);
    const timer = setInterval(() => this.element.offsetParent !== null && this.#tell(), REFRESH_MS);
    until.addEventListener("abort", () => clearInterval(timer), { once: true });
    this.update();
  }

  update(): void {
    const { programs, program } = this.#view.trace;
    const names = programs.map(({ name }) => name);
    const shown = [...this.#choice.options].map(({ value }) => value);
    if (names.join("\n") !== shown.join("\n")) this.#choice.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    this.#choice.hidden = names.length < 2;
    this.#choice.value = program?.name ?? "";
    this.element.hidden = program === null;
    this.#tell();
  }

  #tell(): void {
    const { trace } = this.#view;
    const text = trace.program === null ? "" : basisText(trace.program, trace.ageAt(performance.now()));
    setText(this.#note, text);
    this.#note.title = text;
  }
}
