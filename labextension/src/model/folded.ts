/**
 * The tree that views show: the scopes of names, in which the rules have folded what repeats, belongs together, or is too
 * much for one level. It follows the graph: levels that did not change are kept. Work on it can be done in slices; until it is
 * taken up, the tree is the one before.
 */
import { lanesOf } from "../rules/lanes.js";
import type { Lane } from "../rules/types.js";
import type { Node } from "../wire/messages.js";
import { finish, SLICE, type Sliced } from "../wire/sliced.js";
import { Folding } from "./folding.js";
import { DEEPEST, dissolvedScopes } from "./gradients.js";
import { Items } from "./items.js";
import { constantsOf } from "./sizes.js";
import { isPlace, Places, type Done, type Place } from "./places.js";
import { shortName, type ScopeNode, type ScopeTree, type Tree } from "./scopes.js";

/** What became of a graph since it was folded. */
export interface Told {
  /** Operations that were not there. */
  readonly fresh: readonly Node[];
  /** Operations that are others than they were, but stand where they stood, and take what they took. */
  readonly changed: ReadonlySet<number>;
  /** Whether operations have left, or moved, or take something else. */
  readonly isMoved: boolean;
}

/** The graph that is folded. */
export interface Graph {
  readonly nodes: ReadonlyMap<number, Node>;
  readonly names: ScopeTree;
  /** Which scopes of names stay as they are: the frames of loops and branches. */
  readonly isFixed: (path: string) => boolean;
}

/** What a graph was folded to, until the tree takes it up. */
interface Folded extends Graph {
  readonly lanes: ReadonlyMap<number, Lane>;
  readonly constants: ReadonlyMap<number, boolean>;
  readonly optimizer: string;
  readonly places: Places;
}

export class FoldedTree implements Tree {
  readonly #items = new Items();
  #now: Folded | null = null;
  #root: ScopeNode | null = null;
  readonly #byPath = new Map<string, ScopeNode>();
  /** By an operation's id. */
  readonly #home: (ScopeNode | undefined)[] = [];
  /** How many scopes are built alike, by what they are built like. */
  readonly #alike = new Map<number, number>();
  /** What was taken out of places that are to be folded anew. */
  #dropped = new Set<ScopeNode>();

  get root(): ScopeNode {
    if (!this.#root) throw new Error("folded: no graph yet");
    return this.#root;
  }

  /** Where operations belong that are not the model's own. */
  get lanes(): ReadonlyMap<number, Lane> {
    return this.#now?.lanes ?? NO_LANES;
  }

  /**
   * Takes up a graph; `told` is what became of it since the one before. Levels that it does not touch stay as they are. The
   * answer makes the tree that of the graph.
   */
  *follow(graph: Graph, told: Told): Sliced<() => void> {
    const before = this.#now;
    const lanes = yield* lanesOf(graph.nodes);
    const optimizer = optimizerOf(graph.nodes.values());
    this.#dropped = new Set();
    const touched = new Set([...told.changed, ...told.fresh.map(({ id }) => id)]);
    for (const id of before ? otherLanes(before, lanes, optimizer) : []) touched.add(id);
    yield;
    const isKept = before !== null && !told.isMoved && before.places.add(told.fresh, graph.nodes);
    const places = isKept ? before.places : yield* this.#replaced(graph, before, touched);
    if (before) for (const id of touched) this.#undo(places.homeOf(id) ?? null);
    const folded: Folded = { ...graph, lanes, constants: constantsOf(graph.nodes), optimizer, places };
    const made = yield* this.#build(folded);
    // Nobody sees a tree that is new.
    if (!before) yield* this.#take(folded, made, false);
    return () => before && finish(this.#take(folded, made, told.isMoved));
  }

  /** Makes the places anew; what was made of those that are as they were stays. */
  *#replaced({ nodes, names, isFixed }: Graph, old: Folded | null, touched: ReadonlySet<number>): Sliced<Places> {
    const places = new Places(names, old?.places ?? null);
    yield* places.fill(nodes);
    if (!old) return places;
    const before = new Map(old.places.ordered().map((place) => [place.scope.path, place]));
    for (const place of places.ordered().reverse()) {
      const known = before.get(place.scope.path);
      if (!known?.done || known.done.isFixed !== isFixed(place.scope.path) || !isAsBefore(places, place, known, touched)) continue;
      place.done = known.done;
      before.delete(place.scope.path);
    }
    for (const { done } of before.values()) if (done) this.#drop(done);
    return places;
  }

  /** Takes back what was made of a place, and of those around it. */
  #undo(place: Place | null): void {
    for (let at = place; at; at = at.above) {
      if (at.done) this.#drop(at.done);
      at.done = at.items = null;
    }
  }

