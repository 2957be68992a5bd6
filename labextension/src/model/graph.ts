/** The graph as the kernel told it: applies snapshots and deltas and says what changed. */
import type { Delta, GraphChange, Node, RunState, SessionState, Snapshot } from "../wire/messages.js";
import { bodiesOf, type Body } from "./bodies.js";
import type { Lane } from "../rules/types.js";
import { entriesOf, shownBy, type Entry } from "./frames.js";
import { assignedOps, type Assigned } from "./naming.js";
import { Identities } from "./identities.js";
import { FoldedTree, type Told } from "./folded.js";
import { ScopeTree, type Tree } from "./scopes.js";
import { Signal } from "./signal.js";
import { Sizes } from "./sizes.js";
import { finish, SLICE, type Sliced } from "../wire/sliced.js";

export interface Change {
  /** The whole graph is new (a snapshot). */
  readonly fresh: boolean;
  /** Operations or placements changed. */
  readonly graph: boolean;
}

export class GraphModel {
  readonly changed = new Signal<Change>();
  name = "";
  session: SessionState | null = null;
  /** Where the running steps are; null where nothing was told of any. */
  run: RunState | null = null;
  control: Snapshot["control"] = "live";
  /** Of a recording: the tensors whose values it has. */
  history: Snapshot["history"] = null;
  /** Whether this is the graph as written, or the program as lowered. */
  level: Snapshot["level"] = "graph";
  protocol = 0;
  /** States that the kernel has not sent, because this view was busy with others. */
  skipped = 0;
  /** Of the program as lowered: what the step fetches that it is of. */
  fetches: readonly string[] = [];
  #nodes = new Map<number, Node>();
  readonly #folds: boolean;
  #tree = new ScopeTree();
  #folded = new FoldedTree();
  #identities = new Identities();
  #marked: ReadonlySet<number> = new Set();
  #consumers: Map<number, number[]> | null = null;
  #bodies: ReadonlyMap<string, Body> | null = null;
  #frames: ReadonlyMap<string, Node> | null = null;
  #lowered: ReadonlyMap<number, string> | null = null;
  #entries: ReadonlyMap<number, Entry> | null = null;
  #alwaysFor: ReadonlyMap<number, readonly number[]> | null = null;
  #assigned: Assigned | null = null;
  #sizes: Sizes | null = null;
  #version = 0;

  get nodes(): ReadonlyMap<number, Node> {
    return this.#nodes;
  }

  /** `folds`: whether the rules fold what repeats, belongs together, or is too much; else scopes are those of names. */
  constructor(folds = true) {
    this.#folds = folds;
  }

  /** Scopes and groups, as the rules have folded them. */
  get tree(): Tree {
    return this.#folds && this.#version > 0 ? this.#folded : this.#tree;
  }

  /** Where operations belong that are not the model's own, by id. */
  get lanes(): ReadonlyMap<number, Lane> {
    return this.#folded.lanes;
  }

  /** Operations that the latest cell has changed or added. */
  get marked(): ReadonlySet<number> {
    return this.#marked;
  }

  /** Grows with every change of operations or placements, on this side. */
  get version(): number {
    return this.#version;
  }

  /** The bodies of functions, loops and branches by name. */
  get bodies(): ReadonlyMap<string, Body> {
    this.#bodies ??= bodiesOf(this.#nodes.values());
    return this.#bodies;
  }

  /** Loops and branching operations by the path of the scope that shows them; for a loop made by hand its first Enter. */
  get frames(): ReadonlyMap<string, Node> {
    this.#frames ??= framesOf(this.#nodes.values());
    return this.#frames;
  }

  /** The path of the scope that shows a running loop; null where that is not there. */
  scopeOfLoop(loop: number): string | null {
    const node = this.#nodes.get(loop);
    if (node) return shownBy(node);
    this.#lowered ??= loweredLoops(this.frames);
    return this.#lowered.get(loop) ?? null;
  }

  /** What the parameters of loops and branches stand for, by id. */
  get entries(): ReadonlyMap<number, Entry> {
    this.#entries ??= entriesOf(this.frames.values(), this.#nodes);
    return this.#entries;
  }

