/** The values of the selected operation's outputs at a stop. They are asked for while the panel is open. */
import { questionOf, stateText, valueFacts, whyNone } from "../model/value_facts.js";
import { significant } from "../model/figures.js";
import { shortFetch } from "../model/run_setup.js";
import { heatColor } from "../render/heat_map.js";
import type { Theme } from "../render/theme.js";
import type { ValueState } from "../wire/messages.js";
import { column } from "../wire/tables.js";
import type { ViewContext } from "./context.js";
import { button, make, OWN_KEYS, setText } from "./dom.js";
import { histogram } from "./histogram.js";
import type { Panel } from "./panel.js";

/** A heat map's room, and the largest side of a cell. */
const [ROOM_W, ROOM_H, MOST_CELL] = [240, 110, 14] as const;

class ValuePanel {
  readonly element = make("section", { class: "fs-values", "data-testid": "fs-values", "aria-label": "Value" });
  readonly #view: ViewContext;
  readonly #note = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-values-note" });
  readonly #said = make("p", { role: "status", "data-testid": "fs-replaced" });
  readonly #list = make("div");
  #shown: unknown = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { drawers, until } = view;
    const shut = button("Close the values", "close", () => drawers.setOpen("value", false), until);
    shut.classList.add("fs-values-close");
    this.element.append(shut, this.#note, this.#said, this.#list);
    this.#list.addEventListener("submit", (event) => this.#replace(event), { signal: until });
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

  update(): void {
    const { model, debug, selection, drawers, session } = this.#view;
    const question = questionOf(model, debug, selection.box);
    if (!drawers.isOpen("value") || question === null) debug.forget();
    else if (session.isHeard && !debug.isAsked(question)) session.askValues({ request_id: debug.await(question), ...question });
    if (drawers.isOpen("value")) this.#show();
  }

  #show(): void {
    const { model, debug, selection, stage } = this.#view;
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
    this.#list.replaceChildren(...values.map((value) => valueElement(value, stage.theme)));
  }
}

function valueElement(value: ValueState, theme: Theme): HTMLElement {
  const said = stateText(value);
  const list = make("dl");
  if (value.state === "alive") for (const { name, value: text } of valueFacts(value)) list.append(make("dt", {}, name), make("dd", {}, text));
  const counts = Array.from(column(value.histogram, "count"));
  const isSpread = counts.length > 0 && value.min !== value.max;
  return make(
    "article", { "data-tensor": value.name, "data-state": value.state }, make("h4", {}, shortFetch(value.name)),
    ...(value.state === "alive" ? [list] : []), ...(isSpread ? [spread(value, counts)] : []), ...(value.height > 1 ? [heatMap(value, theme)] : []),
    ...(said === "" ? [] : [make("p", { class: "fs-note" }, said)]), ...(value.state === "alive" ? [replacing(value)] : []),
  );
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

function spread({ min, max }: ValueState, counts: readonly number[]): HTMLElement {
  const ends = make("figcaption", {}, make("span", {}, significant(min ?? 0)), make("span", {}, significant(max ?? 0)));
  return make("figure", {}, histogram({ histogram: counts, minimum: min, maximum: max }), ends);
}

/** The last two axes: one cell for each element, or for evenly chosen ones. */
function heatMap({ picture, width, height, low, high, shape }: ValueState, theme: Theme): HTMLElement {
  const size = `${shape.slice(-2).join(" \u00d7 ")}${shape.length > 2 ? ", the first of all others" : ""}`;
  const canvas = make("canvas", {
    class: "fs-heat-map", width: String(width), height: String(height), role: "img", "data-testid": "fs-heat-map",
    "aria-label": `Heat map, ${size}, from ${significant(low)} to ${significant(high)}`, title: `${size}, from ${significant(low)} to ${significant(high)}; blue is not finite`,
  });
  const cell = Math.min(MOST_CELL, ROOM_W / width, ROOM_H / height);
  canvas.style.width = `${cell * width}px`;
  canvas.style.height = `${cell * height}px`;
  const ctx = canvas.getContext("2d");
  column(picture, "level").forEach((level, k) => {
    if (!ctx) return;
    ctx.fillStyle = heatColor(level, theme);
    ctx.fillRect(k % width, Math.floor(k / width), 1, 1);
  });
  return make("figure", {}, canvas, make("figcaption", {}, make("span", {}, size)));
}

export const valuePanel: Panel = {
  id: "value", title: "Value", region: "below", order: 90,
  make(view) {
    const { model, store, session, debug, drawers, until } = view;
    const panel = new ValuePanel(view);
    const update = (): void => panel.update();
    model.changed.connect(({ fresh }) => {
      // The kernel may be another one, or may not have heard the question.
      if (fresh) debug.forget();
      update();
    }, until);
    session.changed.connect(update, until);
    debug.changed.connect(update, until);
    store.changed.connect(({ what }) => what === "selection" && update(), until);
    drawers.changed.connect((id) => id === "value" && update(), until);
    return panel.element;
  },
};
