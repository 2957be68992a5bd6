/**
 * The tree of scopes that the "/"-separated names span. An op named "a/b/c" lies in "a/b"; an op
 * that has the name of a scope lies inside that scope, so both show as one box. What stands in a
 * function's body lies in that, whatever its name. A loop or a branching op is a scope of its own, the
 * one that was made for it where there is one, and the bodies that it runs lie inside. Of what runs in a
 * loop that was made by hand the kernel says where it lies.
 */
import type { Group, Lane } from "../rules/types.js";
import type { Node } from "../wire/messages.js";

export interface Scope {
  /** Full path; "" for the root. */
  readonly path: string;
  /** Last part of the path. */
  readonly name: string;
  parent: Scope | null;
  readonly scopes: ReadonlyMap<string, Scope>;
  /** Ids of the ops that lie directly here. */
  readonly ops: ReadonlySet<number>;
  /** Ops here and in all scopes below. */
  size: number;
  /** What the rules have made this scope of; null where names span it. */
  group: Group | null;
  /** Where on the stage it belongs. */
  lane: Lane;
  /** Of scopes that are built alike the same number, whatever else the graph holds; 0 where it is alone in its kind. */
  likeness: number;
}

/** Scopes and what lies in them, as views show them. */
export interface Tree {
  readonly root: Scope;
  get(path: string): Scope | undefined;
  /** The scope in which an op lies. Throws for an unknown id. */
  homeOf(id: number): Scope;
  idOf(name: string): number | undefined;
  /** The paths of the scopes around a scope, outermost first, and its own; [] for the root. */
  ancestry(path: string): string[];
}

export class ScopeTree implements Tree {
  readonly root: ScopeNode = new ScopeNode("", null);
  readonly #byPath = new Map<string, ScopeNode>([["", this.root]]);
  /** By an op's id. */
  readonly #home: (ScopeNode | undefined)[] = [];
  readonly #idByName = new Map<string, number>();

  add(node: Node): void {
    const home = this.#homeFor(node);
    this.#idByName.set(node.name, node.id);
    this.#home[node.id] = home;
    home.addOp(node.id);
    for (let scope: Scope | null = home; scope; scope = scope.parent) scope.size += 1;
  }

  get(path: string): Scope | undefined {
    return this.#byPath.get(path);
  }

  /** The scope in which an op lies. Throws for an unknown id. */
  homeOf(id: number): ScopeNode {
    const home = this.#home[id];
    if (!home) throw new Error(`scopes: no operation with id ${id}`);
    return home;
  }

  idOf(name: string): number | undefined {
    return this.#idByName.get(name);
  }

  /** The paths of the scopes around a scope, outermost first, and its own; [] for the root. */
  ancestry(path: string): string[] {
    const way: string[] = [];
    for (let scope = this.#byPath.get(path); scope?.parent; scope = scope.parent) way.push(scope.path);
    return way.reverse();
  }

  #homeFor(node: Node): ScopeNode {
    const body = node.scope ? this.#ensure(node.scope) : leavesBody(node) ? this.#ensure(node.body) : null;
    if (node.runs.length === 0) return body ?? this.#byPath.get(node.name) ?? this.#ensure(parentPath(node.name));
    const path = framePath(node);
    const home = this.#byPath.get(path) ?? this.#create(path, body ?? this.#ensure(parentPath(path)));
    if (node.scope && body) this.#nest(home, body);
    for (const name of node.runs) this.#nest(this.#ensure(name), home);
    return home;
  }

