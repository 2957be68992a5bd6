/** Rows of a table, of which those around the place that is looked at are in the page; keys walk over all of them. */
import { make } from "./dom.js";

/** Height of a row; graph_view.css has it too. */
const ROW_PX = 24;
/** Rows in the page at most. */
const MOST = 80;

export interface Row {
  readonly key: string;
}

export interface Rows<R extends Row> {
  /** The scrolling element, with the table in it. */
  readonly scroll: HTMLElement;
  readonly table: HTMLElement;
  readonly body: HTMLElement;
  /** Makes the element of a row; the table gives it its key and its place among the tab stops. */
  element(row: R): HTMLElement;
  choose(row: R): void;
  isSelected(row: R): boolean;
}

export class RowTable<R extends Row> {
  readonly #made: Rows<R>;
  #rows: readonly R[] = [];
  #first = -1;
  /** The row that takes part in the tab order. */
  #current: string | null = null;

  constructor(made: Rows<R>, until: AbortSignal) {
    this.#made = made;
    const { scroll, body } = made;
    scroll.addEventListener("scroll", () => this.#fill(), { signal: until, passive: true });
    body.addEventListener("click", ({ target }) => this.#onClick(target), { signal: until });
    body.addEventListener("keydown", (event) => this.#onKey(event), { signal: until });
    const observer = new ResizeObserver(() => this.#fill());
    observer.observe(scroll);
    until.addEventListener("abort", () => observer.disconnect(), { once: true });
  }

  /** Those that can be seen now, the first one first. */
  get inSight(): readonly R[] {
    const { scrollTop, clientHeight } = this.#made.scroll;
    const first = Math.floor(scrollTop / ROW_PX);
    return this.#rows.slice(first, first + Math.ceil(clientHeight / ROW_PX));
  }

  get rows(): readonly R[] {
    return this.#rows;
  }

  setRows(rows: readonly R[]): void {
    this.#rows = rows;
    this.#first = -1;
    this.#fill();
  }

  /** Marks the rows of what is selected; the first of them comes into sight, where that is asked for. */
  markSelection(isToBeSeen: boolean): void {
    const { body, isSelected } = this.#made;
    const shown = new Map(this.#rows.slice(this.#first, this.#first + MOST).map((row) => [row.key, row]));
    for (const element of this.#elements()) {
      const row = shown.get(element.dataset.key ?? "");
      element.setAttribute("aria-selected", String(row !== undefined && isSelected(row)));
    }
    const at = isToBeSeen && !body.contains(document.activeElement) ? this.#rows.findIndex((row) => isSelected(row)) : -1;
    if (at >= 0) this.#show(at);
  }

  /** Puts the rows that can be seen into the page, and room for the others. */
  #fill(): void {
    const { scroll, table, body } = this.#made;
    const first = Math.max(0, Math.min(this.#rows.length - MOST, Math.floor(scroll.scrollTop / ROW_PX) - 10));
    if (first === this.#first) return;
    this.#first = first;
    const focused = this.#focused;
    const shown = this.#rows.slice(first, first + MOST);
    const room = (rows: number): HTMLElement[] => (rows > 0 ? [make("tr", { "aria-hidden": "true", style: `height: ${rows * ROW_PX}px` })] : []);
    body.replaceChildren(...room(first), ...shown.map((row) => this.#element(row)), ...room(this.#rows.length - first - shown.length));
    table.setAttribute("aria-rowcount", String(this.#rows.length + 1));
    this.markSelection(false);
    if (focused !== undefined) this.#elementOf(focused)?.focus({ preventScroll: true });
  }

  #element(row: R): HTMLElement {
    const element = this.#made.element(row);
    const isCurrent = this.#current === null ? row === this.#rows[0] : row.key === this.#current;
    element.dataset.key = row.key;
    element.tabIndex = isCurrent ? 0 : -1;
    return element;
  }

  get #focused(): string | undefined {
    const { activeElement } = document;
    return activeElement instanceof HTMLElement && this.#made.body.contains(activeElement) ? activeElement.dataset.key : undefined;
  }

  #elements(): NodeListOf<HTMLElement> {
    return this.#made.body.querySelectorAll<HTMLElement>("[data-key]");
  }

  #elementOf(key: string): HTMLElement | null {
    return this.#made.body.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  }

  #show(at: number): void {
    const { scroll } = this.#made;
    const { scrollTop, clientHeight } = scroll;
    const y = at * ROW_PX;
    if (y < scrollTop || y + 3 * ROW_PX > scrollTop + clientHeight) scroll.scrollTop = Math.max(0, y - clientHeight / 2);
  }

  #onClick(target: EventTarget | null): void {
    const key = target instanceof Element ? target.closest<HTMLElement>("[data-key]")?.dataset.key : undefined;
    if (key !== undefined) this.#choose(key);
  }

  #choose(key: string): void {
    const row = this.#rows.find((one) => one.key === key);
    if (!row) return;
    this.#move(key);
    this.#made.choose(row);
  }

  #move(key: string): void {
    this.#current = key;
    for (const element of this.#elements()) element.tabIndex = element.dataset.key === key ? 0 : -1;
    this.#elementOf(key)?.focus({ preventScroll: true });
  }

  #onKey(event: KeyboardEvent): void {
    const key = this.#focused;
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
