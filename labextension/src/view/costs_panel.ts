/** The table of operations by what they cost in a step. Of many rows those around the place that is looked at are in the page. */
import { costRows, COST_COLUMNS, GROUPINGS, type CostColumn, type CostRow, type Grouping } from "../model/costs.js";
import { deviceQuestion, devicesOf } from "../model/devices.js";
import { duration, plural, shareText, significant } from "../model/figures.js";
import { opBox, opOf, pathOf, scopeBox } from "../model/ids.js";
import { bytesText } from "../model/running.js";
import { rampColor } from "../render/ramp.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

/** Height of a row; graph_view.css has it too. */
const ROW_PX = 24;
/** Rows in the page at most. */
const MOST = 80;
/** While steps are recorded the table follows so often. */
const REFRESH_MS = 500;

const LABELS: Readonly<Record<CostColumn, string>> = { self: "self", total: "total", count: "runs", bytes: "makes" };
const MEANINGS: Readonly<Record<CostColumn, string>> = {
  self: "time in a step without what runs inside", total: "time in a step with what runs inside, as iterations of a loop",
  count: "runs in a step", bytes: "bytes made in a step, where the shape is known",
};

class CostsPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #grouping = make("select", { "aria-label": "Group by", ...OWN_KEYS }, ...GROUPINGS.map((one) => make("option", { value: one }, `by ${one}`)));
  readonly #filter = make("input", { type: "search", "aria-label": "Filter operations", placeholder: "filter: name, type, line, device", spellcheck: "false", ...OWN_KEYS });
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-costs-note" });
  readonly #empty = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-costs-empty" });
  readonly #body = make("tbody");
  readonly #table: HTMLElement;
  readonly #scroll: HTMLElement;
  readonly #heads = new Map<CostColumn, HTMLElement>();
  #by: CostColumn = "self";
  #rows: readonly CostRow[] = [];
  #first = -1;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The row that takes part in the tab order. */
  #current: string | null = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { until, trace, drawers, store, model } = view;
    const head = make("tr", {}, make("th", { scope: "col" }, "operation"), make("th", { scope: "col" }, "share"), ...COST_COLUMNS.map((by) => this.#head(by)));
    this.#table = make("table", { "data-testid": "fs-costs-table", "aria-label": "Operations by cost" }, make("thead", {}, head), this.#body);
    this.#scroll = make("div", { class: "fs-costs-scroll" }, this.#table);
    this.element = make(
      "section", { class: "fs-costs", "aria-label": "Operations by cost", "data-testid": "fs-costs" },
      make("div", { class: "fs-timeline-bar" }, this.#grouping, this.#filter, this.#note), this.#empty, this.#scroll,
    );
    this.#grouping.addEventListener("change", () => this.#refresh(), { signal: until });
    this.#filter.addEventListener("input", () => this.#refresh(), { signal: until });
    this.#scroll.addEventListener("scroll", () => this.#fill(), { signal: until, passive: true });
    this.#body.addEventListener("click", (event) => this.#onClick(event), { signal: until });
    this.#body.addEventListener("keydown", (event) => this.#onKey(event), { signal: until });
    trace.changed.connect((what) => what === "state" && this.#later(), until);
    model.changed.connect(({ graph }) => graph && this.#later(), until);
    drawers.changed.connect((id) => id === "costs" && this.#refresh(), until);
    store.changed.connect(({ what }) => what === "selection" && this.#markSelection(true), until);
    const observer = new ResizeObserver(() => this.#fill());
    observer.observe(this.#scroll);
    until.addEventListener("abort", () => {
      clearTimeout(this.#timer);
      observer.disconnect();
    }, { once: true });
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
    }, this.#rows.length === 0 ? 0 : REFRESH_MS);
  }

  #refresh(): void {
    const { trace, model, drawers, session } = this.#view;
    if (!drawers.isOpen("costs")) return;
    const { heat } = trace;
    this.#empty.hidden = heat !== null;
    this.#scroll.hidden = heat === null;
    setText(this.#empty, trace.isRecording ? "Recording. Run a step: what its operations cost is listed here."
      : session.isLive ? "Nothing is recorded yet. Press R, or the round button, to record steps while they run." : "Nothing was recorded of this graph.");
    this.#rows = heat ? costRows(model, heat, trace.traced, this.#grouping.value as Grouping, this.#by, this.#filter.value) : [];
    for (const [by, cell] of this.#heads) cell.setAttribute("aria-sort", by === this.#by ? "descending" : "none");
    setText(this.#note, heat ? `${plural(this.#rows.length, "row")}; a step, mean of ${plural(trace.traced, "step")}` : "");
    this.#first = -1;
    this.#fill();
  }

  /** Puts the rows that can be seen into the page, and room for the others. */
  #fill(): void {
    const first = Math.max(0, Math.min(this.#rows.length - MOST, Math.floor(this.#scroll.scrollTop / ROW_PX) - 10));
    if (first === this.#first) return;
    this.#first = first;
    const focused = document.activeElement instanceof HTMLElement && this.#body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const shown = this.#rows.slice(first, first + MOST);
    const room = (rows: number): HTMLElement[] => (rows > 0 ? [make("tr", { "aria-hidden": "true", style: `height: ${rows * ROW_PX}px` })] : []);
    this.#body.replaceChildren(...room(first), ...shown.map((row) => this.#rowElement(row)), ...room(this.#rows.length - first - shown.length));
    this.#table.setAttribute("aria-rowcount", String(this.#rows.length + 1));
    this.#markSelection(false);
    if (focused !== undefined) this.#elementOf(focused)?.focus({ preventScroll: true });
  }

  #rowElement(row: CostRow): HTMLElement {
    const { theme } = this.#view.stage;
    const bar = make("span", { class: "fs-share" }, make("span", { style: `width: ${Math.min(100, 100 * row.share)}%; background: ${rampColor(row.share, theme)}` }), make("b", {}, shareText(row.share)));
    const number = (text: string): HTMLElement => make("td", { class: "fs-number" }, text);
    const short = row.op === null ? row.name : row.name.replace(/^.*\/(?=[^/])/, "");
    const isCurrent = this.#current === null ? row === this.#rows[0] : row.key === this.#current;
    return make(
      "tr", { "data-key": row.key, tabindex: isCurrent ? "0" : "-1", title: row.name, ...OWN_KEYS },
      make("th", { scope: "row" }, short, " ", make("small", {}, row.detail)), make("td", {}, bar),
      number(duration(row.self_ns / 1e9)), number(row.total_ns === null ? "" : duration(row.total_ns / 1e9)),
      number(significant(row.count)), number(row.bytes > 0 ? bytesText(row.bytes) : ""),
    );
  }

  /** Marks the rows of what is selected; one that was selected elsewhere comes into sight. */
  #markSelection(isToBeSeen: boolean): void {
    const { selection } = this.#view;
    const id = opOf(selection.box ?? "");
    const key = id !== null ? `o${id}` : null;
    const path = pathOf(selection.box ?? "");
    const isIn = (row: CostRow): boolean => row.key === key || (path !== null && path !== "" && (row.name.startsWith(`${path}/`) || row.name === path));
    const shown = new Map(this.#rows.slice(this.#first, this.#first + MOST).map((row) => [row.key, row]));
    for (const element of this.#body.querySelectorAll<HTMLElement>("[data-key]")) {
      const row = shown.get(element.dataset.key ?? "");
      element.setAttribute("aria-selected", String(row !== undefined && isIn(row)));
    }
    const at = isToBeSeen && key !== null && !this.#body.contains(document.activeElement) ? this.#rows.findIndex((row) => row.key === key) : -1;
    if (at >= 0) this.#show(at);
  }

  #show(at: number): void {
    const { scrollTop, clientHeight } = this.#scroll;
    const y = at * ROW_PX;
    if (y < scrollTop || y + 3 * ROW_PX > scrollTop + clientHeight) this.#scroll.scrollTop = Math.max(0, y - clientHeight / 2);
  }

  #elementOf(key: string): HTMLElement | null {
    return this.#body.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  }

  #onClick({ target }: Event): void {
    const key = target instanceof Element ? target.closest<HTMLElement>("[data-key]")?.dataset.key : undefined;
    if (key !== undefined) this.#choose(key);
  }

  #choose(key: string): void {
    const { navigation, store, root, model } = this.#view;
    const row = this.#rows.find((one) => one.key === key);
    if (!row) return;
    this.#move(key);
    const grouping = this.#grouping.value as Grouping;
    if (row.op !== null) navigation.go(opBox(row.op));
    else if (grouping === "scope" && model.tree.get(key.replace(/\/$/, ""))) navigation.go(scopeBox(key.replace(/\/$/, "")));
    else if (grouping === "type") store.setFind(`type:/^${key}$/`, root);
    else if (grouping === "device") store.setFind(deviceQuestion(key, devicesOf(model).keys()), root);
    else if (grouping === "line") store.setFind(`line:/^${key.replace(", line ", ":").replace(/[ /]/g, ".")}$/`, root);
  }

  #move(key: string): void {
    this.#current = key;
    for (const element of this.#body.querySelectorAll<HTMLElement>("[data-key]")) element.tabIndex = element.dataset.key === key ? 0 : -1;
    this.#elementOf(key)?.focus({ preventScroll: true });
  }

  #onKey(event: KeyboardEvent): void {
    const key = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.key : undefined;
    const at = this.#rows.findIndex((row) => row.key === key);
    if (key === undefined || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.#rows.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.#choose(key);
    else if (to === undefined) return;
    const row = this.#rows[to ?? -1];
    if (row) {
      this.#show(to ?? 0);
      this.#fill();
      this.#move(row.key);
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

export const costsPanel: Panel = {
  id: "costs", title: "Operations by cost", region: "below", order: 70,
  make: (view) => new CostsPanel(view).element,
};
