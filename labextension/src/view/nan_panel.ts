/** "Stop at first NaN": whether it is armed, and of the step that is held what made the value: inputs, way, line, and the step again. */
import { opBox } from "../model/ids.js";
import { ownText } from "../model/culprit.js";
import type { Culprit, ValueState } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { valueElement } from "./value_element.js";

class NanPanel {
  readonly element = make("section", { class: "fs-explain fs-nan", "data-testid": "fs-nan", "aria-label": "First NaN" });
  readonly #view: ViewContext;
  readonly #note = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-nan-note" });
  readonly #told = make("div", { "data-testid": "fs-nan-told" });
  #shown = "";
  #seen = "";

  constructor(view: ViewContext) {
    this.#view = view;
    this.element.append(make("div", { class: "fs-debug-head" }, view.commands.button("stop-at-nan", true), view.commands.button("pause", true)), this.#note, this.#told);
    this.element.addEventListener("click", ({ target }) => this.#onClick(target), { signal: view.until });
  }

  update(): void {
    const { culprit, session, drawers } = this.#view;
    const { stop } = culprit;
    if (stop !== null && stop.id !== this.#seen) this.#meet(stop.id, stop.culprit);
    if (!drawers.isOpen("stop-at-nan")) return;
    const wish = session.isHeard ? culprit.question() : null;
    if (wish !== null) session.ask("ask_culprit", wish, (answer) => culprit.take(answer));
    this.#show();
  }

  /** A step is held: the panel opens, and the culprit is selected. */
  #meet(stop: string, op: number | null): void {
    this.#seen = stop;
    this.#view.drawers.offer("stop-at-nan");
    this.#go(op);
  }

  #show(): void {
    const { culprit, session } = this.#view;
    const { answer } = culprit;
    const note = ownText(culprit, session.isHeard);
    setText(this.#note, note);
    this.#note.hidden = note === "";
    const told = culprit.stop !== null && answer?.error === "" ? answer : null;
    const text = JSON.stringify(told);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#told.replaceChildren(...(told === null ? [] : this.#elements(told)));
  }

  #elements(told: Culprit): HTMLElement[] {
    const last = told.path[told.path.length - 1];
    const at = told.iterations.length > 0 ? `, iteration ${told.iterations.join("/")}` : "";
    const head = make("p", { class: "fs-nan-head" }, make("strong", {}, told.what), " made by ", this.#link(last?.op ?? null, `${last?.name ?? ""} (${last?.type ?? ""})`), `, step ${told.step ?? "?"}${at}`);
    const facts = make("dl", { class: "fs-explain-parts" });
    const fact = (name: string, ...value: (Node | string)[]): void => facts.append(make("dt", {}, name), make("dd", {}, ...value));
    if (told.place !== "") fact("Made at", told.place, ...(told.source === "" ? [] : [" ", make("code", {}, told.source)]));
    if (told.path.length > 1) fact("It came by", ...told.path.flatMap(({ op, name }, k) => [...(k > 0 ? [" \u2192 "] : []), this.#link(op, name)]));
    if (told.already.length > 0) fact("There before", told.already.join("; "));
    fact("The step", this.#again(told));
    return [head, facts, make("div", { class: "fs-explain-tensors" }, ...this.#group("Takes", told.inputs), ...this.#group("Makes", told.outputs))];
  }

  #again({ why_not, step, path, iterations }: Culprit): HTMLElement {
    const name = path[path.length - 1]?.name ?? "";
    if (why_not !== "" || step === null) return make("span", {}, `cannot be computed again: ${why_not}`);
    return make("button", { type: "button", class: "fs-text-button", "data-again": JSON.stringify({ step, op: name, iterations }), ...OWN_KEYS }, `Compute again from step ${step}, up to ${name}`);
  }

  #group(title: string, values: readonly ValueState[]): HTMLElement[] {
    return values.length === 0 ? [] : [make("section", {}, make("h3", {}, title), ...values.map((value) => valueElement(value, this.#view.stage.theme)))];
  }

  #link(op: number | null, text: string): HTMLElement {
    return make("button", { type: "button", class: "fs-link", "data-op": String(op ?? ""), title: "Show it", ...OWN_KEYS }, text);
  }

  #onClick(target: EventTarget | null): void {
    const { op, again } = (target instanceof Element ? target.closest<HTMLElement>("[data-op], [data-again]") : null)?.dataset ?? {};
    if (op) this.#go(Number(op));
    if (again) this.#view.session.send("replay", JSON.parse(again));
  }

  #go(op: number | null): void {
    const { model, navigation } = this.#view;
    const id = op === null ? -1 : model.ownId(op);
    if (model.nodes.has(id)) navigation.go(opBox(id));
  }
}

export const nanPanel: Panel = {
  id: "stop-at-nan", title: "First NaN", region: "panels", order: 82, least: { w: 300, h: 150 },
  make(view) {
    const { model, session, debug, culprit, drawers, until } = view;
    const panel = new NanPanel(view);
    const update = (): void => panel.update();
    model.changed.connect(({ fresh }) => {
      if (fresh) culprit.forget();
      update();
    }, until);
    session.changed.connect(update, until);
    debug.changed.connect(update, until);
    culprit.changed.connect(update, until);
    drawers.changed.connect((id) => id === "stop-at-nan" && update(), until);
    return panel.element;
  },
};
