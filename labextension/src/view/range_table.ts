/** The table under the timeline that says what the selected stretch adds up to. */
import { deviceTexts } from "../model/devices.js";
import { duration, whole } from "../model/figures.js";
import { opBox } from "../model/ids.js";
import { rangeRows, RANGE_GROUPINGS, rangeTable, rangeText, type RangeGrouping } from "../model/range.js";
import { opOfNode } from "../model/slice_facts.js";
import { rampColor } from "../render/ramp.js";
import type { ViewContext } from "./context.js";
import { icon, make, OWN_KEYS, setText } from "./dom.js";

/** Rows that are listed, at most. */
const MOST = 200;
const WORDS: Readonly<Record<RangeGrouping, string>> = { op: "by operation", lane: "by lane", scope: "by scope" };

export class RangeTable {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #by = make("select", { "aria-label": "Sums", "data-testid": "fs-range-by", ...OWN_KEYS }, ...RANGE_GROUPINGS.map((one) => make("option", { value: one }, WORDS[one])));
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-range-note" });
  readonly #body = make("tbody");

  constructor(view: ViewContext) {
    this.#view = view;
    const { timeline, until } = view;
    const zoom = make("button", { type: "button", class: "fs-text-button", title: "Show the stretch alone", ...OWN_KEYS }, "Zoom");
    const copy = make("button", { type: "button", class: "fs-text-button", title: "Copy the table", ...OWN_KEYS }, "Copy");
    const close = make("button", { type: "button", class: "fs-button", "aria-label": "Close the sums", ...OWN_KEYS });
    close.append(icon("close"));
    const head = make("tr", {}, make("th", { scope: "col" }, "name"), ...["sum", "count", "mean"].map((name) => make("th", { scope: "col", class: "fs-number" }, name)));
    this.element = make(
      "section", { class: "fs-range fs-rows", "aria-label": "Selected stretch", "data-testid": "fs-range" },
      make("div", { class: "fs-timeline-bar" }, this.#by, this.#note, zoom, copy, close),
      make("div", { class: "fs-rows-scroll" }, make("table", {}, make("thead", {}, head), this.#body)),
    );
    this.element.hidden = true;
    const on = (element: HTMLElement, act: () => void): void => element.addEventListener("click", act, { signal: until });
    on(zoom, () => timeline.range && timeline.show(timeline.range.begin_ns, timeline.range.end_ns));
    on(close, () => timeline.select(null));
    on(copy, () => void navigator.clipboard?.writeText(rangeTable(this.#rows)));
    this.#by.addEventListener("change", () => this.update(), { signal: until });
    this.#body.addEventListener("click", ({ target }) => {
      const op = target instanceof Element ? target.closest<HTMLElement>("[data-op]")?.dataset.op : undefined;
      if (op !== undefined) view.navigation.go(opBox(Number(op)));
    }, { signal: until });
    timeline.selected.connect(() => this.update(), until);
  }

  get #rows(): ReturnType<typeof rangeRows> {
    const { timeline: { range, recording } } = this.#view;
    return range && recording ? rangeRows(recording, range, this.#by.value as RangeGrouping) : [];
  }

  update(): void {
    const { timeline: { range, recording }, model, stage } = this.#view;
    this.element.hidden = range === null || recording === null;
    if (range === null || recording === null) return;
    const rows = this.#rows;
    const say = deviceTexts(model);
    const all = Math.max(1, rows.reduce((sum, { sum_ns }) => sum + sum_ns, 0));
    const number = (text: string): HTMLElement => make("td", { class: "fs-number" }, text);
    setText(this.#note, rangeText(range, rows));
    this.#body.replaceChildren(...rows.slice(0, MOST).map(({ name, ops, sum_ns, count, mean_ns }) => {
      const op = ops.length === 0 ? null : opOfNode({ name, type: "", device: "", phase: "", ops }, (id) => model.nodes.get(id)?.name);
      const text = op === null ? say(name) : make("button", { type: "button", class: "fs-link", "data-op": String(op), ...OWN_KEYS }, name);
      const share = `linear-gradient(to right, ${rampColor(sum_ns / all, stage.theme)} ${(100 * sum_ns) / all}%, transparent 0)`;
      return make(
        "tr", {}, make("th", { scope: "row", title: name }, text),
        make("td", { class: "fs-number", style: `background: ${share} no-repeat bottom / 100% 3px` }, duration(sum_ns / 1e9)), number(whole(count)), number(duration(mean_ns / 1e9)),
      );
    }), ...(rows.length > MOST ? [make("tr", {}, make("td", { colspan: "4" }, `and ${whole(rows.length - MOST)} more`))] : []));
  }
}