  /** The branching operations for which alone an operation runs whichever branch is taken, by its id. */
  get alwaysFor(): ReadonlyMap<number, readonly number[]> {
    this.#alwaysFor ??= alwaysFor(this.#nodes.values());
    return this.#alwaysFor;
  }

  /** The operations whose value their line assigns to a variable. */
  get assigned(): Assigned {
    this.#assigned ??= assignedOps(this.#nodes);
    return this.#assigned;
  }

  /** Parameters, bytes and flops of boxes. */
  get sizes(): Sizes {
    this.#sizes ??= new Sizes(this);
    return this.#sizes;
  }

  applySnapshot(snapshot: Snapshot): void {
    finish(this.takeSnapshot(snapshot));
  }

  applyDelta(delta: Delta): void {
    finish(this.takeDelta(delta));
  }

  /** Takes up a snapshot in slices: until all is done, the model is as it was. */
  *takeSnapshot(snapshot: Snapshot): Sliced<void> {
    const identities = new Identities();
    const take = yield* this.#merged(NEW(), identities, snapshot.graph, snapshot.level);
    this.name = snapshot.graph_name;
    this.session = snapshot.session;
    this.control = snapshot.control;
    this.history = snapshot.history;
    this.level = snapshot.level;
    this.fetches = [];
    this.protocol = snapshot.protocol;
    this.#identities = identities;
    take();
    this.run = snapshot.run && identities.ofRun(snapshot.run);
    this.changed.emit({ fresh: true, graph: true });
  }