  #drop({ own }: Done): void {
    for (const scope of own) this.#dropped.add(scope);
  }

  /** Folds places from the innermost outwards; returns the scopes that were made. */
  *#build(folded: Folded): Sliced<readonly ScopeNode[]> {
    const isTaken = (path: string): boolean => {
      const known = this.#byPath.get(path);
      return known !== undefined && !this.#dropped.has(known);
    };
    const { places, names, isFixed } = folded;
    const dissolved = dissolvedScopes(places, (name) => names.idOf(name), isFixed);
    for (const place of places.ordered(({ depth }) => depth <= DEEPEST)) {
      if (place.done && place.done.dissolved !== (dissolved.get(place)?.scope.path ?? null)) this.#undo(place);
    }
    const folding = new Folding({ ...folded, items: this.#items, isTaken, dissolved });
    for (const place of folded.places.ordered(({ done }) => done === null).reverse()) {
      place.done = yield* folding.fold(place);
      yield;
    }
    return folding.made;
  }

  /** From now on the tree is that of another graph. */
  *#take(folded: Folded, made: readonly ScopeNode[], isMoved: boolean): Sliced<void> {
    let count = 0;
    for (const scope of this.#dropped) {
      this.#alike.set(scope.hash, (this.#alike.get(scope.hash) ?? 1) - 1);
      this.#byPath.delete(scope.path);
    }
    this.#dropped = new Set();
    if (isMoved) this.#home.forEach((_, id) => !folded.nodes.has(id) && delete this.#home[id]);
    for (const scope of made) {
      this.#byPath.set(scope.path, scope);
      this.#alike.set(scope.hash, (this.#alike.get(scope.hash) ?? 0) + 1);
      for (const inner of scope.scopes.values()) inner.parent = scope;
      for (const id of scope.ops) this.#home[id] = scope;
      if (++count % SLICE === 0) yield;
    }
    for (const scope of this.#byPath.values()) {
      scope.likeness = this.#likeness(scope);
      if (++count % SLICE === 0) yield;
    }
    this.#now = folded;
    this.#root = folded.places.root.done?.shown ?? null;
    if (this.#root) this.#root.parent = null;
  }

  /** Says of scopes of some size that are built alike that they are. */
  #likeness({ group, size, hash }: ScopeNode): number {
    const isOne = group?.kind === "stack" || group?.kind === "fan" || group?.kind === "more";
    return size > 1 && !isOne && (this.#alike.get(hash) ?? 0) > 1 ? (hash >>> 1) || 1 : 0;
  }

  get(path: string): ScopeNode | undefined {
    return this.#byPath.get(path);
  }

  homeOf(id: number): ScopeNode {
    const home = this.#home[id];
    if (!home) throw new Error(`scopes: no operation with id ${id}`);
    return home;
  }

  idOf(name: string): number | undefined {
    const id = this.#now?.names.idOf(name);
    // Names of what is to be taken up are known before.
    return id !== undefined && this.#home[id] ? id : undefined;
  }

  ancestry(path: string): string[] {
    const way: string[] = [];
    for (let scope = this.#byPath.get(path); scope?.parent; scope = scope.parent) way.push(scope.path);
    return way.reverse();
  }
}

const NO_LANES: ReadonlyMap<number, Lane> = new Map();

/** Operations that belong elsewhere now; all where the optimizer has another name. */
function otherLanes({ lanes: before, optimizer: known, nodes }: Folded, lanes: ReadonlyMap<number, Lane>, optimizer: string): Iterable<number> {
  if (optimizer !== known) return nodes.keys();
  const found: number[] = [];
  for (const [id, lane] of lanes) if (before.get(id) !== lane) found.push(id);
  for (const id of before.keys()) if (!lanes.has(id)) found.push(id);
  return found;
}

function isAsBefore(places: Places, place: Place, old: Place, touched: ReadonlySet<number>): boolean {
  const [items, others] = [places.itemsOf(place), old.items ?? []];
  if (items.length !== others.length || place.wires.length !== old.wires.length) return false;
  const isSame = items.every((item, k) => {
    const other = others[k]!;
    if (isPlace(item)) return isPlace(other) && item.done !== null && item.number === other.number;
    return !isPlace(other) && item.id === other.id && !touched.has(item.id);
  });
  return isSame && place.wires.every((end, k) => end === old.wires[k]);
}

/** The name of the update group that most variables belong to: "Adam". */
function optimizerOf(nodes: Iterable<Node>): string {
  const counts = new Map<string, number>();
  for (const { attributes: { group } } of nodes) if (group) counts.set(group, (counts.get(group) ?? 0) + 1);
  const [best] = [...counts].sort((a, b) => b[1] - a[1]);
  return best ? shortName(best[0]) : "";
}
