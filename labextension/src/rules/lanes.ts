/** Where operations belong: to the model, its gradients, its optimizer, or to what only serves them. Pure. */
import type { Node } from "../wire/messages.js";
import type { Lane } from "./types.js";

/** Ids of the operations that do not belong to the model itself. */
export function lanesOf(nodes: ReadonlyMap<number, Node>): Map<number, Lane> {
  const lanes = new Map<number, Lane>();
  const taken = new Set([...nodes.values()].flatMap(({ inputs }) => inputs.map(([from]) => from)));
  const unread = [...nodes.values()].filter((node) => isUnread(node, taken));
  const takers = takersOf(nodes, new Set(unread.map(({ id }) => id)));
  for (const node of nodes.values()) {
    const lane = ownLane(node, nodes);
    if (lane) lanes.set(node.id, lane);
  }
  // What nothing but these takes belongs to them; the last operations first, so that one pass is enough.
  for (const node of [...nodes.values()].reverse()) {
    if (lanes.has(node.id) || node.type.startsWith("Placeholder")) continue;
    const lane = laneOfAll(takers.get(node.id) ?? [], lanes, node);
    if (lane) lanes.set(node.id, lane);
  }
  for (const { id, inputs } of unread) {
    const lane = lanes.get(inputs[0]?.[0] ?? -1);
    if (lane) lanes.set(id, lane);
  }
  return lanes;
}

/** A variable comes with a read of it, which nobody need take. */
function isUnread({ id, type }: Node, taken: ReadonlySet<number>): boolean {
  return type === "ReadVariableOp" && !taken.has(id);
}

/** Whether a name lies in a scope that `fs.gradients` has made. */
export function isOfGradients(name: string): boolean {
  return /(^|\/)gradients(_\d+)?($|\/)/.test(name);
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

function laneOfAll(takers: readonly number[], lanes: ReadonlyMap<number, Lane>, { type }: Node): Lane | null {
  if (takers.length === 0) return null;
  const found = new Set(takers.map((id) => lanes.get(id) ?? "model"));
  if (found.has("model")) return null;
  // Fed by the optimizer alone but for what fills and saves it: a variable of its own.
  if (found.has("optimizer") && (found.size === 1 || !found.has("gradient"))) return "optimizer";
  if (found.size === 1 && found.has("aside")) return type === "VarHandleOp" ? null : "aside";
  // What a loss is made of is taken by its gradient alone, too.
  return type === "Const" ? "gradient" : null;
}

function takersOf(nodes: ReadonlyMap<number, Node>, without: ReadonlySet<number>): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const { id, inputs } of nodes.values()) {
    if (without.has(id)) continue;
    for (const [from] of inputs) {
      const known = found.get(from);
      if (known) known.push(id);
      else found.set(from, [id]);
    }
  }
  return found;
}
