/**
 * Finds scopes that are built alike: same op types, same sub-scopes, all the way down. Such scopes
 * get the same number, so that they can be drawn alike.
 */
import type { GraphModel } from "./graph.js";
import type { Scope } from "./scopes.js";

/** Scope path -> number of its family; scopes that are alone in their kind are left out. */
export function families(model: GraphModel): Map<string, number> {
  const members = new Map<string, string[]>();
  for (const [path, signature] of signatures(model)) {
    const known = members.get(signature);
    if (known) known.push(path);
    else members.set(signature, [path]);
  }
  const found = new Map<string, number>();
  let family = 0;
  for (const paths of members.values()) {
    if (paths.length < 2) continue;
    for (const path of paths) found.set(path, family);
    family += 1;
  }
  return found;
}

function signatures(model: GraphModel): Map<string, string> {
  const order: Scope[] = [];
  const stack: Scope[] = [model.tree.root];
  for (let scope = stack.pop(); scope; scope = stack.pop()) {
    order.push(scope);
    stack.push(...scope.scopes.values());
  }
  const numbers = new Map<string, string>();
  const found = new Map<string, string>();
  for (const scope of order.reverse()) {
    const parts = [...scope.ops].map((op) => model.nodes.get(op)?.type ?? "");
    for (const inner of scope.scopes.values()) parts.push(found.get(inner.path) ?? "");
    const long = parts.sort().join(",");
    // A short stand-in keeps signatures of deep trees short.
    const short = numbers.get(long) ?? `#${numbers.size}`;
    numbers.set(long, short);
    if (scope.parent && scope.size > 1) found.set(scope.path, short);
  }
  return found;
}
