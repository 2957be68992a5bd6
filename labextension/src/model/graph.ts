/** The graph as the kernel told it: applies snapshots and deltas and says what changed. */
import type { Delta, GraphChange, Node, RunState, SessionState, Snapshot } from "../wire/messages.js";
import { bodiesOf, type Body } from "./bodies.js";
import type { Lane } from "../rules/types.js";
import { entriesOf, shownBy, type Entry } from "./frames.js";
import { Identities } from "./identities.js";
import { FoldedTree, type Told } from "./folded.js";
import { ScopeTree, type Tree } from "./scopes.js";
import { Signal } from "./signal.js";

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
  #folded: FoldedTree | null = null;
  /** What became of the graph since it was folded. */
  #told: Told | null = null;
  #identities = new Identities();
  #marked: ReadonlySet<number> = new Set();
  #consumers: Map<number, number[]> | null = null;
  #bodies: ReadonlyMap<string, Body> | null = null;
  #frames: ReadonlyMap<string, Node> | null = null;
  #lowered: ReadonlyMap<number, string> | null = null;
  #entries: ReadonlyMap<number, Entry> | null = null;
  #alwaysFor: ReadonlyMap<number, readonly number[]> | null = null;
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
    return this.#folds ? this.#fold() : this.#tree;
  }

  /** Where operations belong that are not the model's own, by id. */
  get lanes(): ReadonlyMap<number, Lane> {
    return this.#folds ? this.#fold().lanes : NO_LANES;
  }

  #fold(): FoldedTree {
    if (!this.#folded) this.#folded = new FoldedTree(this.#nodes, this.#tree, (path) => this.frames.has(path));
    else if (this.#told) this.#folded.follow(this.#tree, this.#told);
    this.#told = null;
    return this.#folded;
  }

  /** Operations that the latest re-run of a cell has changed or added. */
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

  applySnapshot(snapshot: Snapshot): void {
    this.name = snapshot.graph_name;
    this.session = snapshot.session;
    this.control = snapshot.control;
    this.level = snapshot.level;
    this.fetches = [];
    this.protocol = snapshot.protocol;
    this.#nodes = new Map();
    this.#tree = new ScopeTree();
    this.#folded = null;
    this.#identities = new Identities();
    this.#merge(snapshot.graph);
    this.run = snapshot.run && this.#identities.ofRun(snapshot.run);
    this.changed.emit({ fresh: true, graph: true });
  }

  applyDelta(delta: Delta): void {
    this.skipped += delta.skipped;
    if (delta.session) this.session = delta.session;
    if (delta.graph) this.#merge(delta.graph);
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

  #merge(told: GraphChange): void {
    const change = this.#identities.translate(told, (name) => this.#tree.idOf(name));
    const known = [...change.added, ...change.changed].filter(({ id }) => this.#nodes.has(id));
    const moves = known.some(({ id, name, body, scope, runs }) => {
      const before = this.#nodes.get(id);
      return before?.name !== name || before.body !== body || before.scope !== scope || before.runs.join() !== runs.join();
    });
    const fresh = change.added.filter(({ id }) => !this.#nodes.has(id));
    this.#note(fresh, known, moves || change.removed.length > 0);
    for (const node of known) this.#nodes.set(node.id, node);
    for (const id of change.removed) this.#nodes.delete(id);
    if (moves || change.removed.length > 0) this.#replant();
    for (const node of fresh) {
      this.#nodes.set(node.id, node);
      this.#tree.add(node);
    }
    for (const [id, placed] of change.placed) {
      const node = this.#nodes.get(id);
      if (node) this.#nodes.set(id, { ...node, placed });
    }
    this.#marked = new Set(change.marked);
    if (change.fetches.length > 0) this.fetches = change.fetches;
    this.#consumers = null;
    this.#bodies = null;
    this.#frames = null;
    this.#lowered = null;
    this.#entries = null;
    this.#alwaysFor = null;
    this.#version += 1;
  }

  /** Keeps in mind what the fold has to follow. */
  #note(fresh: readonly Node[], known: readonly Node[], isMoved: boolean): void {
    if (!this.#folded) return;
    this.#told ??= { fresh: [], changed: new Set(), isMoved: false };
    this.#told.fresh.push(...fresh);
    this.#told.isMoved ||= isMoved || known.some((node) => isWiredAnew(node, this.#nodes.get(node.id)));
    for (const { id } of known) this.#told.changed.add(id);
  }

  /** Operations leave seldom: the tree is made anew then, and scopes that are empty are gone. */
  #replant(): void {
    this.#tree = new ScopeTree();
    for (const node of this.#nodes.values()) this.#tree.add(node);
  }
}

/** Whether an operation takes something else than before, or shows another loop. */
function isWiredAnew(node: Node, before: Node | undefined): boolean {
  return !before || String(node.inputs) !== String(before.inputs) || node.type !== before.type || shownBy(node) !== shownBy(before);
}

const NO_LANES: ReadonlyMap<number, Lane> = new Map();

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
