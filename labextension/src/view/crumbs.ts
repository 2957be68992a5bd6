/** The way from the root to the selection, in the line below the stage. */
import { scopeTitle } from "../model/bodies.js";
import type { GraphModel } from "../model/graph.js";
import { levelText } from "../model/level_facts.js";
import { opOf, pathOf, ROOT, scopeBox, type BoxId } from "../model/ids.js";
import { shortName } from "../model/scopes.js";
import { make, OWN_KEYS } from "./dom.js";
import type { Panel } from "./panel.js";

class Crumbs {
  readonly element = make("nav", { class: "fs-crumbs", "aria-label": "Breadcrumb" });

  constructor(go: (box: BoxId) => void, until: AbortSignal) {
    this.element.addEventListener("click", (event) => {
      const target = event.target instanceof HTMLElement ? event.target.dataset.box : undefined;
      if (target) go(target);
    }, { signal: until });
  }

  update(model: GraphModel, selection: BoxId | null): void {
    const op = selection === null ? null : opOf(selection);
    const node = op === null ? undefined : model.nodes.get(op);
    const path = node ? model.tree.homeOf(node.id).path : (pathOf(selection ?? ROOT) ?? "");
    const steps = [crumb(ROOT, levelText(model)), ...model.tree.ancestry(path).map((part) => crumb(scopeBox(part), scopeTitle(model, part)))];
    if (node) steps.push(make("span", {}, shortName(node.name)));
    this.element.replaceChildren(...steps.flatMap((step, i) => (i === 0 ? [step] : [" / ", step])));
  }
}

function crumb(box: BoxId, name: string): HTMLElement {
  return make("button", { type: "button", class: "fs-link", ...OWN_KEYS, "data-box": box }, name);
}

export const crumbsPanel: Panel = {
  id: "crumbs", title: "The scopes around the selection", region: "foot", order: 20,
  make({ model, store, selection, navigation, until }) {
    const crumbs = new Crumbs((box) => navigation.go(box), until);
    let shown: BoxId | null = null;
    const update = (): void => {
      shown = selection.subject;
      crumbs.update(model, shown);
    };
    model.changed.connect(({ graph }) => (graph || shown !== selection.subject) && update(), until);
    store.changed.connect(({ what }) => what === "selection" && update(), until);
    return crumbs.element;
  },
};
