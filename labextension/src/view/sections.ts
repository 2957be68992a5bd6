/** What is open beside the picture: sections with titles, in columns whose room the rule of division.ts gives. */
import { divide, PICTURE_LEAST, RAIL_PX, TITLE_PX, unfolded, type Wanted, type Wish } from "./division.js";
import { button, make, OWN_KEYS } from "./dom.js";
import type { Drawers } from "./drawers.js";
import type { Panel } from "./panel.js";

interface Section extends Wish {
  readonly element: HTMLElement;
  readonly title: HTMLButtonElement;
  readonly content: HTMLElement;
  readonly isAlwaysInPage: boolean;
}

const NOTHING_WANTED: Wanted = { w: null, h: null };
/** What an arrow key moves the edge by. */
const KEY_PX = 24;

export class Sections {
  /** Both columns; while there is room for one, they are one. */
  readonly element: HTMLElement;
  readonly #edge = make("div", { class: "fs-edge", role: "separator", tabindex: "0", "aria-label": "Edge of what is open", ...OWN_KEYS });
  readonly #columns: HTMLElement;
  readonly #row: HTMLElement;
  readonly #work: HTMLElement;
  readonly #drawers: Drawers;
  readonly #sections = new Map<string, Section>();
  /** Ids, what was opened or asked for last first. */
  #newest: string[] = [];
  /** Folded by hand. */
  readonly #shut = new Set<string>();
  #wanted = NOTHING_WANTED;
  readonly #leave: () => void;
  /** Called when the user has dragged the edge. */
  onWanted: () => void = () => undefined;

