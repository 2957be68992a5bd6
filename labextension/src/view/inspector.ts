/** The panel that says what is known about the selection. */
import { withShortNames, type Fact, type Facts, type Section } from "../model/fact.js";
import { deviceTexts } from "../model/devices.js";
import { targetOf } from "../model/debug.js";
import { feedFacts } from "../model/feeds.js";
import { factsOf } from "../model/facts.js";
import { runSections } from "../model/frame_facts.js";
import type { GraphModel } from "../model/graph.js";
import { queueSections } from "../model/level_facts.js";
import { opBox, opOf, pathOf, type BoxId } from "../model/ids.js";
import { placementFacts } from "../model/placement.js";
import { bothText, changeText, StepDifference } from "../model/step_difference.js";
import type { Difference } from "../model/search.js";
import { transferFacts } from "../model/transfers.js";
import type { ChosenIteration } from "../model/running.js";
import { make, OWN_KEYS } from "./dom.js";
import type { Panel } from "./panel.js";

class Inspector {
  readonly element = make("aside", { class: "fs-inspector", "data-testid": "fs-inspector", "aria-label": "Inspector" });
  readonly #head = make("div");
  /** What changes while loops run. */
  readonly #run = make("div", { "data-testid": "fs-inspector-run" });
  readonly #rest = make("div");
  readonly #body: HTMLElement;
  readonly #go: (box: BoxId, level?: string) => void;
  #shown = "";
  #shownRun = "";

  constructor(go: (box: BoxId, level?: string) => void, acts: HTMLElement, until: AbortSignal) {
    this.#go = go;
    this.#body = make("div", { class: "fs-inspector-body" }, this.#head, acts, this.#run, this.#rest);
    this.element.append(this.#body);
    // One listener for all links, so that links need none of their own.
    this.#body.addEventListener("click", (event) => this.#follow(event), { signal: until });
  }

  /** What is known of the graph. */
  update(model: GraphModel, selection: BoxId | null, difference: Difference, why: readonly Fact[], crossing: readonly Fact[], compared: readonly Section[]): void {
    const known = factsOf(model, selection);
    const op = selection === null ? null : opOf(selection);
    const more: readonly Section[] = [
      ...compared,
      { title: "Transfer", facts: crossing },
      { title: "To fetch it, feed", facts: op === null ? [] : feedFacts(model, op) },
      { title: "Only in the graph compared with", facts: selection === null ? removedFacts(difference) : [] },
    ].filter(({ facts: told }) => told.length > 0);
    const sections = known?.sections.map((one) => (one.title === "Device" ? { ...one, facts: [...one.facts, ...why] } : one)) ?? [];
    const say = deviceTexts(model);
    const facts = known && { ...known, sections: [...sections, ...more].map((one) => withShortNames(one, say)) };
    const text = JSON.stringify(facts);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#head.replaceChildren(...(facts ? heading(facts, selection) : []));
    this.#rest.replaceChildren(...(facts?.sections.map(sectionElement) ?? []));
  }

  /** What is known of the run: little, so that it can be looked at with every message. */
  updateRun(model: GraphModel, selection: BoxId | null, chosen: ChosenIteration | null): void {
    const say = deviceTexts(model);
    const sections = [...failureSections(model, selection), ...runSections(model, selection, chosen), ...queueSections(model, selection)].map((one) => withShortNames(one, say));
    const text = JSON.stringify(sections);
    if (text === this.#shownRun) return;
    this.#shownRun = text;
    this.#run.replaceChildren(...sections.map(sectionElement));
  }

  #follow(event: Event): void {
    const target = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-box]") : null;
    if (target?.dataset.box) this.#go(target.dataset.box, target.dataset.level);
  }
}

/** Removed operations beyond this are counted. */
const MOST_REMOVED = 30;

function removedFacts(difference: Difference): Fact[] {
  const names = [...difference].flatMap(([name, what]) => (what === "removed" ? [name] : []));
  const told = names.slice(0, MOST_REMOVED).map((name): Fact => ({ name: "", value: name }));
  return names.length > MOST_REMOVED ? [...told, { name: "", value: `and ${names.length - MOST_REMOVED} more` }] : told;
}