  /** Moves a body into the scope of the operation that runs it. */
  #nest(body: ScopeNode, home: ScopeNode): void {
    for (let at: ScopeNode | null = home; at; at = at.parent) if (at === body) return;
    const before = body.parent;
    if (before === home || !before) return;
    before.remove(body);
    home.adopt(body);
    for (let at: ScopeNode | null = home; at; at = at.parent) at.size += body.size;
    for (let at: ScopeNode | null = before; at; at = at.parent) at.size -= body.size;
    this.#prune(before);
  }

  /** Takes away scopes that nothing lies in any more. */
  #prune(scope: ScopeNode): void {
    for (let at = scope; at.parent && at.ops.size === 0 && at.scopes.size === 0; at = at.parent) {
      at.parent.remove(at);
      this.#byPath.delete(at.path);
    }
  }

  #ensure(path: string): ScopeNode {
    let scope = this.#byPath.get(path);
    if (scope) return scope;
    scope = this.root;
    let end = 0;
    while (scope.path !== path) {
      const slash = path.indexOf("/", end);
      const upTo = slash < 0 ? path.length : slash;
      const part = path.slice(0, upTo);
      end = upTo + 1;
      scope = this.#byPath.get(part) ?? this.#create(part, scope);
    }
    return scope;
  }

  #create(path: string, parent: ScopeNode): ScopeNode {
    const scope = new ScopeNode(path, parent);
    this.#byPath.set(path, scope);
    parent.adopt(scope);
    const id = this.#idByName.get(path);
    // An op that already has the new scope's name moves into it.
    if (id !== undefined && parent.takeOp(id)) {
      scope.addOp(id);
      scope.size += 1;
      this.#home[id] = scope;
    }
    return scope;
  }
}

const NO_SCOPES: ReadonlyMap<string, ScopeNode> = new Map();
const NO_OPS: ReadonlySet<number> = new Set();

/** A scope that can be filled. Most have few ops and no scopes, and no tables for what they have not. */
export class ScopeNode implements Scope {
  readonly path: string;
  readonly name: string;
  parent: ScopeNode | null;
  size = 0;
  group: Group | null = null;
  lane: Lane = "model";
  likeness = 0;
  /** What it is built like, as a number. */
  hash = 0;
  #scopes: Map<string, ScopeNode> | null = null;
  #ops: Set<number> | null = null;

  constructor(path: string, parent: ScopeNode | null, name = shortName(path)) {
    this.path = path;
    this.parent = parent;
    this.name = name;
  }

  get scopes(): ReadonlyMap<string, ScopeNode> {
    return this.#scopes ?? NO_SCOPES;
  }

  get ops(): ReadonlySet<number> {
    return this.#ops ?? NO_OPS;
  }

  adopt(inner: ScopeNode): void {
    inner.parent = this;
    this.hold(inner);
  }

  /** Has a scope inside, whose parent is another until the tree is taken up. */
  hold(inner: ScopeNode): void {
    (this.#scopes ??= new Map()).set(inner.path, inner);
  }

  remove(inner: ScopeNode): void {
    this.#scopes?.delete(inner.path);
  }

  addOp(id: number): void {
    (this.#ops ??= new Set()).add(id);
  }

  /** Takes an op out; whether it was here. */
  takeOp(id: number): boolean {
    return this.#ops?.delete(id) ?? false;
  }
}

/**
 * The path of the scope that shows a loop or a branching op with its bodies: "while" of an op "while/Loop"
 * whose bodies are named "while/...", else the op's own name.
 */
export function framePath({ name, type, body, runs }: Pick<Node, "name" | "type" | "body" | "runs">): string {
  const scope = parentPath(name);
  const isMadeForIt = name === `${scope}/${type}` && scope !== body && runs.every((one) => one.startsWith(`${scope}/`));
  return isMadeForIt && (!body || scope.startsWith(`${body}/`)) ? scope : name;
}

/** Whether the name leads out of the body that the op stands in; it shows there all the same. */
function leavesBody({ name, body }: Node): boolean {
  return Boolean(body) && !name.startsWith(`${body}/`);
}

/** What an op is called where it stands. */
export function titleOf(node: Node): string {
  return !node.scope && leavesBody(node) ? node.name : shortName(node.name);
}

/** "a/b/c" -> "a/b"; "c" -> "". */
export function parentPath(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

/** "a/b/c" -> "c". */
export function shortName(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}
