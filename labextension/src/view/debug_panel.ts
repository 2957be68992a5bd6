/** The debugger: the steps that are held and why, the buttons that move them on, and the breakpoints. */
import { pointText, stopText, whereText, whyText } from "../model/debug.js";
import { plural } from "../model/figures.js";
import { opBox } from "../model/ids.js";
import type { BreakpointState, StopState } from "../wire/messages.js";
import { BreakForm } from "./break_form.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

const MOVES = ["pause", "step-back", "step-op", "step-iteration", "step-out", "step-run"] as const;

class DebugPanel {
  readonly element = make("section", { class: "fs-debug", "data-testid": "fs-debug", "aria-label": "Debugger" });
  readonly #view: ViewContext;
  readonly #stops = make("ul", { class: "fs-stops", "aria-label": "Held steps", "data-testid": "fs-stops", role: "status" });
  readonly #points = make("ul", { class: "fs-points", "aria-label": "Breakpoints", "data-testid": "fs-points" });
  readonly #waiting = make("ul", { class: "fs-points", "aria-label": "Breakpoints that wait", "data-testid": "fs-waiting" });
  readonly #empty = make("p", { class: "fs-note" }, "No breakpoints: select an operation and press b (before it) or B (after it), or fill in the line above.");
  readonly #problem = make("p", { class: "fs-problem", role: "alert", "data-testid": "fs-debug-problem" });
  readonly #form: BreakForm;
  #shown = "";

  constructor(view: ViewContext) {
    this.#view = view;
    const { commands, until } = view;
    this.#form = new BreakForm(view);
    const head = make(
      "div", { class: "fs-debug-head" },
      make("span", { class: "fs-buttons", role: "group", "aria-label": "Held step" }, ...MOVES.map((id) => commands.button(id))),
      commands.button("value", true),
    );
    this.element.append(head, this.#problem, this.#form.element, this.#form.problem, this.#stops, this.#points, this.#waiting, this.#empty);
    this.element.addEventListener("click", ({ target }) => this.#onClick(target), { signal: until });
    this.#points.addEventListener("change", ({ target }) => this.#onSwitch(target), { signal: until });
  }

  update(): void {
    const { debug, model } = this.#view;
    this.#form.update();
    const { problem } = this.#view.past;
    setText(this.#problem, problem);
    this.#problem.hidden = problem === "";
    const { state, stop, waiting } = debug;
    const told = JSON.stringify([state, stop?.id, model.version, waiting]);
    if (told === this.#shown) return;
    this.#shown = told;
    this.#stops.replaceChildren(...(state?.stops ?? []).map((one) => this.#stopElement(one, one.id === stop?.id)));
    this.#points.replaceChildren(...(state?.breakpoints ?? []).map((point) => this.#pointElement(point)));
    this.#waiting.replaceChildren(...waiting.map((text) => make("li", {}, text)));
    this.#empty.hidden = (state?.breakpoints.length ?? 0) + waiting.length > 0;
  }

  #stopElement(stop: StopState, isChosen: boolean): HTMLElement {
    const { model, debug } = this.#view;
    const text = make("button", { type: "button", class: "fs-link", "data-stop": stop.id, title: "Show where it is held, and its values", ...OWN_KEYS }, stopText(model, stop));
    const why = make("span", {}, debug.state ? whyText(debug.state, stop) : "");
    return make("li", { "aria-current": String(isChosen) }, text, why);
  }

  #pointElement(point: BreakpointState): HTMLElement {
    const { number, conditions, hits, error, is_enabled: isOn, is_watch: isWatch, found } = point;
    const name = `${isWatch ? "watchpoint" : "breakpoint"} ${number}, ${pointText(point)}`;
    const box = make("input", { type: "checkbox", "data-switch": String(number), "aria-label": `${name}: on`, title: isOn ? "Switch it off" : "Switch it on", ...OWN_KEYS });
    box.checked = isOn;
    const where = found || whereText(point);
    return make(
      "li", { "data-on": String(isOn) }, box,
      make("button", { type: "button", class: "fs-link", "data-go": String(number), title: "Show it", ...OWN_KEYS }, pointText(point)),
      make("code", { title: conditions }, conditions === "" || isWatch ? "" : `when ${conditions}`), make("span", { class: "fs-hits" }, plural(hits, "hit")),
      make("span", { class: error === "" && found === "" ? "fs-where" : "fs-where fs-problem", title: error ? `Its condition failed, so it did not hold: ${error}` : where }, error ? `condition failed: ${error}` : where),
      make("button", { type: "button", class: "fs-chip-close", "data-remove": String(number), title: "Remove it", "aria-label": `Remove ${name}`, ...OWN_KEYS }, "\u00d7"),
    );
  }

  #onClick(target: EventTarget | null): void {
    const { session, debug } = this.#view;
    const { stop, go, remove } = (target instanceof Element ? target.closest<HTMLElement>("[data-stop], [data-go], [data-remove]") : null)?.dataset ?? {};
    if (remove !== undefined) session.send("unbreak", Number(remove));
    if (stop !== undefined) {
      debug.chooseStop(stop);
      this.#go(debug.stop?.op ?? null);
    }
    const point = debug.state?.breakpoints.find(({ number }) => String(number) === go);
    if (point) this.#go(point.ops[0] ?? null, /^"(.*)"$/.exec(point.target)?.[1]);
  }

  #go(op: number | null, name?: string): void {
    const { model, navigation } = this.#view;
    const own = name === undefined ? undefined : model.tree.idOf(name);
    const id = own ?? (op === null ? undefined : model.ownId(op));
    if (id !== undefined && model.nodes.has(id)) navigation.go(opBox(id));
  }

  #onSwitch(target: EventTarget | null): void {
    const number = target instanceof HTMLInputElement ? target.dataset.switch : undefined;
    if (number !== undefined) this.#view.session.send((target as HTMLInputElement).checked ? "enable" : "disable", Number(number));
  }
}

export const debugPanel: Panel = {
  id: "debug", title: "Debugger", region: "panels", order: 80, least: { w: 320, h: 140 }, shuts: "Close the debugger",
  make(view) {
    const { model, store, session, debug, past, drawers, until } = view;
    const panel = new DebugPanel(view);
    const update = (): void => {
      if (drawers.isOpen("debug")) panel.update();
    };
    model.changed.connect(update, until);
    session.changed.connect(update, until);
    debug.changed.connect(update, until);
    past.changed.connect(update, until);
    store.changed.connect(({ what }) => what === "selection" && update(), until);
    drawers.changed.connect((id) => id === "debug" && update(), until);
    return panel.element;
  },
};
