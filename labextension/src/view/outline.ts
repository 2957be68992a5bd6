/**
 * The graph as a tree of text, for screen readers and for people who prefer it: the boxes that can be seen, nested as they
 * are. Of many, those around the place that is looked at are in the page. One item takes part in the tab order at a time.
 */
import type { BoxId } from "../model/ids.js";
import { ROOT, pathOf } from "../model/ids.js";
import { rowsOf, windowAround, type Row } from "../model/outline_rows.js";
import { boxOf } from "../model/selection.js";
import { sizeText, type Box, type VisibleGraph } from "../model/visible.js";
import type { Picture } from "../render/scene.js";
import { make, OWN_KEYS, placeChildren, uniqueId } from "./dom.js";
import type { Panel } from "./panel.js";

/** Height of an item; graph_view.css has it too. */
const ROW_PX = 22;
/** Items in the page at most. */
const MOST = 300;
const INDENT_PX = 14;

interface OutlineActions {
  hover(box: BoxId | null): void;
  select(box: BoxId): void;
  toggle(path: string, open: boolean): void;
  /** The item of the selection has this id; null where it is not in the page. */
  tellActive(id: string | null): void;
}

class Outline {
  readonly element = make("div", { class: "fs-outline" });
  /** Items have ids in the page: of this outline, and of their box. */
  readonly #id = uniqueId("fs-outline");
  readonly tree = make("ul", { role: "tree", id: this.#id, "aria-label": "Scopes and operations" });
  readonly #tree = this.tree;
  readonly #items = new Map<BoxId, HTMLElement>();
  readonly #actions: OutlineActions;
  #rows: readonly Row[] = [];
  readonly #places = new Map<BoxId, number>();
  /** Which rows are in the page. */
  #first = 0;
  #graph: VisibleGraph | null = null;
  #marked: ReadonlySet<BoxId> = new Set();
  #stale: ReadonlySet<BoxId> = new Set();
  #current: BoxId | null = null;
  #hovered: HTMLElement | undefined;

  constructor(actions: OutlineActions, until: AbortSignal) {
    this.#actions = actions;
    this.element.append(this.#tree);
    this.element.addEventListener("scroll", () => this.#follow(), { signal: until, passive: true });
    this.#tree.addEventListener("keydown", (event) => this.#onKey(event), { signal: until });
    this.#tree.addEventListener("pointerover", ({ target }) => {
      const item = target instanceof Element ? target.closest<HTMLElement>("[data-box]") : null;
      actions.hover(item?.dataset.box ?? null);
    }, { signal: until });
    this.#tree.addEventListener("pointerleave", () => actions.hover(null), { signal: until });
    this.#tree.addEventListener("click", (event) => this.#onClick(event), { signal: until });
  }

  update({ graph, marked, stale }: Pick<Picture, "graph" | "marked" | "stale">): void {
    [this.#marked, this.#stale] = [marked, stale];
    this.#graph = graph;
    this.#rows = rowsOf(graph);
    this.#places.clear();
    this.#rows.forEach(({ id }, at) => this.#places.set(id, at));
    this.#fill(windowAround(this.#places.get(this.#current ?? "") ?? this.#first, this.#rows.length, MOST));
  }

  mark(selection: BoxId | null): void {
    for (const item of this.#items.values()) {
      item.setAttribute("aria-selected", "false");
      item.tabIndex = -1;
    }
    this.#current = selection;
    const item = this.#items.get(selection ?? "");
    item?.setAttribute("aria-selected", "true");
    this.#actions.tellActive(item?.id ?? null);
    const entry = item ?? this.#items.values().next().value;
    if (entry) entry.tabIndex = 0;
  }

  /** Marks the box under the pointer. */
  hover(box: BoxId | null): void {
    this.#hovered?.classList.remove("fs-hovered");
    this.#hovered = this.#items.get(box ?? "");
    this.#hovered?.classList.add("fs-hovered");
  }

  /**
   * Puts the rows from a place on into the page, and room for the others. What stays in the page keeps its element, and so
   * the focus; where the item that has it leaves, the selection gets it.
   */
  #fill(first: number): void {
    this.#first = first;
    const shown = this.#rows.slice(first, first + MOST);
    const had = new Map(this.#items);
    const hadFocus = this.#tree.contains(document.activeElement);
    this.#items.clear();
    for (const row of shown) this.#items.set(row.id, this.#item(row, had.get(row.id)));
    placeChildren(this.#tree, [...this.#items.values()]);
    if (hadFocus && !this.#tree.contains(document.activeElement)) {
      this.#items.get(this.#current ?? "")?.focus({ preventScroll: true });
    }
    this.#tree.style.paddingTop = `${first * ROW_PX}px`;
    this.#tree.style.paddingBottom = `${(this.#rows.length - first - shown.length) * ROW_PX}px`;
    this.mark(this.#current);
  }

  /** The rows that are scrolled to come into the page. */
  #follow(): void {
    const from = Math.floor(this.element.scrollTop / ROW_PX);
    const to = from + Math.ceil(this.element.clientHeight / ROW_PX);
    const isThere = from >= this.#first && to <= this.#first + MOST;
    if (!isThere && this.#rows.length > MOST) this.#fill(windowAround(from, this.#rows.length, MOST));
  }

  #item({ id, level, size, place }: Row, had?: HTMLElement): HTMLElement {
    const box = this.#graph?.boxes.get(id);
    const item = had ?? make("li", { role: "treeitem", id: `${this.#id}-${id}`, "data-box": id, tabindex: "-1", ...OWN_KEYS });
    item.setAttribute("aria-level", String(level));
    item.setAttribute("aria-setsize", String(size));
    item.setAttribute("aria-posinset", String(place));
    item.style.paddingLeft = `${(level - 1) * INDENT_PX}px`;
    if (!box) return item;
    const isMarked = this.#marked.has(id);
    const notes = [...(isMarked ? ["changed"] : []), ...(this.#stale.has(id) ? ["stale"] : [])];
    const detail = [box.node ? box.kind : sizeText(box), ...notes].join(", ");
    item.classList.toggle("fs-changed", isMarked);
    item.setAttribute("aria-label", `${box.name}, ${detail}`);
    item.replaceChildren(make("span", { class: "fs-item" }, box.name, " ", make("small", {}, detail)));
    if (box.scope) item.setAttribute("aria-expanded", String(box.isOpen));
    else item.removeAttribute("aria-expanded");
    return item;
  }

  #onClick(event: Event): void {
    const item = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-box]") : null;
    if (!item?.dataset.box) return;
    this.#focus(item.dataset.box);
  }

  #onKey(event: KeyboardEvent): void {
    const id = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.box : undefined;
    const box = id === undefined ? undefined : this.#graph?.boxes.get(id);
    if (!box) return;
    const isHandled = this.#move(event.key, box);
    if (!isHandled) return;
    event.preventDefault();
    event.stopPropagation();
  }

  #move(key: string, box: Box): boolean {
    const path = pathOf(box.id);
    const here = this.#places.get(box.id) ?? 0;
    if (key === "ArrowDown") return this.#focus(this.#rows[here + 1]?.id);
    if (key === "ArrowUp") return this.#focus(this.#rows[here - 1]?.id);
    if (key === "Home") return this.#focus(this.#rows[0]?.id);
    if (key === "End") return this.#focus(this.#rows[this.#rows.length - 1]?.id);
    if (key === "Enter" || key === " ") {
      return path === null ? this.#focus(box.id) : this.#toggle(path, !box.isOpen, box.id);
    }
    if (key === "ArrowRight" && path !== null) {
      return box.isOpen ? this.#focus(box.children[0]) : this.#toggle(path, true, box.id);
    }
    if (key !== "ArrowLeft") return false;
    if (path !== null && box.isOpen) return this.#toggle(path, false, box.id);
    return this.#focus(box.parent === ROOT ? undefined : (box.parent ?? undefined));
  }

  #toggle(path: string, open: boolean, id: BoxId): boolean {
    this.#current = id;
    this.#actions.toggle(path, open);
    return true;
  }

  #focus(id: BoxId | undefined): boolean {
    if (id === undefined) return true;
    this.#actions.select(id);
    const place = this.#places.get(id);
    if (place !== undefined && !this.#items.has(id)) {
      this.#current = id;
      this.#fill(windowAround(place, this.#rows.length, MOST));
    }
    this.#items.get(id)?.focus({ preventScroll: false });
    return true;
  }
}

export const outlinePanel: Panel = {
  id: "outline", title: "Outline", region: "about", order: 30, least: { w: 180, h: 110 }, isAlwaysInPage: true,
  make({ model, store, selection, navigation, stage, shown, until }) {
    const outline = new Outline({
      select: (box) => navigation.select(box, true),
      toggle: (path, open) => navigation.setOpen(path, open),
      hover: (box) => navigation.hover(box),
      tellActive: (id) => {
        if (id === null) stage.element.removeAttribute("aria-activedescendant");
        else stage.element.setAttribute("aria-activedescendant", id);
      },
    }, until);
    stage.element.setAttribute("aria-owns", outline.tree.id);
    shown.connect((picture) => outline.update(picture), until);
    model.changed.connect(({ graph }) => graph && outline.mark(selection.box), until);
    store.changed.connect(({ what }) => {
      if (what === "selection") outline.mark(selection.box);
      else if (what === "hover") outline.hover(boxOf(model, store.hover));
    }, until);
    return outline.element;
  },
};
