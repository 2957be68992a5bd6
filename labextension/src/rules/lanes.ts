/** Where operations belong: to the model, its gradients, its optimizer, or to what only serves them. Pure. */
import type { Node } from "../wire/messages.js";
import type { Lane } from "./types.js";

const LANES: readonly Lane[] = ["model", "gradient", "optimizer", "aside"];
const MODEL = 1, GRADIENT = 2, OPTIMIZER = 4, ASIDE = 8;

/** Lanes by id of the operations that do not belong to the model itself. */
export function lanesOf(nodes: ReadonlyMap<number, Node>): Map<number, Lane> {
  const lanes = new Map<number, Lane>();
  /** Lanes of what takes an operation's outputs, as bits. */
  const takers = new Map<number, number>();
  const unread: Node[] = [];
  // The last operations first: what takes an output is known before what gives it.
  for (const node of [...nodes.values()].reverse()) {
    const taken = takers.get(node.id) ?? 0;
    // A variable comes with a read of it, which nobody need take.
    if (taken === 0 && node.type === "ReadVariableOp") {
      unread.push(node);
      continue;
    }
    const lane = ownLane(node, nodes) ?? laneOfTakers(taken, node);
    if (lane) lanes.set(node.id, lane);
    const bit = 1 << LANES.indexOf(lane ?? "model");
    for (const [from] of node.inputs) takers.set(from, (takers.get(from) ?? 0) | bit);
  }
  for (const { id, inputs } of unread) {
    const lane = lanes.get(inputs[0]?.[0] ?? -1);
    if (lane) lanes.set(id, lane);
  }
  return lanes;
}

/** What nothing but other lanes takes belongs to them. */
function laneOfTakers(taken: number, { type }: Node): Lane | null {
  if (taken === 0 || taken & MODEL || (type.startsWith("Placeholder") && taken !== ASIDE)) return null;
  // Fed to the optimizer alone but for what fills and saves it: a variable of its own.
  if (taken & OPTIMIZER) return taken & GRADIENT ? null : "optimizer";
  if (taken === ASIDE) return type === "VarHandleOp" ? null : "aside";
  // What a loss is made of is taken by its gradient alone, too.
  return type === "Const" ? "gradient" : null;
}

/** Whether a name lies in a scope that `fs.gradients` has made. */
export function isOfGradients(name: string): boolean {
  return name.includes("gradients") && /(^|\/)gradients(_\d+)?($|\/)/.test(name);
}

function ownLane({ type, name, attributes, control, inputs }: Node, nodes: ReadonlyMap<number, Node>): Lane | null {
  if (attributes.group || /^(Resource)?(Sparse)?Apply[A-Z]/.test(type)) return "optimizer";
  if (/^(Save|Restore)/.test(type)) return "aside";
  if (isOfGradients(name)) return "gradient";
  if (/^Assign/.test(type) && isFilling(inputs[1]?.[0], nodes)) return "aside";
  if (type !== "NoOp" || control.length === 0) return null;
  return control.some((id) => nodes.get(id)?.attributes.group) ? "optimizer" : "aside";
}

/** Whether a value is made from constants and random numbers alone, as the first value of a variable is. */
function isFilling(id: number | undefined, nodes: ReadonlyMap<number, Node>): boolean {
  const seen = new Set<number>();
  const stack = id === undefined ? [] : [id];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    const node = nodes.get(at);
    if (!node || seen.has(at)) continue;
    seen.add(at);
    if (/^Restore/.test(node.type)) return true;
    if (seen.size > 64 || /^(Placeholder|ReadVariableOp|VarHandleOp|Parameter)/.test(node.type)) return false;
    for (const [from] of node.inputs) stack.push(from);
  }
  return true;
}
