/** What is to be fetched and fed, the button that runs it, and what came of it. */
import { typeText } from "../model/figures.js";
import type { GraphModel } from "../model/graph.js";
import { opBox, type BoxId } from "../model/ids.js";
import { figuresText, opName, shortFetch, statusText } from "../model/run_setup.js";
import type { Fetched, Need, RunSetup } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText, uniqueId } from "./dom.js";
import { histogram } from "./histogram.js";
import type { Panel } from "./panel.js";

/** What is typed is told when no key has come for so long. */
const PAUSE_MS = 250;

class RunPanel {
  readonly element = make("section", { class: "fs-run", "data-testid": "fs-run", "aria-label": "Run" });
  readonly #view: ViewContext;
  readonly #fetches = make("span", { class: "fs-fetches", "data-testid": "fs-fetches" });
  readonly #status = make("span", { class: "fs-run-status", role: "status", "data-testid": "fs-run-status" });
  readonly #needs = make("ul", { class: "fs-needs", "aria-label": "To be fed", "data-testid": "fs-needs" });
  readonly #results = make("ul", { class: "fs-results", "aria-label": "Results", "data-testid": "fs-results" });
  readonly #baseline = make("select", { class: "fs-baseline", "aria-label": "Compare with", "data-testid": "fs-baseline", ...OWN_KEYS });
  readonly #rows = new Map<string, NeedRow>();
  #shownFetches = "";
  #shownResults = "";

  constructor(view: ViewContext) {
    this.#view = view;
    const { commands, until } = view;
    this.element.append(
      make("div", { class: "fs-run-head" },
        commands.button("run", true), this.#status, this.#baseline),
      this.#fetches, this.#needs, this.#results,
    );
    this.element.addEventListener("click", ({ target }) => this.#onClick(target), { signal: until });
    this.#baseline.addEventListener("change", () => view.runs.compareWith(Number(this.#baseline.value) || null), { signal: until });
  }

  update(): void {
    const { setup } = this.#view.runs;
    setText(this.#status, statusText(setup));
    this.#status.title = this.#status.textContent ?? "";
    this.element.dataset.state = setup.latest?.error && setup.state === "ready" && setup.problem === "" ? "failed" : setup.state;
    this.#showFetches(setup);
    this.#showNeeds(setup.needs);
    this.#showResults(setup);
    this.#showBaseline(setup);
  }

  #showFetches({ fetches }: RunSetup): void {
    const told = fetches.join("\n");
    if (told === this.#shownFetches) return;
    this.#shownFetches = told;
    this.#fetches.replaceChildren(...fetches.map((name) => make(
      "span", { class: "fs-chip" }, this.#link(name, shortFetch(name)),
      make("button", { type: "button", class: "fs-chip-close", "data-drop": name, title: "Do not fetch it", "aria-label": `Do not fetch ${shortFetch(name)}`, ...OWN_KEYS }, "\u00d7"),
    )));
  }

  #showNeeds(needs: readonly Need[]): void {
    const names = new Set(needs.map(({ name }) => name));
    for (const [name, row] of this.#rows) {
      if (names.has(name)) continue;
      row.element.remove();
      this.#rows.delete(name);
    }
    needs.forEach((need, k) => {
      const row = this.#rows.get(need.name) ?? this.#makeRow(need);
      row.update(need);
      if (this.#needs.children[k] !== row.element) this.#needs.insertBefore(row.element, this.#needs.children[k] ?? null);
    });
  }

  #makeRow(need: Need): NeedRow {
    const row = new NeedRow(need, this.#link(need.name, shortFetch(need.name)), this.#view);
    this.#rows.set(need.name, row);
    return row;
  }

  #showResults({ latest, changes, compared_with: other }: RunSetup): void {
    const told = JSON.stringify([latest, changes]);
    if (told === this.#shownResults) return;
    this.#shownResults = told;
    const changeOf = new Map(changes.map((one) => [one.name, one]));
    this.#results.replaceChildren(...(latest?.fetched ?? []).map((value) => {
      const change = changeOf.get(value.name);
      const isSame = change?.is_equal ?? false;
      return make(
        "li", { class: "fs-result" }, this.#link(value.name, shortFetch(value.name)), valueElement(value),
        make("span", { class: "fs-change", "data-equal": String(isSame), title: change ? `against run ${other}` : "" }, change?.text ?? ""),
      );
    }));
  }

  #showBaseline({ kept, compared_with: other }: RunSetup): void {
    const earlier = kept.slice(0, -1);
    this.#baseline.hidden = earlier.length === 0;
    const told = earlier.join();
    if (this.#baseline.dataset.runs !== told) {
      this.#baseline.dataset.runs = told;
      this.#baseline.replaceChildren(
        make("option", { value: "" }, "against the run before"), ...earlier.map((run) => make("option", { value: String(run) }, `against run ${run}`)),
      );
    }
    if (document.activeElement !== this.#baseline) this.#baseline.value = other === earlier.at(-1) ? "" : String(other);
  }

  #link(fetch: string, text: string): HTMLElement {
    return make("button", { type: "button", class: "fs-link", "data-go": opName(fetch), title: `Show ${fetch}`, ...OWN_KEYS }, text);
  }

  #onClick(target: EventTarget | null): void {
    const { runs, navigation, model } = this.#view;
    const pressed = target instanceof Element ? target.closest<HTMLElement>("[data-go], [data-drop]") : null;
    const { go, drop } = pressed?.dataset ?? {};
    if (drop !== undefined) runs.fetch(runs.setup.fetches.filter((one) => one !== drop));
    const box = go === undefined ? null : boxNamed(model, go);
    if (box !== null) navigation.go(box);
  }
}

