/** Where operations belong: to the model, its gradients, its optimizer, or to what only serves them. Pure. */
import type { Node } from "../wire/messages.js";
import { SLICE, type Sliced } from "../wire/sliced.js";
import { LIMITS, type Lane } from "./types.js";

const MODEL = 1, GRADIENT = 2, OPTIMIZER = 4, ASIDE = 8;
const BITS: Readonly<Record<Lane, number>> = { model: MODEL, gradient: GRADIENT, optimizer: OPTIMIZER, aside: ASIDE };

/** Lanes by id of the operations that do not belong to the model itself. */
export function* lanesOf(nodes: ReadonlyMap<number, Node>): Sliced<Map<number, Lane>> {
  const lanes = new Map<number, Lane>();
  /** Lanes of what takes an operation's outputs, as bits. */
  const takers: (number | undefined)[] = [];
  const unread: Node[] = [];
  const kinds = new Kinds();
  const all = [...nodes.values()];
  // The last operations first: what takes an output is known before what gives it.
  for (let k = all.length - 1; k >= 0; k--) {
    const node = all[k]!;
    if (k % SLICE === 0) yield;
    const taken = takers[node.id] ?? 0;
    // A variable comes with a read of it, which nobody need take.
    if (taken === 0 && node.type === "ReadVariableOp") {
      unread.push(node);
      continue;
    }
    const lane = ownLane(node, kinds.of(node.type), nodes) ?? laneOfTakers(taken, node);
    if (lane) lanes.set(node.id, lane);
    const bit = BITS[lane ?? "model"];
    for (const [from] of node.inputs) takers[from] = (takers[from] ?? 0) | bit;
  }
  for (const { id, inputs } of unread) {
    const lane = lanes.get(inputs[0]?.[0] ?? -1);
    if (lane) lanes.set(id, lane);
  }
  return lanes;
}

/** What nothing but other lanes takes belongs to them. */
function laneOfTakers(taken: number, { type }: Node): Lane | null {
  if (taken === 0 || taken & MODEL || (taken !== ASIDE && type.startsWith("Placeholder"))) return null;
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

/** What a type alone says of the lane. */
type Kind = "update" | "save" | "assign" | "group" | "";

/** Kinds by op type, of which a graph has few. */
class Kinds {
  readonly #known = new Map<string, Kind>();

  of(type: string): Kind {
    let kind = this.#known.get(type);
    if (kind === undefined) this.#known.set(type, kind = kindOf(type));
    return kind;
  }
}

function kindOf(type: string): Kind {
  if (/^(Resource)?(Sparse)?Apply[A-Z]/.test(type)) return "update";
  if (/^(Save|Restore)/.test(type)) return "save";
  if (/^Assign/.test(type)) return "assign";
  return type === "NoOp" ? "group" : "";
}

function ownLane({ name, attributes, control, inputs }: Node, kind: Kind, nodes: ReadonlyMap<number, Node>): Lane | null {
  if (kind === "update" || attributes.group) return "optimizer";
  if (kind === "save") return "aside";
  if (isOfGradients(name)) return "gradient";
  if (kind === "assign" && isFilling(inputs[1]?.[0], nodes)) return "aside";
  if (kind !== "group" || control.length === 0) return null;
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
    if (node.type.startsWith("Restore")) return true;
    if (seen.size > LIMITS.filling || /^(Placeholder|ReadVariableOp|VarHandleOp|Parameter)/.test(node.type)) return false;
    for (const [from] of node.inputs) stack.push(from);
  }
  return true;
}
