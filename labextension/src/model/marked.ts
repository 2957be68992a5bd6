/** Boxes that the latest re-run of a cell has changed or added, or that hold such operations. Pure. */
import type { GraphModel } from "./graph.js";
import { opBox, scopeBox, type BoxId } from "./ids.js";
import type { Scope } from "./scopes.js";

export function markedBoxes(model: GraphModel): ReadonlySet<BoxId> {
  const found = new Set<BoxId>();
  for (const id of model.marked) {
    if (!model.nodes.has(id)) continue;
    found.add(opBox(id));
    for (let scope: Scope | null = model.tree.homeOf(id); scope?.parent; scope = scope.parent) {
      found.add(scopeBox(scope.path));
    }
  }
  return found;
}
