/**
 * Bodies: which operations stand in a function's, a branch's or a loop's block, and which run it. A
 * body is a scope of its name. A function's is closed, so no edge joins it to its calls: names and
 * links do. Those of loops and branches lie in the frame of their operation (`frames.ts`). Pure.
 */
import type { Node } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import { decisionText, isFrame } from "./frames.js";
import { opOf, pathOf, scopeBox, type BoxId } from "./ids.js";
import { forwardName } from "./gradients.js";
import { opTitle, variableTitle } from "./naming.js";
import { shortName, type Scope } from "./scopes.js";

/** Stands before a function's name, at its body and at its calls. */
const SIGN = "\u0192\u00a0";

export interface Body {
  /** The path of the body's scope; a function's name. */
  readonly name: string;
  /** Ids of the operations that stand for its inputs. */
  readonly parameters: readonly number[];
  readonly results: readonly number[];
  /** Ids of the operations anywhere that call it, or run it as a branch or in a loop. */
  readonly calls: readonly number[];
  /** Whether it is a function's, which any operation may call: not a branch's or a loop's. */
  readonly isFunction: boolean;
  /** What it is to the operation that runs it: "cond", "body", "then", "else"; "" of a function. */
  readonly role: string;
  /** Whether it is the gradient of another one: it is named after that. */
  readonly isOfGradient: boolean;
}

export function bodiesOf(nodes: Iterable<Node>): Map<string, Body> {
  const found = new Map<string, { -readonly [K in keyof Body]: Body[K] extends readonly number[] ? number[] : Body[K] }>();
  const calls: Node[] = [];
  for (const node of nodes) {
    if (runsBodies(node)) calls.push(node);
    if (!node.body) continue;
    const body = found.get(node.body)
      ?? { name: node.body, parameters: [], results: [], calls: [], isFunction: true, role: "", isOfGradient: false };
    found.set(node.body, body);
    if (node.type === "Parameter") body.parameters.push(node.id);
    if (node.is_result) body.results.push(node.id);
  }
  for (const node of calls) {
    found.get(node.calls)?.calls.push(node.id);
    node.runs.forEach((name, k) => {
      const body = found.get(name);
      if (!body) return;
      body.calls.push(node.id);
      body.isFunction = false;
      body.role = node.roles[k] ?? "";
    });
  }
  for (const body of found.values()) {
    body.isOfGradient = found.has(/^(.+)_grad(_\d+)?$/.exec(body.name)?.[1] ?? "");
  }
  return found;
}

/** Whether an operation calls a function, or runs branches or a loop's body. */
export function runsBodies({ calls, runs }: Pick<Node, "calls" | "runs">): boolean {
  return Boolean(calls) || runs.length > 0;
}

/** What an operation is, in a word or two: its type, the function that it calls, what it decides. */
export function kindOf(node: Node): string {
  if (isFrame(node)) return decisionText(node);
  return node.calls ? SIGN + node.calls : node.type;
}

/** A scope's short name; a function's with a sign before it; what the body of a loop or branch is. */
export function scopeTitle(model: GraphModel, path: string): string {
  const scope = model.tree.get(path);
  if (scope?.group?.kind === "gradient") return gradientTitle(model, scope);
  const body = model.bodies.get(path);
  const variable = model.nodes.get(model.tree.idOf(path) ?? -1);
  return body?.role || (variable && variableTitle(variable)) || (body?.isFunction ? SIGN : "") + (scope?.name ?? shortName(path));
}

/** "gradient of fc0"; of a second one of the same, with its number. */
function gradientTitle(model: GraphModel, scope: Scope): string {
  const { title = "" } = scope.group ?? {};
  const of = forwardTitle(model, scope);
  if (of === null) return title;
  const number = title.replace(/^gradient\s*/, "");
  const isSecond = number !== "" && [...(scope.parent?.scopes.values() ?? [])].some((other) => (
    other !== scope && other.group?.kind === "gradient" && other.group.title !== title && forwardTitle(model, other) === of
  ));
  return `gradient of ${of}${isSecond ? `, ${number}` : ""}`;
}

/** The title of what stands beside a scope of gradients, and is what they are the gradients of; null where nothing is. */
function forwardTitle(model: GraphModel, scope: Scope): string | null {
  const id = firstForward(model, scope);
  if (id === null || !scope.parent) return null;
  let at: Scope | null = model.tree.homeOf(id);
  if (at === scope.parent) {
    const node = model.nodes.get(id);
    return node ? opTitle(node, () => model.assigned) : null;
  }
  while (at && at.parent !== scope.parent) at = at.parent;
  return at && at !== scope && at.group?.kind !== "gradient" ? scopeTitle(model, at.path) : null;
}

/** The first operation that something in a scope is the gradient of, by the names that `fs.gradients` makes. */
export function firstForward(model: GraphModel, scope: Scope): number | null {
  const stack = [scope];
  for (let at = stack.pop(); at; at = stack.pop()) {
    for (const op of at.ops) {
      const name = forwardName(model.nodes.get(op)?.name ?? "");
      const id = name === undefined ? undefined : model.tree.idOf(name);
      if (id !== undefined) return id;
    }
    stack.push(...[...at.scopes.values()].reverse());
  }
  return null;
}

/** The bodies that an operation calls or runs. */
export function bodiesBelow(model: GraphModel, node: Node | undefined): Body[] {
  const names = node ? [node.calls, ...node.runs] : [];
  return names.flatMap((name) => model.bodies.get(name) ?? []);
}

/** The first body that an operation calls or runs, as a box; null where there is none. */
export function calledBox(model: GraphModel, box: BoxId): BoxId | null {
  const [body] = bodiesBelow(model, model.nodes.get(opOf(box) ?? -1));
  return body ? scopeBox(body.name) : null;
}

/** What belongs to the selection without an edge: a body's calls, a call's body. */
export function relatedBoxes(
  model: GraphModel, selection: BoxId | null, endOf: (op: number) => BoxId,
): ReadonlySet<BoxId> {
  if (selection === null) return new Set();
  const below = bodiesBelow(model, model.nodes.get(opOf(selection) ?? -1)).map(({ name }) => scopeBox(name));
  const calls = model.bodies.get(pathOf(selection) ?? "")?.calls ?? [];
  return new Set([...below, ...calls.map(endOf)]);
}

/** Whether operations of a type make a variable. */
export function isVariableType(type: string): boolean {
  return /^(VarHandleOp|Variable(V2)?)$/.test(type);
}

/** Whether a scope holds one variable and what belongs to it: it has the variable's name, and is drawn as one. */
export function isVariableScope(model: GraphModel, path: string): boolean {
  const node = model.nodes.get(model.tree.idOf(path) ?? -1);
  return node !== undefined && isVariableType(node.type);
}
