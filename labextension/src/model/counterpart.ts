/** What stands for an operation in another program: of another plan, or at the other level. Pure. */
import type { Node } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import { opBox, scopeBox, type BoxId } from "./ids.js";

/** The box that shows what has become of an operation that is no longer there; null where nothing does. */
export function counterpart(model: GraphModel, lost: Node): BoxId | null {
  const same = model.tree.idOf(lost.name);
  if (same !== undefined && model.nodes.has(same)) return opBox(same);
  const loop = model.scopeOfLoop(lost.id);
  if (loop !== null) return scopeBox(loop);
  for (const { id } of lost.made_from) {
    const scope = model.scopeOfLoop(id);
    if (scope !== null) return scopeBox(scope);
    if (model.nodes.has(id)) return opBox(id);
  }
  return madeOfTheSame(model, lost);
}

/** Of what was made of the same operations: of the same type, if there is one. */
function madeOfTheSame(model: GraphModel, lost: Node): BoxId | null {
  const sources = new Set([lost.id, ...lost.made_from.map(({ id }) => id)]);
  const found = [...model.nodes.values()].filter(({ made_from: made }) => made.some(({ id }) => sources.has(id)));
  const best = found.find(({ type }) => type === lost.type) ?? found[0];
  return best ? opBox(best.id) : null;
}
