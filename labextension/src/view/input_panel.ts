/** Queues and who waits at them, runners, coordinators and hooks: where input comes from, and what holds it up. Each leads to its box. */
import { opBox } from "../model/ids.js";
import { helperRows, inputKey, queueRows, type HelperRow, type QueueRow } from "../model/input.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS } from "./dom.js";
import type { Panel } from "./panel.js";

const EMPTY = "No queue has been used yet. Queues, and the runners, coordinators and hooks of training, are listed here with what they wait for.";

class InputPanel {
  readonly element = make("section", { class: "fs-input", "data-testid": "fs-input", "aria-label": "Input" });
  readonly #view: ViewContext;
  readonly #empty = make("p", { class: "fs-empty", role: "status" }, EMPTY);
  readonly #queues = make("ul", { class: "fs-queue-list", "aria-label": "Queues" });
  readonly #helpers = make("ul", { class: "fs-helper-list", "aria-label": "Runners, coordinators and hooks" });
  #shown = "";

  constructor(view: ViewContext) {
    this.#view = view;
    this.element.append(this.#empty, this.#queues, this.#helpers);
    this.element.addEventListener("click", ({ target }) => this.#onClick(target), { signal: view.until });
  }

  update(): void {
    const { model, drawers } = this.#view;
    if (!drawers.isOpen("input")) return;
    const key = inputKey(model.session);
    if (key === this.#shown) return;
    this.#shown = key;
    const [queues, helpers] = [queueRows(model), helperRows(model)];
    this.#empty.hidden = queues.length + helpers.length > 0;
    const focused = this.element.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.row : undefined;
    this.#queues.replaceChildren(...queues.map(queueElement));
    this.#helpers.replaceChildren(...helpers.map(helperElement));
    if (focused !== undefined) this.element.querySelector<HTMLElement>(`[data-row="${focused}"]`)?.focus();
  }

  #onClick(target: EventTarget | null): void {
    const op = (target instanceof Element ? target.closest<HTMLElement>("[data-op]") : null)?.dataset.op;
    if (op !== undefined) this.#view.navigation.go(opBox(Number(op)));
  }
}

function queueElement({ op, name, fill, least, size, rate, waits, error }: QueueRow, row: number): HTMLElement {
  const bar = make("span", { class: "fs-queue-fill", "aria-hidden": "true" });
  if (fill !== null) bar.append(part("fs-queue-full", "width", fill));
  if (least !== null) bar.append(part("fs-queue-least", "left", least));
  const head = make(
    "button", { type: "button", "data-op": String(op), "data-row": `queue ${row}`, title: "Show its box", ...OWN_KEYS },
    make("strong", {}, name), make("span", {}, size), make("span", { class: "fs-note" }, rate),
  );
  return make(
    "li", {}, head, ...(fill === null ? [] : [bar]), ...waits.map((text) => make("p", {}, text)),
    ...(error ? [make("p", { class: "fs-wrong" }, `A producer failed: ${error}`)] : []),
  );
}

function part(name: string, side: "width" | "left", share: number): HTMLElement {
  const made = make("span", { class: name });
  made.style[side] = `${Math.round(share * 1000) / 10}%`;
  return made;
}

function helperElement({ op, kind, name, text, hasFailed }: HelperRow, row: number): HTMLElement {
  const title = op === null ? name : make("button", { type: "button", "data-op": String(op), "data-row": `helper ${row}`, title: "Show the operation that it runs", ...OWN_KEYS }, name);
  return make("li", {}, make("span", { class: "fs-note" }, kind), make("span", {}, title), make("span", hasFailed ? { class: "fs-wrong" } : {}, text));
}

export const inputPanel: Panel = {
  id: "input", title: "Input", region: "panels", order: 30, least: { w: 300, h: 150 },
  make(view) {
    const { model, session, drawers, until } = view;
    const panel = new InputPanel(view);
    const update = (): void => panel.update();
    model.changed.connect(update, until);
    session.changed.connect(update, until);
    drawers.changed.connect((id) => id === "input" && update(), until);
    return panel.element;
  },
};
