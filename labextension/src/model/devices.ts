/** The devices of a graph, numbered in the order of their names, so that each keeps its colour. Pure. */
import type { GraphModel } from "./graph.js";

export function devicesOf(model: GraphModel): Map<string, number> {
  const names = new Set<string>();
  for (const node of model.nodes.values()) if (node.placed !== null) names.add(node.placed);
  return new Map([...names].sort().map((name, i) => [name, i]));
}
