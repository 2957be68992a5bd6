/**
 * Bodies: which operations stand in a function's block, and which call it. A body is a scope of its
 * name and closed, so no edge joins it to its calls: names and links do. Pure.
 */
import type { Node } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import { opOf, pathOf, scopeBox, type BoxId } from "./ids.js";
import { shortName } from "./scopes.js";

/** Stands before a function's name, at its body and at its calls. */
const SIGN = "\u0192\u00a0";

export interface Body {
  /** The function's name, which is the path of the body's scope. */
  readonly name: string;
  /** Ids of the operations that stand for its inputs. */
  readonly parameters: readonly number[];
  readonly results: readonly number[];
  /** Ids of the operations anywhere that call it. */
  readonly calls: readonly number[];
  /** Whether it is the gradient of another one: it is named after that. */
  readonly isOfGradient: boolean;
}

export function bodiesOf(nodes: Iterable<Node>): Map<string, Body> {
  const found = new Map<string, { -readonly [K in keyof Body]: Body[K] extends readonly number[] ? number[] : Body[K] }>();
  const calls: Node[] = [];
  for (const node of nodes) {
    if (node.calls) calls.push(node);
    if (!node.body) continue;
    const body = found.get(node.body)
      ?? { name: node.body, parameters: [], results: [], calls: [], isOfGradient: false };
    found.set(node.body, body);
    if (node.type === "Parameter") body.parameters.push(node.id);
    if (node.is_result) body.results.push(node.id);
  }
  for (const node of calls) found.get(node.calls)?.calls.push(node.id);
  for (const body of found.values()) {
    body.isOfGradient = found.has(/^(.+)_grad(_\d+)?$/.exec(body.name)?.[1] ?? "");
  }
  return found;
}

/** What an operation is, in a word or two: its type, or the function that it calls. */
export function kindOf(node: Node): string {
  return node.calls ? SIGN + node.calls : node.type;
}

/** A scope's short name; a function's with a sign before it. */
export function scopeTitle(model: GraphModel, path: string): string {
  return (model.bodies.has(path) ? SIGN : "") + shortName(path);
}

/** The body that an operation calls, as a box; null where there is none. */
export function calledBox(model: GraphModel, box: BoxId): BoxId | null {
  const name = model.nodes.get(opOf(box) ?? -1)?.calls ?? "";
  return model.bodies.has(name) ? scopeBox(name) : null;
}

/** What belongs to the selection without an edge: a body's calls, a call's body. */
export function relatedBoxes(
  model: GraphModel, selection: BoxId | null, endOf: (op: number) => BoxId,
): ReadonlySet<BoxId> {
  if (selection === null) return new Set();
  const called = calledBox(model, selection);
  const calls = model.bodies.get(pathOf(selection) ?? "")?.calls ?? [];
  return new Set(called === null ? calls.map(endOf) : [called]);
}
