/** The values of the selected operation's outputs at a stop. They are asked for while the panel is open. */
import { targetOf } from "../model/debug.js";
import { whole } from "../model/figures.js";
import { momentText } from "../model/past.js";
import { questionOf, whyNone, whyNotKept, whyNotRecorded } from "../model/value_facts.js";
import type { ValueState } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { valueElement, type Slices } from "./value_element.js";

class ValuePanel {
  readonly element = make("section", { class: "fs-values", "data-testid": "fs-values", "aria-label": "Value" });
  readonly #view: ViewContext;
  readonly #note = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-values-note" });
  readonly #said = make("p", { role: "status", "data-testid": "fs-replaced" });
  readonly #list = make("div");
  readonly #again = make("button", { type: "button", class: "fs-button fs-wide", title: "Computes that step again, up to behind this operation: then all its values are there", ...OWN_KEYS }, "Compute the step again");
  #shown: unknown = null;
  #tensors = "";
  /** Where pictures of a held step's values are taken. */
  #at: readonly number[] = [];
  #shownBase: unknown = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { until } = view;
    this.element.append(this.#note, this.#said, this.#again, this.#list);
    this.#again.addEventListener("click", () => this.#compute(), { signal: until });
    this.#list.addEventListener("submit", (event) => this.#replace(event), { signal: until });
  }

