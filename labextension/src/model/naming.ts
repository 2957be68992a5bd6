/** What boxes are called: by the user's names; where the user gave none, by the Python variable that the line assigns. Pure. */
import { isDefaultName } from "../rules/labels.js";
import type { Node, Origin } from "../wire/messages.js";
import { isVariableType } from "./bodies.js";
import { shortName, titleOf } from "./scopes.js";

/** Lines that made an operation of a type more than once, as in a loop: their variable does not tell these apart. */
export type Repeated = ReadonlyMap<Origin, ReadonlySet<string>>;

export function repeatedLines(nodes: Iterable<Node>): Repeated {
  const once = new Map<Origin, Set<string>>();
  const again = new Map<Origin, Set<string>>();
  for (const { origin, type } of nodes) {
    if (!origin?.variable) continue;
    const seen = once.get(origin) ?? new Set();
    once.set(origin, seen);
    if (!seen.has(type)) seen.add(type);
    else again.set(origin, (again.get(origin) ?? new Set()).add(type));
  }
  return again;
}

/** What an operation is called where it stands. */
export function opTitle(node: Node, repeated: () => Repeated): string {
  return variableTitle(node) ?? (isNamedByLine(node, repeated) ? node.origin?.variable : undefined) ?? titleOf(node);
}

/** Of what is fed or lives from step to step, and has no name of the user's: the Python variable; else undefined. */
export function variableTitle({ name, type, origin }: Node): string | undefined {
  const isOwn = isVariableType(type) || type.startsWith("Placeholder");
  return isOwn && origin?.variable && isDefaultName(shortName(name), type) ? origin.variable : undefined;
}

function isNamedByLine({ name, type, origin, body }: Node, repeated: () => Repeated): boolean {
  // Notebooks saved by an older version know of no variable.
  if (!origin?.variable || origin.variable.length < 2 || !isDefaultName(shortName(name), type)) return false;
  // A constant of a line is mostly an argument of what the line makes.
  return !/^(Const|Parameter)$/.test(type) && body === "" && !repeated().get(origin)?.has(type);
}
