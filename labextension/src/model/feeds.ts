/** What must be fed for a tensor to be fetched. Pure. */
import type { Node } from "../wire/messages.js";
import type { Fact } from "./fact.js";
import { typeText } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { opBox } from "./ids.js";

/** Placeholders beyond this are counted. */
const MOST = 12;

/** The placeholders that an operation's value needs, in program order. */
export function feedsOf(model: GraphModel, op: number): Node[] {
  const seen = new Set([op]);
  const rest = [op];
  const found: Node[] = [];
  for (let id = rest.pop(); id !== undefined; id = rest.pop()) {
    const node = model.nodes.get(id);
    if (!node) continue;
    if (node.type === "Placeholder") found.push(node);
    for (const from of [...node.inputs.map(([one]) => one), ...node.control]) {
      if (seen.has(from)) continue;
      seen.add(from);
      rest.push(from);
    }
  }
  return found.sort((a, b) => a.id - b.id);
}

/** As the inspector says it: name, dtype and shape; nothing of what cannot be fetched. */
export function feedFacts(model: GraphModel, op: number): Fact[] {
  const node = model.nodes.get(op);
  // What stands in a body is not fetched; a placeholder is fed itself.
  if (!node || node.body !== "" || node.outputs.length === 0 || node.type === "Placeholder" || model.level !== "graph") return [];
  const feeds = feedsOf(model, op);
  if (feeds.length === 0) return [{ name: "", value: "nothing" }];
  const told = feeds.slice(0, MOST).map((feed): Fact => ({
    name: feed.outputs[0] ? typeText(feed.outputs[0]) : "", value: feed.name, leadsTo: opBox(feed.id),
  }));
  return feeds.length > MOST ? [...told, { name: "", value: `and ${feeds.length - MOST} more` }] : told;
}