/** What was said of a step that failed here. */
function failureSections({ session }: GraphModel, box: BoxId | null): Section[] {
  const failure = session?.failure ?? null;
  const isHere = failure !== null && failure.op !== null && box === opBox(failure.op);
  return isHere ? [{ title: "The latest step failed here", facts: [{ name: "", value: failure.message }] }] : [];
}

function heading(facts: Facts, selection: BoxId | null): Node[] {
  const isScope = selection === null || pathOf(selection) !== null;
  return [
    make("div", { class: "fs-kind" }, facts.kind),
    make("h3", { class: "fs-name" }, ...breakable(facts.name)),
    make("p", { class: isScope ? "fs-count" : "fs-summary" }, facts.summary),
  ];
}

/** A long name may break after each "/". */
function breakable(name: string): (Node | string)[] {
  return name.split("/").flatMap((part, i) => (i === 0 ? [part] : ["/", make("wbr"), part]));
}

function sectionElement({ title, facts }: Section): HTMLElement {
  const list = make("dl");
  for (const fact of facts) list.append(make("dt", titled(fact), fact.name), make("dd", titled(fact), valueElement(fact)));
  return make("section", {}, make("h4", {}, title), list);
}

const titled = ({ title }: Fact): Readonly<Record<string, string>> => (title === undefined ? {} : { title });

function valueElement({ value, leadsTo, level }: Fact): Node | string {
  if (leadsTo === undefined) return make("span", {}, value);
  return make("button", { type: "button", class: "fs-link", ...OWN_KEYS, "data-box": leadsTo, ...(level ? { "data-level": level } : {}) }, ...breakable(value));
}

export const inspectorPanel: Panel = {
  id: "inspector", title: "Inspector", region: "about", order: 10, least: { w: 220, h: 130 },
  make({ model, store, selection, navigation, commands, placement, session, trace, rewind, until }) {
    const go = (box: BoxId, level?: string): void => (level ? navigation.showWritten(box) : navigation.go(box));
    const acts = make("div", { class: "fs-acts" }, commands.button("explain", true), commands.button("fetch", true), commands.button("break-before", true), commands.button("break-after", true), commands.button("move", true));
    const inspector = new Inspector(go, acts, until);
    let shown: BoxId | null = null;
    const updateRun = (): void => inspector.updateRun(model, selection.subject, store.iteration);
    const compared = (): Section[] => {
      const { base } = rewind;
      const box = selection.subject;
      const both = base && trace.heat && box !== null ? new StepDifference(model, base.heat, trace.heat).of(box) : null;
      return both && base ? [{ title: "Compared", facts: [{ name: changeText(both), value: bothText(both, base.heat.step, trace.stepHeat?.step ?? null) }] }] : [];
    };
    const show = (): void => {
      const at = targetOf(model, shown);
      const here = model.nodes.get((shown === null ? null : opOf(shown)) ?? -1);
      const why = at ? placementFacts(placement.of(at.name), trace.heat, at.id) : [];
      inspector.update(model, shown, store.difference, why, here ? transferFacts(model, here, trace.recording) : [], compared());
    };
    /** Asked for at each change of the graph or the selection: the answer is of the latest plan. */
    const update = (): void => {
      shown = selection.subject;
      const at = targetOf(model, shown);
      if (at && at.placed !== null && session.isHeard) session.ask("ask_placement", placement.ask(at.name), (told) => placement.take(told));
      show();
      updateRun();
    };
    placement.changed.connect(show, until);
    trace.changed.connect(show, until);
    rewind.changed.connect(show, until);
    model.changed.connect(({ graph }) => (graph || shown !== selection.subject ? update() : updateRun()), until);
    store.changed.connect(({ what }) => (what === "selection" || what === "difference" ? update() : what === "iteration" && updateRun()), until);
    return inspector.element;
  },
};
