/** Boxes that show what a cell has done, or that hold such operations. Pure. */
import type { GraphModel } from "./graph.js";
import { opBox, scopeBox, type BoxId } from "./ids.js";
import type { Scope } from "./scopes.js";

/** What the latest cell has changed or added. */
export function markedBoxes(model: GraphModel): ReadonlySet<BoxId> {
  return boxesAround(model, model.marked);
}

/** What cannot be used until its cell is run again, too. */
export function staleBoxes(model: GraphModel): ReadonlySet<BoxId> {
  return boxesAround(model, [...model.nodes.values()].filter((node) => node.stale).map((node) => node.id));
}

function boxesAround(model: GraphModel, ids: Iterable<number>): ReadonlySet<BoxId> {
  const found = new Set<BoxId>();
  for (const id of ids) {
    if (!model.nodes.has(id)) continue;
    found.add(opBox(id));
    for (let scope: Scope | null = model.tree.homeOf(id); scope?.parent; scope = scope.parent) {
      found.add(scopeBox(scope.path));
    }
  }
  return found;
}