  get #slices(): Slices {
    return {
      at: this.#at, step: null, choose: (at) => {
        this.#at = at;
        this.update();
      },
    };
  }

  /** Has the step that is looked at computed again, up to the selected operation. */
  #compute(): void {
    const { model, selection, store, session } = this.#view;
    const node = targetOf(model, selection.box);
    if (node !== null && store.step !== null) session.send("replay", { step: store.step, op: node.name, iterations: [] });
  }

  /** Sends what was typed in the place of a value. */
  #replace(event: Event): void {
    event.preventDefault();
    const { debug, session } = this.#view;
    const form = event.target instanceof HTMLFormElement ? event.target : null;
    const [tensor, input] = [form?.dataset.replace, form?.querySelector("input")];
    if (tensor !== undefined && input && debug.stop && session.isHeard) {
      session.send("replace", { stop: debug.stop.id, tensor, text: input.value.trim() });
    }
  }

  /** Whether a recorded step is looked at: one that was computed again, and stands, tells all values. */
  get #isOfPast(): boolean {
    const { session, store, debug: { stop } } = this.#view;
    return session.isRecorded || (store.step !== null && !(stop?.is_past && stop.step === store.step));
  }

  update(): void {
    if (this.#isOfPast) return this.#showRecorded();
    const { model, debug, selection, drawers, session } = this.#view;
    const tensors = questionOf(model, debug, selection.box)?.tensors.join() ?? "";
    if (tensors !== this.#tensors) [this.#tensors, this.#at] = [tensors, []];
    const question = questionOf(model, debug, selection.box, this.#at);
    if (!drawers.isOpen("value") || question === null) debug.forget();
    else if (session.isHeard && !debug.isAsked(question)) session.ask("ask_values", { request_id: debug.await(question), ...question }, (told) => debug.takeValues(told));
    if (drawers.isOpen("value")) this.#show();
  }

  /** Of a recording: the value that the selected operation had in the chosen step. */
  #showRecorded(): void {
    const { model, past, selection, drawers, session, stage, store, rewind } = this.#view;
    if (!drawers.isOpen("value")) return;
    const node = targetOf(model, selection.box);
    const tensor = past.recordedOf((node?.outputs ?? []).map((_, k) => `${node?.name}:${k}`));
    if (tensor !== null && tensor !== past.tensor) return past.chooseTensor(tensor);
    const question = tensor === null ? null : past.question();
    if (question !== null && session.isAnswered) session.ask("ask_history", { request_id: past.await(question), ...question }, (told) => past.take(told));
    const moment = past.moments[past.row];
    const isThen = moment !== undefined && (store.step === null || moment.step === store.step);
    const [value, error] = tensor === null ? [null, ""] : [past.shown, past.answer?.error ?? ""];
    setText(this.#note, tensor !== null ? error : session.isRecorded ? whyNotRecorded(past.state, node) : whyNotKept(past.state, node, store.step ?? 0, rewind.canReplay(store.step ?? -1)));
    this.#again.hidden = session.isRecorded || node === null || (isThen && value !== null) || !rewind.canReplay(store.step ?? -1);
    this.#note.hidden = (this.#note.textContent ?? "") === "";
    setText(this.#said, value && moment ? `${momentText(moment)}${isThen ? "" : `: the last value before step ${whole(store.step ?? 0)}`}` : "");
    this.#said.hidden = this.#said.textContent === "";
    this.#said.className = "fs-note";
    const kept = rewind.base?.value ?? null;
    const base = kept !== null && value !== null && kept.name === value.name && rewind.base?.heat.step !== moment?.step ? kept : null;
    if ((value === this.#shown && base === this.#shownBase) || (value === null && tensor !== null && error === "")) return;
    this.#shown = value;
    this.#shownBase = base;
    const slices = session.isRecorded ? null : { at: past.at, choose: (at: readonly number[]) => past.lookAt(at), step: moment?.step ?? null };
    this.#list.classList.toggle("fs-both", base !== null && value !== null);
    const both = base && value ? [labelled(`step ${whole(rewind.base?.heat.step ?? 0)}`, valueElement(base, stage.theme)), labelled(`step ${whole(moment?.step ?? 0)}`, valueElement(value, stage.theme, [], slices))] : null;
    this.#fill((both ?? (value ? [valueElement(value, stage.theme, [], slices)] : [])));
  }

  #show(): void {
    const { model, debug, selection, stage } = this.#view;
    this.#again.hidden = true;
    const note = whyNone(model, debug, selection.box);
    setText(this.#note, note);
    this.#note.hidden = note === "";
    const said = note === "" ? debug.replaced : null;
    setText(this.#said, said?.message ?? "");
    this.#said.hidden = said === null;
    this.#said.className = said?.isDone ? "fs-note" : "fs-problem";
    const values = note === "" ? (debug.answer?.values ?? []) : [];
    if (values === this.#shown) return;
    this.#shown = values;
    this.#list.classList.remove("fs-both");
    this.#fill(values.map((value) => valueElement(value, stage.theme, value.state === "alive" ? [replacing(value)] : [], this.#slices)));
  }

  /** A field that has the focus keeps it. */
  #fill(elements: readonly HTMLElement[]): void {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
    this.#list.replaceChildren(...elements);
    if (focused) [...this.#list.querySelectorAll<HTMLElement>("input")].find((field) => field.getAttribute("aria-label") === focused)?.focus({ preventScroll: true });
  }
}

function labelled(text: string, element: HTMLElement): HTMLElement {
  return make("div", {}, make("strong", {}, text), element);
}

const NUMBERS = "0.5, or [[1, 2], [3, 4]] of the same shape";

/** What gives the tensor another value, for all that runs from here on. */
function replacing({ name }: ValueState): HTMLElement {
  const hint = `${NUMBERS}: a number alone fills it`;
  return make(
    "form", { class: "fs-replace", "data-replace": name },
    make("label", {}, "replace by ", make("input", {
      type: "text", required: "", spellcheck: "false", autocomplete: "off", placeholder: NUMBERS, title: hint, "aria-label": `Replace ${name} by`, ...OWN_KEYS,
    })),
    make("button", { type: "submit", class: "fs-button fs-wide", title: "What runs from here on is given this value", ...OWN_KEYS }, "Replace"),
  );
}

export const valuePanel: Panel = {
  id: "value", title: "Value", region: "panels", order: 90, least: { w: 260, h: 130 }, shuts: "Close the values",
  make(view) {
    const { model, store, session, debug, past, rewind, drawers, until } = view;
    const panel = new ValuePanel(view);
    const update = (): void => panel.update();
    model.changed.connect(({ fresh }) => {
      // The kernel may be another one, or may not have heard the question.
      if (fresh) debug.forget();
      if (fresh && store.step !== null) past.chooseStep(store.step);
      update();
    }, until);
    session.changed.connect(update, until);
    debug.changed.connect(update, until);
    rewind.changed.connect(update, until);
    past.changed.connect(() => (session.isRecorded || store.step !== null) && update(), until);
    store.changed.connect(({ what }) => {
      if (what === "selection" || what === "step") update();
    }, until);
    drawers.changed.connect((id) => id === "value" && update(), until);
    return panel.element;
  },
};
