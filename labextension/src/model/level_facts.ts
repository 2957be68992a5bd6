/** What the inspector says about the two levels of a graph, about branches, and about queues. Pure. */
import type { Node, QueueState } from "../wire/messages.js";
import { linkFact, shorten, type Fact, type Section } from "./fact.js";
import { significant, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { opBox, opOf, type BoxId } from "./ids.js";
import { sizeText, waitTexts } from "./input.js";

/** Names that a title has room for. */
const NAMED = 3;

/** What is shown: the graph, or of which fetches the program is, whole or cut. */
export function levelText({ level, name, fetches }: Pick<GraphModel, "level" | "name" | "fetches">): string {
  if (level === "graph") return name || "graph";
  const more = fetches.length - NAMED;
  return `${level === "partitions" ? "partitions" : "program"} of ${fetches.slice(0, NAMED).join(", ") || "the latest step"}${more > 0 ? ` and ${whole(more)} more` : ""}`;
}

/** Where a node of the lowered program comes from: the loop or branch that it is a part of, or operations. */
export function sourceFacts({ made_from: sources }: Node): readonly Fact[] {
  return shorten(sources.map(({ id, name, type }) => {
    const isPart = type === "Loop" || type === "Cond";
    return { name: isPart ? (type === "Loop" ? "part of the loop" : "part of the branch") : "", value: name, leadsTo: opBox(id), level: "graph" };
  }));
}

/** What runs for a branch alone and yet always; of such an operation: which branch that is. */
export function alwaysSections(model: GraphModel, node: Node): Section[] {
  const owners = model.alwaysFor.get(node.id) ?? [];
  return [
    { title: "Always runs", facts: owners.map((id) => linkFact(model, id, "though only a branch needs it:")) },
    { title: "Runs whichever branch is taken", facts: shorten(node.always_runs.map((id) => linkFact(model, id, ""))) },
  ];
}

/** How full a queue is now. */
export function queueSections(model: GraphModel, box: BoxId | null): Section[] {
  const op = box === null ? null : opOf(box);
  const queue = model.session?.queues.find((one) => one.op === op);
  return queue ? [{ title: queue.stamp === null ? "In the queue" : "In the accumulator", facts: queueFacts(queue) }] : [];
}

function queueFacts(queue: QueueState): Fact[] {
  const rate = queue.per_s === null ? [] : [{ name: "taken", value: `${significant(queue.per_s)} elements/s` }];
  return [
    { name: queue.stamp === null ? "elements" : "gradients", value: sizeText(queue) }, ...rate, ...waitTexts(queue).map((value) => ({ name: "waiting", value })),
    ...(queue.error ? [{ name: "a producer failed", value: queue.error }] : []),
  ];
}