  /** `work` has picture and column of tabs in it too, `row` is what stands above the sections; `leave` gives the focus back to the picture. */
  constructor(work: HTMLElement, row: HTMLElement, drawers: Drawers, leave: () => void, until: AbortSignal) {
    [this.#work, this.#row, this.#drawers, this.#leave] = [work, row, drawers, leave];
    this.#columns = make("div", { class: "fs-columns" }, make("div", { class: "fs-panels" }, row), make("div", { class: "fs-about" }));
    this.element = make("div", { class: "fs-side", id: `fs-side-${Math.floor(Math.random() * 2 ** 40).toString(36)}` }, this.#edge, this.#columns);
    const observer = new ResizeObserver(() => this.divide());
    observer.observe(work);
    observer.observe(row);
    // A section without anything in it, as of loops while none runs, takes no room.
    const hides = new MutationObserver((told) => told.some(({ target }) => this.#isContent(target)) && this.divide());
    hides.observe(this.#columns, { subtree: true, attributes: true, attributeFilter: ["hidden"] });
    until.addEventListener("abort", () => [observer, hides].forEach((one) => one.disconnect()), { once: true });
    drawers.changed.connect((id) => this.#onDrawer(id), until);
    this.element.addEventListener("keydown", (event) => this.#onKey(event), { signal: until });
    this.#listenToEdge(until);
  }

  get wanted(): Wanted {
    return this.#wanted;
  }

  set wanted(wanted: Wanted) {
    this.#wanted = wanted;
    this.divide();
  }

  get ids(): readonly string[] {
    return [...this.#sections.keys()];
  }

  /** Takes up a panel. */
  add(panel: Panel, content: HTMLElement, until: AbortSignal): void {
    const { id, title: name, region, least = { w: 240, h: 120 }, shuts = `Close ${name}`, isAlwaysInPage = false } = panel;
    const title = make("button", { type: "button", class: "fs-section-title", "aria-expanded": "true", ...OWN_KEYS }, name);
    title.addEventListener("click", () => this.#fold(id), { signal: until });
    const shut = button(shuts, "close", () => {
      this.#drawers.setOpen(id, false);
      this.#leave();
    }, until);
    const element = make("div", { class: "fs-section", "data-section": id }, make("div", { class: "fs-section-head" }, title, shut), content);
    this.#sections.set(id, { id, least, isAbout: region === "about", element, title, content, isAlwaysInPage });
    this.#columns.querySelector(region === "about" ? ".fs-about" : ".fs-panels")?.append(element);
    this.#show(id);
  }

  /** Whether it is open, and its title alone is seen. */
  isFolded(id: string): boolean {
    return this.#sections.get(id)?.element.dataset.folded === "true";
  }

  /** Brings an open section out of its fold. */
  unfold(id: string): void {
    this.#drawers.ask(id);
    this.#shut.delete(id);
    this.#newest = [id, ...this.#newest.filter((other) => other !== id)];
    this.divide();
  }

  #fold(id: string): void {
    if (this.isFolded(id)) return this.unfold(id);
    this.#shut.add(id);
    this.divide();
  }

  #onDrawer(id: string): void {
    if (!this.#sections.has(id)) return;
    const isOpen = this.#drawers.isOpen(id);
    this.#show(id);
    if (isOpen && this.#drawers.isOffered(id)) this.#newest = [...this.#newest.filter((other) => other !== id), id];
    if (isOpen && !this.#drawers.isOffered(id)) this.unfold(id);
    else this.divide();
    // What somebody has opened is seen, if the view lies partly out of the window.
    if (isOpen && this.#work.contains(document.activeElement)) this.#sections.get(id)?.element.scrollIntoView({ block: "nearest" });
  }

  #show(id: string): void {
    const section = this.#sections.get(id);
    if (!section) return;
    const isOpen = this.#drawers.isOpen(id);
    section.element.hidden = !isOpen && !section.isAlwaysInPage;
    section.element.classList.toggle("fs-unseen", !isOpen);
  }

  #isContent(target: Node): boolean {
    return [...this.#sections.values()].some(({ content }) => content === target);
  }

  /** Those that have something to show, the newest first. */
  #open(): Section[] {
    return this.#newest.flatMap((id) => this.#sections.get(id) ?? []).filter(({ id, content }) => this.#drawers.isOpen(id) && !content.hidden);
  }

  /** Gives picture and sections their room. */
  divide(): void {
    const [w, h] = [this.#work.clientWidth, this.#work.clientHeight];
    if (w === 0 || h === 0) return;
    const open = this.#open();
    const isRow = !this.#row.hidden;
    const division = divide(w, h, isRow ? [...open, { id: "", least: { w: 240, h: this.#row.offsetHeight }, isAbout: open.every(({ isAbout }) => isAbout) }] : open, this.#wanted);
    const { mode, size_px, about_px } = division;
    this.#work.dataset.mode = mode;
    const rowHeight = isRow ? this.#row.offsetHeight : 0;
    const room = mode === "under" ? size_px : h;
    const stands = this.#unfolded(mode, room - rowHeight, rowHeight, open);
    // Where nothing stands unfolded, titles take what they need.
    const needed = stands.size === 0 ? rowHeight + TITLE_PX * open.length + 1 : null;
    this.#work.classList.toggle("fs-titles-only", needed !== null);
    this.#work.style.setProperty("--fs-side", `${mode === "over" || mode === "under" ? needed ?? size_px : size_px + about_px}px`);
    this.#work.style.setProperty("--fs-about", `${about_px}px`);
    for (const { id, element, title, content } of this.#sections.values()) {
      const isFolded = this.#drawers.isOpen(id) && !stands.has(id);
      element.dataset.folded = String(isFolded);
      element.classList.toggle("fs-empty-section", content.hidden);
      title.setAttribute("aria-expanded", String(!isFolded));
    }
    const isAcross = mode === "under";
    this.#edge.hidden = mode === "alone" || mode === "over" || needed !== null;
    this.#edge.setAttribute("aria-orientation", isAcross ? "horizontal" : "vertical");
    this.#edge.setAttribute("aria-valuenow", String(Math.round(size_px)));
  }

  #unfolded(mode: string, room: number, rowHeight: number, open: readonly Section[]): ReadonlySet<string> {
    const may = open.filter(({ id }) => !this.#shut.has(id));
    const titles = (open.length - may.length) * TITLE_PX;
    if (mode === "columns") {
      const [about, panels] = [may.filter(({ isAbout }) => isAbout), may.filter(({ isAbout }) => !isAbout)];
      return new Set([...unfolded(room, panels), ...unfolded(room + rowHeight, about)]);
    }
    // In the place of the picture stands what was asked for, and not what tells about the picture.
    const asked = mode === "over" ? may.filter(({ id, isAbout }) => !isAbout || (id === this.#newest[0] && !this.#drawers.isOffered(id))) : may;
    return unfolded(room - titles - (may.length - asked.length) * TITLE_PX, asked);
  }

  /** Esc closes the section that has the focus. */
  #onKey(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    const id = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-section]")?.dataset.section : undefined;
    if (id === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (!this.#sections.get(id)?.isAbout) this.#drawers.setOpen(id, false);
    this.#leave();
  }

  #listenToEdge(until: AbortSignal): void {
    let from: { readonly at: number; readonly size: number; readonly isAcross: boolean } | null = null;
    const isAcross = (): boolean => this.#work.dataset.mode === "under";
    const size = (): number => Number(this.#edge.getAttribute("aria-valuenow"));
    const take = (px: number, across: boolean): void => {
      const most = across ? this.#work.clientHeight - PICTURE_LEAST.h : this.#work.clientWidth - RAIL_PX - PICTURE_LEAST.w;
      const told = Math.max(1, Math.min(px, most));
      this.wanted = across ? { ...this.#wanted, h: told } : { ...this.#wanted, w: told };
    };
    this.#edge.addEventListener("pointerdown", (event) => {
      from = { at: isAcross() ? event.clientY : event.clientX, size: size(), isAcross: isAcross() };
      this.#edge.setPointerCapture(event.pointerId);
      event.preventDefault();
    }, { signal: until });
    this.#edge.addEventListener("pointermove", (event) => {
      if (from) take(from.size + from.at - (from.isAcross ? event.clientY : event.clientX), from.isAcross);
    }, { signal: until });
    const end = (): void => {
      if (from) this.onWanted();
      from = null;
    };
    this.#edge.addEventListener("pointerup", end, { signal: until });
    this.#edge.addEventListener("pointercancel", end, { signal: until });
    this.#edge.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: KEY_PX, ArrowUp: KEY_PX, ArrowRight: -KEY_PX, ArrowDown: -KEY_PX }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      take(size() + by, isAcross());
      this.onWanted();
    }, { signal: until });
  }
}