/** A tensor that is to be fed: its type, what is typed for it, and what is to be said of that. */
class NeedRow {
  readonly element = make("li", { class: "fs-need" });
  readonly #input: HTMLInputElement;
  readonly #told = make("span", { class: "fs-need-told" });
  /** The notebook's variables that fit. */
  readonly #list = make("datalist");
  #need: Need;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sent: string | null = null;

  constructor(need: Need, link: HTMLElement, { runs, session, until }: ViewContext) {
    this.#need = need;
    this.#input = make("input", {
      type: "text", class: "fs-need-value", spellcheck: "false", autocomplete: "off",
      "aria-label": `Value of ${shortFetch(need.name)}`, ...OWN_KEYS,
    });
    const type = make("span", { class: "fs-need-type" }, typeText(need));
    this.#list.id = uniqueId("fs-candidates");
    this.#input.setAttribute("list", this.#list.id);
    this.element.append(link, type, this.#input, this.#told, this.#list);
    this.#input.disabled = !runs.isLive;
    const send = (): void => {
      clearTimeout(this.#timer);
      const text = this.#input.value.trim();
      if (text === (this.#sent ?? this.#need.text)) return;
      this.#sent = text;
      runs.feed(need.name, text);
    };
    this.#input.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(send, PAUSE_MS);
    }, { signal: until });
    this.#input.addEventListener("change", send, { signal: until });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      send();
      event.preventDefault();
      // What is typed is told first; the kernel then says what else is missing, or runs.
      if (session.isHeard) session.send("run");
    }, { signal: until });
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  update(need: Need): void {
    this.#need = need;
    this.#offer(need.candidates);
    if (need.text === this.#sent) this.#sent = null;
    const isTyping = document.activeElement === this.#input;
    if (!isTyping && this.#sent === null) this.#input.value = need.text;
    const isProblem = need.problem !== "";
    setText(this.#told, isProblem ? need.problem : need.value === "" ? "no value yet" : need.text === "" ? `${need.value}, from Python` : need.value);
    this.#told.title = this.#told.textContent ?? "";
    this.element.dataset.state = isProblem ? "problem" : need.value === "" ? "missing" : "known";
    this.#input.setAttribute("aria-invalid", String(isProblem));
  }

  #offer(candidates: readonly string[]): void {
    if (this.#list.dataset.told === candidates.join()) return;
    this.#list.dataset.told = candidates.join();
    this.#list.replaceChildren(...candidates.map((value) => make("option", { value })));
    this.#input.placeholder = placeholder(candidates);
  }
}

function placeholder([first]: readonly string[]): string {
  return first === undefined ? "a value, or a variable's name" : `e.g. ${first}`;
}

function valueElement(value: Fetched): HTMLElement {
  const figures = figuresText(value);
  return make(
    "span", { class: "fs-value" }, make("code", {}, value.text !== "" ? value.text : typeText(value)),
    ...(value.histogram.length > 0 ? [histogram(value)] : []), ...(figures ? [make("small", {}, figures)] : []),
  );
}

function boxNamed(model: GraphModel, name: string): BoxId | null {
  const op = model.tree.idOf(name);
  return op === undefined ? null : opBox(op);
}

export const runPanel: Panel = {
  id: "run", title: "Run", region: "panels", order: 5, least: { w: 320, h: 130 }, shuts: "Close",
  make(view) {
    const { runs, drawers, stage, model, until } = view;
    const panel = new RunPanel(view);
    let had = 0;
    const show = (): void => {
      const { fetches } = runs.setup;
      if (fetches.length > had) drawers.setOpen("run", true);
      had = fetches.length;
      panel.update();
      stage.element.dataset.notes = String(stage.notes.notes.length);
    };
    runs.changed.connect(show, until);
    model.changed.connect(({ fresh }) => fresh && show(), until);
    drawers.changed.connect((id) => id === "run" && show(), until);
    show();
    return panel.element;
  },
};