  /** Takes up a delta in slices: until all is done, the model is as it was. */
  *takeDelta(delta: Delta): Sliced<void> {
    const known: Known = { nodes: this.#nodes, tree: this.#tree, folded: this.#folded };
    const take = delta.graph && (yield* this.#merged(known, this.#identities, delta.graph, this.level));
    this.skipped += delta.skipped;
    if (delta.session) this.session = delta.session;
    take?.();
    if (delta.run) this.run = this.#identities.ofRun(delta.run);
    this.changed.emit({ fresh: false, graph: delta.graph !== null });
  }

  /** The number that an operation has here, by the one that it has in the kernel. */
  ownId(id: number): number {
    return this.#identities.of(id);
  }

  /** Ids of the operations that take an output of this one, or wait for it. */
  consumersOf(id: number): readonly number[] {
    this.#consumers ??= consumers(this.#nodes.values());
    return this.#consumers.get(id) ?? [];
  }

  /** What is known with a change; the answer makes it that of the model. */
  *#merged(known: Known, identities: Identities, told: GraphChange, level: Snapshot["level"]): Sliced<() => void> {
    // Of a new graph nothing is another's.
    const change = known.nodes.size === 0 ? told : identities.translate(told, (name) => known.tree.idOf(name));
    const { nodes, tree, became } = yield* mergedNodes(known, change);
    const isOther = known.folded === null || became.fresh.length > 0 || became.changed.size > 0 || became.isMoved;
    const folded = known.folded ?? new FoldedTree();
    const frames = framesOf(nodes.values());
    // Where a program is cut, the parts of devices stay as they are.
    const isFixed = (path: string): boolean => frames.has(path) || (path === "" && level === "partitions");
    const follow = this.#folds && isOther ? yield* folded.follow({ nodes, names: tree, isFixed }, became) : null;
    return () => {
      this.#nodes = nodes;
      this.#tree = tree;
      this.#folded = folded;
      follow?.();
      this.#marked = new Set(change.marked);
      if (change.fetches.length > 0) this.fetches = change.fetches;
      this.#consumers = null;
      this.#bodies = null;
      this.#frames = frames;
      this.#lowered = null;
      this.#entries = null;
      this.#alwaysFor = null;
      this.#assigned = null;
      this.#sizes = null;
      this.#version += 1;
    };
  }
}

/** What a change is merged into. */
interface Known {
  readonly nodes: ReadonlyMap<number, Node>;
  readonly tree: ScopeTree;
  /** Null where nothing was folded. */
  readonly folded: FoldedTree | null;
}

const NEW = (): Known => ({ nodes: new Map(), tree: new ScopeTree(), folded: null });

/** The nodes with a change, where they lie, and what became of them. Scopes of names are added to the tree as it is. */
function* mergedNodes(
  before: Known, { added, changed, removed, placed }: GraphChange,
): Sliced<{ nodes: Map<number, Node>; tree: ScopeTree; became: Told }> {
  const nodes = new Map(before.nodes);
  const isKnown = ({ id }: Node): boolean => before.nodes.has(id);
  const known = before.nodes.size > 0 ? [...added.filter(isKnown), ...changed.filter(isKnown)] : [];
  const fresh = before.nodes.size > 0 ? added.filter((node) => !isKnown(node)) : added;
  const hasMoved = removed.length > 0 || known.some((node) => standsElsewhere(node, nodes.get(node.id)));
  const isMoved = hasMoved || known.some((node) => isWiredAnew(node, nodes.get(node.id)));
  for (const node of known) nodes.set(node.id, node);
  for (const id of removed) nodes.delete(id);
  yield;
  // Operations leave seldom: the tree is made anew then, and scopes that are empty are gone.
  const tree = hasMoved ? yield* planted(nodes.values(), new ScopeTree()) : before.tree;
  yield* planted(fresh, tree, nodes);
  yield* place(nodes, placed);
  return { nodes, tree, became: { fresh, changed: new Set(known.map(({ id }) => id)), isMoved } };
}

/** Adds operations to a tree, and to a table. */
function* planted(nodes: Iterable<Node>, tree: ScopeTree, table: Map<number, Node> | null = null): Sliced<ScopeTree> {
  let count = 0;
  for (const node of nodes) {
    table?.set(node.id, node);
    tree.add(node);
    if (++count % SLICE === 0) yield;
  }
  return tree;
}

/** Says of operations where they were placed. */
function* place(nodes: Map<number, Node>, placed: GraphChange["placed"]): Sliced<void> {
  let count = 0;
  for (const [id, device] of placed) {
    const node = nodes.get(id);
    if (node) nodes.set(id, { ...node, placed: device });
    if (++count % SLICE === 0) yield;
  }
}

/** Whether an operation stands elsewhere than before. */
function standsElsewhere({ name, body, scope, runs }: Node, before: Node | undefined): boolean {
  return before?.name !== name || before.body !== body || before.scope !== scope || before.runs.join() !== runs.join();
}

/** Whether an operation takes something else than before, or shows another loop. */
function isWiredAnew(node: Node, before: Node | undefined): boolean {
  return !before || String(node.inputs) !== String(before.inputs) || node.type !== before.type || shownBy(node) !== shownBy(before);
}

function framesOf(nodes: Iterable<Node>): Map<string, Node> {
  const found = new Map<string, Node>();
  for (const node of nodes) {
    const path = shownBy(node);
    if (path !== null && (node.frame === "" || !found.has(path))) found.set(path, node);
  }
  return found;
}

/** Of the program as lowered: the scopes of the loops that its frames were made of, by the loops' ids. */
function loweredLoops(frames: ReadonlyMap<string, Node>): Map<number, string> {
  return new Map([...frames].flatMap(([path, { made_from: sources }]) => sources.map(({ id }): [number, string] => [id, path])));
}

function alwaysFor(nodes: Iterable<Node>): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const { id, always_runs: ops } of nodes) {
    for (const op of ops) found.set(op, [...(found.get(op) ?? []), id]);
  }
  return found;
}

function consumers(nodes: Iterable<Node>): Map<number, number[]> {
  const found = new Map<number, Set<number>>();
  const note = (producer: number, consumer: number): void => {
    const known = found.get(producer);
    if (known) known.add(consumer);
    else found.set(producer, new Set([consumer]));
  };
  for (const node of nodes) {
    for (const [producer] of node.inputs) note(producer, node.id);
    for (const producer of node.control) note(producer, node.id);
  }
  return new Map([...found].map(([id, ids]) => [id, [...ids]]));
}
