/** The column at the right edge of a view: tabs, buttons for the picture, and a menu of the rest. */
import type { ViewContext } from "./context.js";
import { icon, make, OWN_KEYS, uniqueId } from "./dom.js";
import type { Panel } from "./panel.js";
import { MORE, PICTURE_ACTS, tabOf, TABS, type Tab, type TabId } from "./tabs.js";

class Rail {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #tabs = new Map<TabId, HTMLButtonElement>();
  readonly #rows = new Map<TabId, HTMLElement>();
  #current: TabId | null = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { commands, drawers, until, tabRow } = view;
    const list = make("div", { class: "fs-tabs", role: "tablist", "aria-orientation": "vertical", "aria-label": "Panels" }, ...TABS.map((tab) => this.#tab(tab)));
    this.element = make(
      "div", { class: "fs-rail" }, list,
      make("div", { class: "fs-tools", role: "toolbar", "aria-label": "Picture" }, ...[...PICTURE_ACTS, "more"].map((id) => commands.button(id))),
    );
    tabRow.hidden = true;
    tabRow.append(...TABS.map((tab) => this.#row(tab)));
    list.addEventListener("keydown", (event) => this.#onKey(event), { signal: until });
    // A panel that is opened by its key brings its tab along.
    drawers.changed.connect((id) => {
      const tab = tabOf(id);
      if (tab && drawers.isOpen(id)) this.#show(tab.id);
      else if (tab && tab.id === this.#current && !this.#isAnyOpen(tab)) this.#show(null);
    }, until);
    this.#show(null);
  }

  #tab(tab: Tab): HTMLButtonElement {
    const { id, word, hint } = tab;
    const element = make("button", { type: "button", class: "fs-tab", role: "tab", title: hint, "data-tab": id, ...OWN_KEYS });
    element.append(icon(tab.icon), make("span", {}, word));
    element.addEventListener("click", () => this.#press(tab), { signal: this.#view.until });
    this.#tabs.set(id, element);
    return element;
  }

  #row({ id, word, acts }: Tab): HTMLElement {
    const row = make("div", { class: "fs-acts-row", role: "tabpanel", id: uniqueId(`fs-tab-${id}`), "aria-label": word }, ...acts.map((act) => this.#view.commands.button(act, true)));
    this.#rows.set(id, row);
    this.#tabs.get(id)?.setAttribute("aria-controls", row.id);
    return row;
  }

  #isAnyOpen({ panels }: Tab): boolean {
    return panels.some((id) => this.#view.drawers.isOpen(id));
  }

  /** Opens a tab, with the first of its panels where none is open; pressed again, it closes with what it has opened. */
  #press(tab: Tab): void {
    const { drawers, commands } = this.#view;
    if (this.#current === tab.id) {
      for (const id of tab.panels) drawers.setOpen(id, false);
      return this.#show(null);
    }
    this.#show(tab.id);
    const open = tab.panels.filter((id) => drawers.isOpen(id));
    if (open.length > 0) this.#view.sections.unfold(open[0] ?? "");
    else if (!commands.describe(tab.first).isPressed) commands.run(tab.first);
  }

  #show(id: TabId | null): void {
    const { tabRow, sections } = this.#view;
    this.#current = id;
    for (const [own, element] of this.#tabs) {
      element.setAttribute("aria-selected", String(own === id));
      element.tabIndex = own === (id ?? TABS[0]?.id) ? 0 : -1;
    }
    for (const [own, row] of this.#rows) row.hidden = own !== id;
    tabRow.hidden = id === null;
    sections.divide();
  }

  #onKey(event: KeyboardEvent): void {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const all = [...this.#tabs.values()];
    const at = all.findIndex((tab) => tab === document.activeElement);
    if (by === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    all[(at + by + all.length) % all.length]?.focus({ preventScroll: true });
  }
}

export const railPanel: Panel = { id: "rail", title: "Tabs", region: "rail", order: 10, make: (view) => new Rail(view).element };

/** What is not of a tab: over the stage, beside the button that opens it. */
export const morePanel: Panel = {
  id: "more", title: "More", region: "stage", order: 42,
  make({ commands, drawers, until }) {
    const element = make("div", { class: "fs-menu", role: "group", "aria-label": "More", "data-testid": "fs-more-menu" }, ...MORE.map((id) => commands.button(id, true)));
    const show = (): void => void (element.hidden = !drawers.isOpen("more"));
    element.addEventListener("click", () => drawers.setOpen("more", false), { signal: until });
    drawers.changed.connect((id) => id === "more" && show(), until);
    show();
    return element;
  },
};
