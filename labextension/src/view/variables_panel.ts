/** The variables of the graph: what the session keeps of them, and numbers of the values of those in sight. It is asked while the panel is open. */
import { whole } from "../model/figures.js";
import { deviceTexts } from "../model/devices.js";
import { opBox, opOf, pathOf } from "../model/ids.js";
import { numbersOf, REFRESH_MS, sampleText, summaryOf, VARIABLE_COLUMNS, wrongText, type VariableColumn, type VariableRow } from "../model/variables.js";
import { column } from "../wire/tables.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import { histogram } from "./histogram.js";
import type { Panel } from "./panel.js";
import { RowTable } from "./row_table.js";

/** Values are asked for when what is in sight has stood still for so long. */
const PAUSE_MS = 120;
const EMPTY = "This graph has no variable. fs.Variable and fs.get_variable make them.";
const SAVED = "The values of variables are in the kernel: run the cell for the live view.";
const HEADS: readonly (readonly [string, VariableColumn | null, string])[] = [
  ["variable", "name", "by name; once more for the order in which they were made"], ["type", null, "dtype and shape"],
  ["bytes", "bytes", "of its value; sorted with its slots"], ["device", null, "where it lies"],
  ["written", "written", "in which step it was written last"], ["min", null, "of the finite elements"], ["mean", null, "of the finite elements"],
  ["max", null, "of the finite elements"], ["values", null, "how they are spread from min to max, and what is not finite"],
];

class VariablesPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #filter = make("input", { type: "search", "aria-label": "Filter variables", placeholder: "filter: name, type, device, trainable", spellcheck: "false", ...OWN_KEYS });
  readonly #slots = make("input", { type: "checkbox", checked: "", ...OWN_KEYS });
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-variables-note" });
  readonly #empty = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-variables-empty" });
  readonly #scroll: HTMLElement;
  readonly #rows: RowTable<VariableRow>;
  readonly #heads = new Map<VariableColumn, HTMLElement>();
  #by: VariableColumn | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(view: ViewContext) {
    this.#view = view;
    const { until, model, drawers, session, store, variables } = view;
    const body = make("tbody");
    const table = make("table", { "data-testid": "fs-variables-table", "aria-label": "Variables" }, make("thead", {}, make("tr", {}, ...HEADS.map(([name, by, title]) => this.#head(name, by, title)))), body);
    this.#scroll = make("div", { class: "fs-rows-scroll" }, table);
    this.element = make(
      "section", { class: "fs-variables fs-rows", "aria-label": "Variables", "data-testid": "fs-variables" },
      make("div", { class: "fs-timeline-bar" }, this.#filter, make("label", {}, this.#slots, "slots"), this.#note),
      this.#empty, this.#scroll,
    );
    this.#rows = new RowTable<VariableRow>({
      scroll: this.#scroll, table, body, element: (row) => this.#rowElement(row), choose: ({ op }) => view.navigation.go(opBox(op)), isSelected: (row) => this.#isSelected(row),
    }, until);
    this.#filter.addEventListener("input", () => this.#update(), { signal: until });
    this.#slots.addEventListener("change", () => this.#update(), { signal: until });
    this.#scroll.addEventListener("scroll", () => this.#later(PAUSE_MS), { signal: until, passive: true });
    model.changed.connect(({ fresh }) => {
      if (fresh) variables.forget();
      this.#later(0);
    }, until);
    session.changed.connect(() => this.#open(), until);
    variables.changed.connect(() => this.#update(), until);
    drawers.changed.connect((id) => id === "variables" && this.#open(), until);
    store.changed.connect(({ what }) => what === "step" && this.#update(), until);
    store.changed.connect(({ what }) => what === "selection" && drawers.isOpen("variables") && this.#rows.markSelection(true), until);
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
    this.#open();
  }

  #head(name: string, by: VariableColumn | null, title: string): HTMLElement {
    const cell = make("th", { scope: "col", title, ...(NUMBERS.has(name) ? { class: "fs-number" } : {}) }, ...(by === null ? [name] : []));
    if (by === null) return cell;
    const press = make("button", { type: "button", class: "fs-link", ...OWN_KEYS }, name);
    press.addEventListener("click", () => {
      this.#by = this.#by === by ? null : by;
      this.#update();
    }, { signal: this.#view.until });
    cell.append(press);
    this.#heads.set(by, cell);
    return cell;
  }

  /** Begins to ask; with a closed panel nothing is asked any more. */
  #open(): void {
    if (!this.#view.drawers.isOpen("variables")) {
      clearTimeout(this.#timer);
      return this.#view.variables.forget();
    }
    this.#update();
  }

  #later(wait_ms: number): void {
    clearTimeout(this.#timer);
    if (this.#view.drawers.isOpen("variables")) this.#timer = setTimeout(() => this.#ask(), wait_ms);
  }

  #ask(): void {
    const { session, variables, model, store } = this.#view;
    if (!session.isAnswered) return;
    const wish = variables.question(this.#rows.inSight.map(({ name }) => name), store.step, performance.now());
    if (wish !== null) session.ask("ask_variables", wish, (answer) => variables.take(answer));
    else if (model.session?.state === "running") this.#later(REFRESH_MS);
  }

  #update(): void {
    const { variables, session, drawers } = this.#view;
    if (!drawers.isOpen("variables")) return;
    const { answer } = variables;
    const rows = variables.rows({ by: this.#by, filter: this.#filter.value, withSlots: this.#slots.checked });
    const why = !session.isLive && !session.isRecorded ? SAVED : answer === null ? "\u2026" : answer.error !== "" ? answer.error : answer.rows.length === 0 ? EMPTY : "";
    setText(this.#empty, why);
    this.#empty.hidden = why === "";
    this.#scroll.hidden = why !== "";
    setText(this.#note, why === "" && answer !== null ? `${variables.step === null ? "" : `before step ${whole(variables.step)}: `}${summaryOf(answer, rows.length)}` : "");
    for (const by of VARIABLE_COLUMNS) this.#heads.get(by)?.setAttribute("aria-sort", by !== this.#by ? "none" : by === "name" ? "ascending" : "descending");
    this.#rows.setRows(rows);
    this.#later(PAUSE_MS);
  }

  #rowElement(row: VariableRow): HTMLElement {
    const [min, mean, max] = numbersOf(row);
    const more = [...(row.hidden > 0 ? [` +${row.hidden}`] : []), ...(row.isTrainable ? [] : row.depth > 0 ? [] : [" not trained"])];
    const scope = row.scope === "" ? [] : [make("small", {}, row.scope)];
    const number = (text: string): HTMLElement => make("td", { class: "fs-number" }, text);
    return make(
      "tr", { title: [row.name, row.why, sampleText(row)].filter((text) => text !== "").join("\n"), "data-variable": row.name, "data-depth": String(row.depth), ...OWN_KEYS },
      make("th", { scope: "row" }, ...scope, row.short, ...more.map((text) => make("small", {}, text))), make("td", {}, row.type), number(row.bytes), make("td", { title: row.device }, deviceTexts(this.#view.model)(row.device)),
      make("td", { "data-written": row.written }, row.written), number(min), number(mean), number(max), valuesCell(row),
    );
  }

  #isSelected({ op, name }: VariableRow): boolean {
    const { selection, model } = this.#view;
    const box = selection.box ?? "";
    const chosen = model.nodes.get(opOf(box) ?? -1);
    return opOf(box) === op || pathOf(box) === name || (chosen !== undefined && chosen.name.slice(0, chosen.name.lastIndexOf("/")) === name);
  }
}

const NUMBERS: ReadonlySet<string> = new Set(["bytes", "min", "mean", "max"]);

function valuesCell(row: VariableRow): HTMLElement {
  const { value, why } = row;
  const wrong = wrongText(row);
  const counts = value === null ? [] : Array.from(column(value.histogram, "count"));
  const isSpread = value !== null && counts.length > 0 && value.min !== value.max;
  return make(
    "td", {}, ...(isSpread ? [histogram({ histogram: counts, minimum: value.min, maximum: value.max })] : []),
    ...(wrong === "" ? [] : [make("span", { class: "fs-wrong" }, wrong)]), ...(why === "" ? [] : [make("small", {}, why)]),
  );
}

export const variablesPanel: Panel = { id: "variables", title: "Variables", region: "panels", order: 75, least: { w: 300, h: 130 }, shuts: "Close the variables", make: (view) => new VariablesPanel(view).element };
