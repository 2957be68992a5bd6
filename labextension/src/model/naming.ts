/** What boxes are called: by the user's names; where the user gave none, by the Python variable that the line assigns. Pure. */
import { isDefaultName } from "../rules/labels.js";
import type { Node, Origin } from "../wire/messages.js";
import { isVariableType } from "./bodies.js";
import { shortName, titleOf } from "./scopes.js";

/**
 * The operations whose value their line assigns to a variable: what the line makes on the way there has no name of it. Of
 * several of one type none has, for it would not tell them apart.
 */
export type Assigned = ReadonlySet<number>;

export function assignedOps(nodes: ReadonlyMap<number, Node>): Assigned {
  const last = new Map<string, Set<number>>();
  const types = new Map<string, number>();
  for (const { id, origin, type } of nodes.values()) {
    // A constant of a line is mostly an argument of what the line makes.
    if (!origin?.variable || /^(Const|Parameter)$/.test(type)) continue;
    const ops = last.get(lineOf(origin));
    types.set(typeOnLine({ origin, type }), (types.get(typeOnLine({ origin, type })) ?? 0) + 1);
    if (ops) ops.add(id);
    else last.set(lineOf(origin), new Set([id]));
  }
  for (const { origin, inputs } of nodes.values()) {
    const ops = origin?.variable ? last.get(lineOf(origin)) : undefined;
    if (ops) for (const [producer] of inputs) ops.delete(producer);
  }
  const isRepeated = (id: number): boolean => (types.get(typeOnLine(nodes.get(id))) ?? 0) > 1;
  return new Set([...last.values()].flatMap((ops) => (ops.size === 1 ? [...ops] : [])).filter((id) => !isRepeated(id)));
}

function lineOf({ file, cell, line, variable }: Origin): string {
  return `${cell ?? file}:${line}:${variable}`;
}

function typeOnLine(node: Pick<Node, "origin" | "type"> | undefined): string {
  return node?.origin ? `${lineOf(node.origin)}:${node.type}` : "";
}

/** What an operation is called where it stands. */
export function opTitle(node: Node, assigned: () => Assigned): string {
  return variableTitle(node) ?? (isNamedByLine(node, assigned) ? node.origin?.variable : undefined) ?? titleOf(node);
}

/** Of what is fed or lives from step to step, and has no name of the user's: the Python variable; else undefined. */
export function variableTitle({ name, type, origin }: Node): string | undefined {
  const isOwn = isVariableType(type) || type.startsWith("Placeholder");
  return isOwn && origin?.variable && isDefaultName(shortName(name), type) ? origin.variable : undefined;
}

function isNamedByLine({ id, name, type, origin, body }: Node, assigned: () => Assigned): boolean {
  // Notebooks saved by an older version know of no variable.
  if (!origin?.variable || origin.variable.length < 2 || !isDefaultName(shortName(name), type)) return false;
  return body === "" && assigned().has(id);
}
