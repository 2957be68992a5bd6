/** The panel that says what is known about the selection. */
import { factsOf, type Fact, type Facts, type Section } from "../model/facts.js";
import type { GraphModel } from "../model/graph.js";
import { pathOf, type BoxId } from "../model/ids.js";
import { button, make, OWN_KEYS } from "./dom.js";

export class Inspector {
  readonly element = make("aside", { class: "fs-inspector", "data-testid": "fs-inspector", "aria-label": "Inspector" });
  readonly #body = make("div", { class: "fs-inspector-body" });
  readonly #go: (box: BoxId) => void;
  #shown = "";

  constructor(go: (box: BoxId) => void, close: () => void, until: AbortSignal) {
    this.#go = go;
    const shut = button("Close inspector", "close", close, until);
    shut.classList.add("fs-inspector-close");
    this.element.append(shut, this.#body);
    // One listener for all links, so that links need none of their own.
    this.#body.addEventListener("click", (event) => this.#follow(event), { signal: until });
  }

  update(model: GraphModel, selection: BoxId | null): void {
    const facts = factsOf(model, selection);
    const text = JSON.stringify(facts);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#body.replaceChildren(...(facts ? content(facts, selection) : []));
  }

  #follow(event: Event): void {
    const target = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-box]") : null;
    if (target?.dataset.box) this.#go(target.dataset.box);
  }
}

function content(facts: Facts, selection: BoxId | null): Node[] {
  const isScope = selection === null || pathOf(selection) !== null;
  return [
    make("div", { class: "fs-kind" }, facts.kind),
    make("h3", { class: "fs-name" }, ...breakable(facts.name)),
    make("p", { class: isScope ? "fs-count" : "fs-summary" }, facts.summary),
    ...facts.sections.map(sectionElement),
  ];
}

/** A long name may break after each "/". */
function breakable(name: string): (Node | string)[] {
  return name.split("/").flatMap((part, i) => (i === 0 ? [part] : ["/", make("wbr"), part]));
}

function sectionElement({ title, facts }: Section): HTMLElement {
  const list = make("dl");
  for (const fact of facts) list.append(make("dt", {}, fact.name), make("dd", {}, valueElement(fact)));
  return make("section", {}, make("h4", {}, title), list);
}

function valueElement({ value, leadsTo }: Fact): Node | string {
  if (leadsTo === undefined) return make("span", {}, value);
  return make("button", { type: "button", class: "fs-link", ...OWN_KEYS, "data-box": leadsTo }, ...breakable(value));
}
