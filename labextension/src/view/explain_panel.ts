/** "Explain this operation": what it does, in sentences, with the values of a step. It is asked for while the panel is open. */
import { targetOf } from "../model/debug.js";
import { deviceTexts } from "../model/devices.js";
import { partsOf, savedExplanation, whyUnexplained, type Explained } from "../model/explanation.js";
import { shortFetch } from "../model/run_setup.js";
import type { ExplainedTensor } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { valueElement } from "./value_element.js";

class ExplainPanel {
  readonly element = make("section", { class: "fs-explain", "data-testid": "fs-explain", "aria-label": "Explanation" });
  readonly #view: ViewContext;
  readonly #note = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-explain-note" });
  readonly #parts = make("dl", { class: "fs-explain-parts" });
  readonly #tensors = make("div", { class: "fs-explain-tensors" });
  #shown = "";

  constructor(view: ViewContext) {
    this.#view = view;
    this.element.append(this.#note, this.#parts, this.#tensors);
  }

  update(): void {
    const { model, debug, explanation, selection, drawers, session } = this.#view;
    if (!drawers.isOpen("explain")) return explanation.forget();
    const node = targetOf(model, selection.subject);
    if (node !== null && session.isHeard) {
      const wish = explanation.question(node.name, model, debug, performance.now());
      if (wish !== null) session.ask("ask_explanation", wish, (answer) => explanation.take(answer));
    }
    this.#show();
  }

  #show(): void {
    const { model, explanation, selection, session } = this.#view;
    const node = targetOf(model, selection.subject);
    const answer = node === null ? null : explanation.of(node.name);
    const isSaved = !session.isLive;
    const told: Explained | null = node === null ? null : isSaved ? savedExplanation(model, node) : answer;
    const waiting = told === null ? "\u2026" : (answer?.error ?? "");
    const note = whyUnexplained(model, selection.subject) || waiting;
    setText(this.#note, note);
    this.#note.hidden = note === "";
    const text = JSON.stringify(note === "" ? told : null);
    if (text === this.#shown) return;
    this.#shown = text;
    const parts = note === "" && told !== null ? told : { sentences: [], tensors: [] };
    const say = deviceTexts(model);
    this.#parts.replaceChildren(...partsOf(parts.sentences).flatMap(([title, said]) => [make("dt", {}, title), make("dd", say(said) === said ? {} : { title: said }, say(said))]));
    this.#tensors.replaceChildren(...this.#groups(parts.tensors));
  }

  #groups(tensors: readonly ExplainedTensor[]): HTMLElement[] {
    return ([["input", "Takes"], ["output", "Makes"]] as const).flatMap(([role, title]) => {
      const own = tensors.filter((one) => one.role === role);
      return own.length === 0 ? [] : [make("section", { "data-role": role }, make("h3", {}, title), ...own.map((one) => this.#tensor(one)))];
    });
  }

  #tensor({ name, type, why, value }: ExplainedTensor): HTMLElement {
    const said = why === "" ? [] : [make("p", { class: "fs-note" }, why)];
    if (value !== null) return valueElement(value, this.#view.stage.theme, said);
    return make("article", { "data-tensor": name, "data-state": "unknown" }, make("h4", {}, shortFetch(name)), make("span", {}, type), ...said);
  }
}

export const explainPanel: Panel = {
  id: "explain", title: "Explanation", region: "panels", order: 85, least: { w: 300, h: 130 }, shuts: "Close the explanation",
  make(view) {
    const { model, store, session, debug, explanation, drawers, until } = view;
    const panel = new ExplainPanel(view);
    const update = (): void => panel.update();
    model.changed.connect(({ fresh }) => {
      // The kernel may be another one, or may not have heard the question.
      if (fresh) explanation.forget();
      update();
    }, until);
    session.changed.connect(update, until);
    debug.changed.connect(update, until);
    explanation.changed.connect(update, until);
    store.changed.connect(({ what }) => what === "selection" && update(), until);
    drawers.changed.connect((id) => id === "explain" && update(), until);
    return panel.element;
  },
};
