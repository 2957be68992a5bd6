/**
 * The running loops: a row for each frame, nested as they run, with its iterations in flight. Rows and
 * cells are kept from message to message, so that the focus stays where it is.
 */
import type { GraphModel } from "../model/graph.js";
import {
  belongsTo, countText, depthOf, inFlight, isOver, iterationText, keptText, nameText, paceText, readable, shareOf, type ChosenIteration,
} from "../model/running.js";
import { plural } from "../model/figures.js";
import type { FrameState, Iteration } from "../wire/messages.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

/** Without news for so long, what is shown is told apart from what is so now. */
const STALE_MS = 2000;
/** Rows, and iterations of a row, that can be read; of more, how many there are. */
const MOST_ROWS = 8;
const MOST_CELLS = 16;
/** A loop that has ended is still shown for so long: short steps follow each other without flicker. */
const LINGER_MS = 1500;

interface FrameActions {
  /** Selects a loop, and one of its iterations if that is not null. */
  choose(loop: number, iteration: ChosenIteration | null): void;
  /** Takes back the choice of an iteration. */
  forget(): void;
}

class FramesPanel {
  readonly element = make("section", { class: "fs-frames", "data-testid": "fs-frames", "aria-label": "Running loops" });
  readonly #list = make("ul", { "aria-label": "Frames" });
  readonly #more = make("div", { class: "fs-more", "data-testid": "fs-more" });
  readonly #rows = new Map<string, Row>();
  readonly #actions: FrameActions;
  readonly #until: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #shown: readonly FrameState[] = [];
  /** The greatest that it has had since loops run. */
  #height = 0;

