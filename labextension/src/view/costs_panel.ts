/** The table of operations by what they cost in a step. */
import { costRows, COST_COLUMNS, GROUPINGS, madeText, type CostColumn, type CostRow, type Grouping } from "../model/costs.js";
import { deviceQuestion, deviceTexts, devicesOf } from "../model/devices.js";
import { duration, plural, shareText, significant } from "../model/figures.js";
import { opBox, opOf, pathOf, scopeBox } from "../model/ids.js";
import { rampColor } from "../render/ramp.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { ProgramChoice } from "./program_choice.js";
import { RowTable } from "./row_table.js";

/** While steps are recorded the table follows so often. */
const REFRESH_MS = 500;

const LABELS: Readonly<Record<CostColumn, string>> = { self: "self", total: "total", count: "runs", bytes: "makes" };
const MEANINGS: Readonly<Record<CostColumn, string>> = {
  self: "time in a step without what runs inside", total: "time in a step with what runs inside, as iterations of a loop",
  count: "runs in a step", bytes: "bytes made in a step, as far as shapes tell that",
};

class CostsPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #grouping = make("select", { "aria-label": "Group by", ...OWN_KEYS }, ...GROUPINGS.map((one) => make("option", { value: one }, `by ${one}`)));
  readonly #filter = make("input", { type: "search", "aria-label": "Filter operations", placeholder: "filter: name, type, line, device", spellcheck: "false", ...OWN_KEYS });
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-costs-note" });
  readonly #empty = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-costs-empty" });
  readonly #scroll: HTMLElement;
  readonly #rows: RowTable<CostRow>;
  readonly #heads = new Map<CostColumn, HTMLElement>();
  #by: CostColumn = "self";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(view: ViewContext) {
    this.#view = view;
    const { until, trace, drawers, store, model } = view;
    const head = make("tr", {}, make("th", { scope: "col" }, "operation"), make("th", { scope: "col" }, "share"), ...COST_COLUMNS.map((by) => this.#head(by)));
    const body = make("tbody");
    const table = make("table", { "data-testid": "fs-costs-table", "aria-label": "Operations by cost" }, make("thead", {}, head), body);
    this.#scroll = make("div", { class: "fs-rows-scroll" }, table);
    this.element = make(
      "section", { class: "fs-costs fs-rows", "aria-label": "Operations by cost", "data-testid": "fs-costs" },
      make("div", { class: "fs-timeline-bar" }, this.#grouping, this.#filter, new ProgramChoice(view).element, this.#note), this.#empty, this.#scroll,
    );
    this.#grouping.addEventListener("change", () => this.#refresh(), { signal: until });
    this.#filter.addEventListener("input", () => this.#refresh(), { signal: until });
    this.#rows = new RowTable<CostRow>({
      scroll: this.#scroll, table, body, element: (row) => this.#rowElement(row), choose: (row) => this.#choose(row), isSelected: (row) => this.#isSelected(row),
    }, until);
    trace.changed.connect((what) => what === "state" && this.#later(), until);
    model.changed.connect(({ graph }) => graph && this.#later(), until);
    drawers.changed.connect((id) => id === "costs" && this.#refresh(), until);
    store.changed.connect(({ what }) => what === "selection" && this.#rows.markSelection(true), until);
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
    this.#refresh();
  }

  #head(by: CostColumn): HTMLElement {
    const press = make("button", { type: "button", class: "fs-link", title: MEANINGS[by], ...OWN_KEYS }, LABELS[by]);
    press.addEventListener("click", () => {
      this.#by = by;
      this.#refresh();
    }, { signal: this.#view.until });
    const cell = make("th", { scope: "col", class: "fs-number" }, press);
    this.#heads.set(by, cell);
    return cell;
  }

  #later(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#refresh();
    }, this.#rows.rows.length === 0 ? 0 : REFRESH_MS);
  }

  #refresh(): void {
    const { trace, model, drawers, session } = this.#view;
    if (!drawers.isOpen("costs")) return;
    const { heat } = trace;
    this.#empty.hidden = heat !== null;
    this.#scroll.hidden = heat === null;
    setText(this.#empty, trace.isRecording ? "Recording. Run a step: what its operations cost is listed here."
      : session.isLive ? "Nothing is recorded yet. Press R, or the round button, to record steps while they run." : "Nothing was recorded of this graph.");
    this.#rows.setRows(heat ? costRows(model, heat, this.#grouping.value as Grouping, this.#by, this.#filter.value) : []);
    for (const [by, cell] of this.#heads) cell.setAttribute("aria-sort", by === this.#by ? "descending" : "none");
    setText(this.#note, heat ? plural(this.#rows.rows.length, "row") : "");
  }

  #rowElement(row: CostRow): HTMLElement {
    const { theme } = this.#view.stage;
    const bar = make("span", { class: "fs-share" }, make("span", { style: `width: ${Math.min(100, 100 * row.share)}%; background: ${rampColor(row.share, theme)}` }), make("b", {}, shareText(row.share)));
    const number = (text: string): HTMLElement => make("td", { class: "fs-number" }, text);
    const short = row.op === null ? deviceTexts(this.#view.model)(row.name) : row.name.replace(/^.*\/(?=[^/])/, "");
    return make(
      "tr", { title: row.name, ...OWN_KEYS },
      make("th", { scope: "row" }, short, " ", make("small", {}, row.detail)), make("td", {}, bar),
      number(duration(row.self_ns / 1e9)), number(row.total_ns === null ? "" : duration(row.total_ns / 1e9)),
      number(significant(row.count)), number(madeText(row)),
    );
  }

  #isSelected(row: CostRow): boolean {
    const { box } = this.#view.selection;
    const path = pathOf(box ?? "");
    return row.key === `o${opOf(box ?? "")}` || (path !== null && path !== "" && (row.name.startsWith(`${path}/`) || row.name === path));
  }

  #choose({ key, op }: CostRow): void {
    const { navigation, store, root, model } = this.#view;
    const grouping = this.#grouping.value as Grouping;
    if (op !== null) navigation.go(opBox(op));
    else if (grouping === "scope" && model.tree.get(key.replace(/\/$/, ""))) navigation.go(scopeBox(key.replace(/\/$/, "")));
    else if (grouping === "type") store.setFind(`type:/^${key}$/`, root);
    else if (grouping === "device") store.setFind(deviceQuestion(key, devicesOf(model).keys()), root);
    else if (grouping === "line") store.setFind(`line:/^${key.replace(", line ", ":").replace(/[ /]/g, ".")}$/`, root);
  }
}

export const costsPanel: Panel = {
  id: "costs", title: "Operations by cost", region: "panels", order: 70, least: { w: 300, h: 130 },
  make: (view) => new CostsPanel(view).element,
};
