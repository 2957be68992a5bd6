/** The past: chosen tensors over steps and iterations, a slider through them, and steps that are computed again. */
import { targetOf } from "../model/debug.js";
import { significant } from "../model/figures.js";
import { curveOf, curveText, momentText, recordedText, stateText, type Curve } from "../model/past.js";
import { shortFetch } from "../model/run_setup.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { valueElement } from "./value_element.js";

/** So much may be kept. */
const MAX_BYTES = 1 << 28;
/** While steps run, what is shown follows so often. */
const REFRESH_MS = 250;
const NS = "http://www.w3.org/2000/svg";
const NO_VALUES = "This recording has no values. Those that are fetched in its steps are kept, and those that session.debug.record records.";
const EMPTY = "Nothing is recorded. Select an operation and record it: its values are kept over steps and iterations, and steps can be computed again or stepped back.";

class PastPanel {
  readonly element = make("section", { class: "fs-past", "data-testid": "fs-past", "aria-label": "Past" });
  readonly #view: ViewContext;
  readonly #record = make("button", { type: "button", class: "fs-button fs-wide", ...OWN_KEYS });
  readonly #forget = make("button", { type: "button", class: "fs-button fs-wide", title: "Record nothing any more", ...OWN_KEYS }, "End");
  readonly #tensor = make("select", { "aria-label": "Recorded tensor", ...OWN_KEYS });
  readonly #state = make("span", { class: "fs-note", "data-testid": "fs-past-state" });
  readonly #problem = make("p", { class: "fs-problem", role: "alert", "data-testid": "fs-past-problem" });
  readonly #empty = make("p", { class: "fs-empty", role: "status" }, EMPTY);
  readonly #curve = make("div", { class: "fs-curve" });
  readonly #slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "Moment", "data-testid": "fs-past-slider", ...OWN_KEYS });
  readonly #moment = make("output", { "data-testid": "fs-past-moment" });
  readonly #replay = make("button", { type: "button", class: "fs-button fs-wide", ...OWN_KEYS }, "Compute again up to here");
  readonly #body: HTMLElement;
  readonly #value = make("div", { class: "fs-past-value" });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #askedAt_ms = -Infinity;
  #shown: unknown = null;
  #drawn: unknown = null;
  #tensors = "";