  constructor(actions: FrameActions, until: AbortSignal) {
    this.#actions = actions;
    this.#until = until;
    this.element.hidden = true;
    this.element.append(this.#list, this.#more);
    this.element.addEventListener("keydown", (event) => this.#onKey(event), { signal: until });
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  update({ run, session }: GraphModel, chosen: ChosenIteration | null): void {
    const frames = run?.frames ?? [];
    clearTimeout(this.#timer);
    const isRunning = frames.length > 0 && session?.state === "running";
    this.element.dataset.state = frames.length === 0 ? "ended" : isRunning ? "running" : "held";
    if (frames.length > 0) this.#show(frames, chosen);
    else if (this.#rows.size > 0 && isOver(run)) this.#timer = setTimeout(() => this.#clear(), LINGER_MS);
    if (isRunning) this.#timer = setTimeout(() => (this.element.dataset.state = "stale"), STALE_MS);
  }

  /** The same frames with another choice. */
  mark(chosen: ChosenIteration | null): void {
    if (this.#shown.length > 0) this.#show(this.#shown, chosen);
  }

  #show(frames: readonly FrameState[], chosen: ChosenIteration | null): void {
    this.#shown = frames;
    this.element.hidden = false;
    const byId = new Map(frames.map((frame) => [frame.id, frame]));
    const { shown, more } = readable(frames, MOST_ROWS);
    const ids = new Set(shown.map(({ id }) => id));
    for (const [id, row] of this.#rows) {
      if (ids.has(id)) continue;
      row.element.remove();
      this.#rows.delete(id);
    }
    shown.forEach((frame, k) => {
      const row = this.#rows.get(frame.id) ?? this.#make(frame.id);
      const isOther = chosen !== null && byId.has(chosen.frame) && frame.parent !== null
        && isBelow(frame, chosen.frame, byId) && !belongsTo(frame, chosen, byId);
      row.update(frame, { depth: depthOf(frame, byId), chosen: chosen?.frame === frame.id ? chosen.number : null, isOther });
      if (this.#list.children[k] !== row.element) this.#list.insertBefore(row.element, this.#list.children[k] ?? null);
    });
    setText(this.#more, more > 0 ? `and ${plural(more, "more frame")}` : "");
    // Inner loops begin and end all the time: the room that they had is theirs while anything runs.
    this.element.style.minHeight = `${Math.max(this.element.offsetHeight, this.#height)}px`;
    this.#height = this.element.offsetHeight;
  }

  /** Up and down lead from row to row, left and right from iteration to iteration; Escape takes the choice back. */
  #onKey(event: KeyboardEvent): void {
    const at = document.activeElement;
    const row = at instanceof HTMLElement ? at.closest(".fs-frame") : null;
    if (!(at instanceof HTMLElement) || !row || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = this.#nextFrom(event.key, row, at);
    if (event.key === "Escape") this.#actions.forget();
    else if (!next) return;
    next?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  #nextFrom(key: string, row: Element, at: HTMLElement): HTMLElement | null {
    const of = (other: Element | null): HTMLElement | null => other?.querySelector<HTMLElement>(".fs-frame-name") ?? null;
    if (key === "ArrowDown") return of(row.nextElementSibling);
    if (key === "ArrowUp") return of(row.previousElementSibling);
    const stops = [...row.querySelectorAll<HTMLElement>("button")];
    const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    return step === 0 ? null : (stops[stops.indexOf(at) + step] ?? null);
  }

  #make(id: string): Row {
    const row = new Row(this.#actions, this.#until);
    this.#rows.set(id, row);
    return row;
  }

  #clear(): void {
    this.#rows.clear();
    this.#shown = [];
    this.#height = 0;
    this.element.style.minHeight = "";
    this.#list.replaceChildren();
    this.element.hidden = true;
  }
}

function isBelow(frame: FrameState, id: string, frames: ReadonlyMap<string, FrameState>): boolean {
  let at = frame.parent;
  for (let steps = 0; at !== null && steps <= frames.size; steps++) {
    if (at === id) return true;
    at = frames.get(at)?.parent ?? null;
  }
  return false;
}

interface Look {
  readonly depth: number;
  readonly chosen: number | null;
  /** Whether it runs in another iteration than the chosen one. */
  readonly isOther: boolean;
}

class Row {
  readonly element = make("li", { class: "fs-frame" });
  readonly #name = make("button", { type: "button", class: "fs-link fs-frame-name", ...OWN_KEYS });
  readonly #mode = make("span", { class: "fs-frame-mode" });
  readonly #count = make("span", { class: "fs-frame-count", "data-testid": "fs-iteration" });
  readonly #bar = make("span", { class: "fs-progress-bar", role: "progressbar", "aria-label": "iterations" }, make("div"));
  readonly #rate = make("span", { class: "fs-frame-rate", title: "iterations per second" });
  readonly #kept = make("span", { class: "fs-frame-kept", title: "bytes kept for the gradient" });
  readonly #rest = make("small", {});
  readonly #window = make("span", { class: "fs-window", role: "group", "aria-label": "Iterations in flight" }, this.#rest);
  readonly #held = make("span", { class: "fs-frame-held" });
  readonly #cells: Cell[] = [];
  #frame: FrameState | null = null;

  constructor(actions: FrameActions, until: AbortSignal) {
    this.element.append(this.#name, this.#mode, this.#count, this.#bar, this.#rate, this.#kept, this.#window, this.#held);
    const loop = (): number => this.#frame?.loop ?? -1;
    this.#name.addEventListener("click", () => actions.choose(loop(), null), { signal: until });
    this.#window.addEventListener("click", (event) => {
      const cell = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-number]") : null;
      const frame = this.#frame;
      if (!cell || !frame) return;
      const isChosen = cell.getAttribute("aria-pressed") === "true";
      actions.choose(loop(), isChosen ? null : { frame: frame.id, number: Number(cell.dataset.number) });
    }, { signal: until });
  }

  update(frame: FrameState, { depth, chosen, isOther }: Look): void {
    this.#frame = frame;
    this.element.dataset.frame = frame.id;
    this.element.style.setProperty("--fs-depth", String(depth));
    this.element.classList.toggle("fs-other", isOther);
    setText(this.#name, nameText(frame));
    this.#name.setAttribute("aria-label", rowText(frame));
    this.#name.title = frame.id;
    setText(this.#mode, frame.parent_iteration === null ? frame.mode : `${frame.mode}, in i = ${frame.parent_iteration}`);
    setText(this.#count, countText(frame));
    this.#showShare(shareOf(frame));
    setText(this.#rate, paceText(frame.iterations_per_s));
    setText(this.#kept, keptText(frame));
    setText(this.#held, frame.held ? `next waits: ${frame.held}` : "");
    this.#held.title = frame.held;
    this.#showWindow(frame, chosen);
  }

  #showShare(share: number | null): void {
    this.#bar.hidden = share === null;
    if (share === null) return;
    this.#bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    (this.#bar.firstElementChild as HTMLElement).style.width = `${share * 100}%`;
  }

  #showWindow(frame: FrameState, chosen: number | null): void {
    const flying = inFlight(frame);
    this.#window.title = flying > 1
      ? `${plural(flying, "iteration")} in flight of at most ${frame.parallel_iterations}` : "";
    // The oldest is what the others wait for.
    const shown = frame.window.slice(0, MOST_CELLS);
    const more = frame.window.length - shown.length;
    setText(this.#rest, more > 0 ? `+${more}` : "");
    this.#rest.title = more > 0 ? `${plural(more, "more iteration")}` : "";
    while (this.#cells.length > shown.length) this.#cells.pop()?.element.remove();
    shown.forEach((iteration, k) => {
      let cell = this.#cells[k];
      if (!cell) {
        cell = new Cell();
        this.#cells.push(cell);
        this.#window.insertBefore(cell.element, this.#rest);
      }
      cell.update(iteration, iteration.number === chosen);
    });
    this.#keepStop();
  }

  /** One cell takes part in the tab order: the one that has the focus, or the chosen one, or the first. */
  #keepStop(): void {
    const cells = this.#cells.map(({ element }) => element);
    const stop = cells.find((cell) => cell === document.activeElement)
      ?? cells.find((cell) => cell.getAttribute("aria-pressed") === "true") ?? cells[0];
    for (const cell of cells) cell.tabIndex = cell === stop ? 0 : -1;
  }
}

/** A row's name for those who hear it. */
function rowText(frame: FrameState): string {
  const place = frame.parent_iteration === null ? "" : `, in iteration ${frame.parent_iteration} of ${frame.parent}`;
  return `${nameText(frame)}${place}`;
}

/** One iteration: its state is told by shape and pattern, and in words. */
class Cell {
  readonly #fill = make("span", { class: "fs-cell-fill" });
  readonly element = make("button", { type: "button", class: "fs-cell", ...OWN_KEYS }, this.#fill);

  update(iteration: Iteration, isChosen: boolean): void {
    const text = iterationText(iteration);
    const { number, state, finished, total } = iteration;
    this.element.dataset.number = String(number);
    this.element.dataset.state = state;
    this.element.title = text;
    this.element.setAttribute("aria-label", text);
    this.element.setAttribute("aria-pressed", String(isChosen));
    this.#fill.style.height = `${state === "done" ? 100 : total > 0 ? Math.round((100 * finished) / total) : 0}%`;
  }
}

export const framesPanel: Panel = {
  id: "frames", title: "Running loops", region: "about", order: 20, least: { w: 240, h: 64 },
  make({ model, store, navigation, until }) {
    const panel = new FramesPanel({
      choose: (loop, iteration) => navigation.chooseLoop(loop, iteration),
      forget: () => navigation.forgetIteration(),
    }, until);
    model.changed.connect(() => panel.update(model, store.iteration), until);
    store.changed.connect(({ what }) => what === "iteration" && panel.mark(store.iteration), until);
    return panel.element;
  },
};