  constructor(view: ViewContext) {
    this.#view = view;
    const { until, past, session, commands } = view;
    const head = make(
      "div", { class: "fs-debug-head" }, this.#record, this.#tensor, commands.button("step-back"), this.#forget, this.#state,
    );
    const line = make("div", { class: "fs-past-line" }, this.#slider, this.#moment, this.#replay);
    this.#body = make("div", {}, this.#curve, line, this.#value);
    this.element.append(head, this.#problem, this.#empty, this.#body);
    const on = (element: HTMLElement, name: string, act: () => void): void => element.addEventListener(name, act, { signal: until });
    on(this.#record, "click", () => this.#recordSelection());
    on(this.#forget, "click", () => session.send("record"));
    on(this.#tensor, "change", () => past.chooseTensor(this.#tensor.value));
    on(this.#slider, "input", () => past.chooseRow(Number(this.#slider.value)));
    on(this.#replay, "click", () => this.#goBack());
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  /** The selected operation's first output; "" for none. */
  get #selected(): string {
    const { model, selection } = this.#view;
    const node = targetOf(model, selection.box);
    return node && node.outputs.length > 0 ? `${node.name}:0` : "";
  }

  #recordSelection(): void {
    const { past, session } = this.#view;
    const tensors = [...new Set([...(past.state?.tensors ?? []), ...(this.#selected === "" ? [] : [this.#selected])])];
    session.send("record", { tensors, max_bytes: MAX_BYTES });
    if (this.#selected !== "") past.chooseTensor(this.#selected);
  }

  /** Has the step computed again, up to the operation that makes the value. */
  #goBack(): void {
    const { past, session, drawers } = this.#view;
    const [moment, tensor] = [past.moments[past.row], past.tensor];
    if (!moment || tensor === null) return;
    drawers.setOpen("debug", true);
    session.send("replay", { step: moment.step, op: tensor.replace(/:\d+$/, ""), iterations: moment.iterations });
  }

  update(): void {
    const { past, session } = this.#view;
    const { state } = past;
    this.#ask();
    const selected = this.#selected;
    const isKnown = selected !== "" && (state?.tensors.includes(selected) ?? false);
    setText(this.#record, selected === "" ? "Record steps" : `Record ${shortFetch(selected)}`);
    this.#record.title = selected === "" ? "Keeps what steps are computed from; select an operation to keep its values too" : `Keeps the values of ${selected}. What was recorded so far ends`;
    this.#record.hidden = session.isRecorded;
    this.#record.disabled = !session.isHeard || isKnown || (selected === "" && state !== null);
    this.#forget.hidden = state === null || session.isRecorded;
    this.#state.hidden = state === null;
    this.#forget.disabled = this.#replay.disabled = !session.isHeard;
    setText(this.#state, state ? (session.isRecorded ? recordedText(state) : stateText(state)) : "");
    setText(this.#empty, session.isRecorded ? NO_VALUES : EMPTY);
    setText(this.#problem, past.problem);
    this.#problem.hidden = past.problem === "";
    this.#empty.hidden = state !== null;
    this.#body.hidden = past.tensor === null;
    this.#tensor.hidden = past.tensor === null;
    if (past.tensor !== null) this.#show();
  }

  #show(): void {
    const { past } = this.#view;
    const tensors = JSON.stringify(past.state?.tensors);
    if (tensors !== this.#tensors) {
      this.#tensors = tensors;
      this.#tensor.replaceChildren(...(past.state?.tensors ?? []).map((name) => make("option", { value: name }, shortFetch(name))));
    }
    this.#tensor.value = past.tensor ?? "";
    const { answer, moments, row, shown } = past;
    const isThere = moments.length > 0;
    this.#slider.max = String(Math.max(0, moments.length - 1));
    this.#slider.value = String(Math.max(0, row));
    this.#slider.disabled = !isThere;
    this.#replay.hidden = !isThere || this.#view.session.isRecorded;
    const moment = moments[row];
    const text = moment ? momentText(moment) : answer?.error || (answer ? "no step has run yet" : "\u2026");
    setText(this.#moment, text);
    this.#slider.setAttribute("aria-valuetext", text);
    this.#drawCurve(row, moments.length);
    if (shown === this.#shown || (shown === null && isThere)) return;
    this.#shown = shown;
    this.#value.replaceChildren(...(shown ? [valueElement(shown, this.#view.stage.theme, [], this.#view.session.isRecorded ? null : { at: past.at, choose: (at) => past.lookAt(at), step: moment?.step ?? null })] : []));
  }

  #drawCurve(row: number, count: number): void {
    const { past } = this.#view;
    const { answer, tensor } = past;
    if (answer !== this.#drawn) {
      this.#drawn = answer;
      const curve = answer && count > 0 ? curveOf(answer) : null;
      this.#curve.replaceChildren(...(curve ? curveElements(curve, curveText(shortFetch(tensor ?? ""), curve, count)) : []));
    }
    const share = count < 2 ? 0.5 : row / (count - 1);
    this.#curve.style.setProperty("--fs-moment", `${100 * share}%`);
  }

  /** Asks for what is looked at, and while steps run again and again. */
  #ask(): void {
    const { past, session } = this.#view;
    const question = past.question();
    if (question === null || !session.isAnswered) return;
    clearTimeout(this.#timer);
    const wait = this.#askedAt_ms + REFRESH_MS - performance.now();
    if (wait > 0) this.#timer = setTimeout(() => this.update(), wait);
    else {
      this.#askedAt_ms = performance.now();
      session.ask("ask_history", { request_id: past.await(question), ...question }, (told) => past.take(told));
    }
  }
}

function curveElements({ band, mean, wrong, low, high }: Curve, said: string): Element[] {
  const svg = document.createElementNS(NS, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": said })) svg.setAttribute(name, value);
  const points = (list: readonly (readonly [number, number])[]): string => list.map(([x, y]) => `${(1000 * x).toFixed(1)} ${(100 * y).toFixed(1)}`).join("L");
  const path = (name: string, d: string): void => {
    const made = document.createElementNS(NS, "path");
    made.setAttribute("class", name);
    made.setAttribute("d", d);
    svg.append(made);
  };
  if (band.length > 0) path("fs-curve-band", `M${points(band)}z`);
  path("fs-curve-mean", mean.map((line) => `M${points(line)}${line.length === 1 ? "h0" : ""}`).join(""));
  path("fs-curve-wrong", wrong.map((x) => `M${(1000 * x).toFixed(1)} 0v100`).join(""));
  const ends = Number.isFinite(low) ? [make("span", { "aria-hidden": "true" }, significant(high)), make("span", { "aria-hidden": "true" }, significant(low))] : [];
  return [svg, ...ends];
}

export const pastPanel: Panel = {
  id: "past", title: "Past", region: "panels", order: 95, least: { w: 300, h: 150 }, shuts: "Close the past",
  make(view) {
    const { model, store, session, past, drawers, until } = view;
    const panel = new PastPanel(view);
    const update = (): void => {
      if (drawers.isOpen("past")) panel.update();
    };
    model.changed.connect(({ fresh }) => {
      if (fresh) past.forget();
      update();
    }, until);
    session.changed.connect(update, until);
    past.changed.connect(update, until);
    store.changed.connect(({ what }) => what === "selection" && update(), until);
    drawers.changed.connect((id) => id === "past" && update(), until);
    return panel.element;
  },
};
