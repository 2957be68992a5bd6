/** Scopes of names as places that are folded: what lies in each, and how that is wired. Kept when operations are added. */
import type { Known } from "./items.js";
import type { Node } from "../wire/messages.js";
import { SLICE, type Sliced } from "../wire/sliced.js";
import { shownBy } from "./frames.js";
import type { Scope, ScopeNode, ScopeTree } from "./scopes.js";

/** What the fold has made of a place. */
export interface Done {
  readonly known: Known;
  /** The scope that stands for it, and all that the fold has made inside, but not what lies in other places. */
  readonly shown: ScopeNode;
  readonly own: readonly ScopeNode[];
  /** Whether it stayed as it was, as a frame of a loop or a branch. */
  readonly isFixed: boolean;
  /** Where what lies in it stands instead: the path of that place; null where it stands where it is. */
  readonly dissolved: string | null;
}

export interface Place {
  readonly scope: Scope;
  readonly above: Place | null;
  readonly depth: number;
  /** What the wires above call it; below 0, as no operation's id is. */
  readonly number: number;
  /** From, to, from, to ...: ids of operations and numbers of places. */
  readonly wires: number[];
  /** Null where it is not known now. */
  items: readonly Item[] | null;
  /** Null where it is to be folded. */
  done: Done | null;
}

export type Item = Node | Place;
export const isPlace = (item: Item): item is Place => (item as Partial<Place>).wires !== undefined;

export class Places {
  readonly root: Place;
  readonly #names: ScopeTree;
  #nodes: ReadonlyMap<number, Node> = new Map();
  readonly #of = new Map<Scope, Place>();
  /** By an operation's id. */
  readonly #home: (Place | undefined)[] = [];
  /** Operations that others take from, but that are not there. */
  readonly #missing = new Set<number>();
  readonly #numbers: Map<string, number>;

  /** A place has the number that the place of its path had in `before`; places are filled before they are used. */
  constructor(names: ScopeTree, before: Places | null) {
    this.#names = names;
    this.#numbers = before ? before.#numbers : new Map<string, number>();
    this.root = this.#make(names.root, null);
  }

  *fill(nodes: ReadonlyMap<number, Node>): Sliced<void> {
    this.#nodes = nodes;
    let count = 0;
    const order = [this.root];
    for (const place of order) {
      for (const item of this.itemsOf(place)) {
        if (isPlace(item)) order.push(item);
        else this.#home[item.id] = place;
      }
      if (++count % SLICE === 0) yield;
    }
    for (const node of nodes.values()) {
      this.#wire(node);
      if (++count % SLICE === 0) yield;
    }
  }

  homeOf(id: number): Place | undefined {
    return this.#home[id];
  }

  nodeOf(id: number): Node | undefined {
    return this.#nodes.get(id);
  }

  itemsOf(place: Place): readonly Item[] {
    if (place.items) return place.items;
    const found: Item[] = [];
    for (const id of place.scope.ops) {
      const node = this.#nodes.get(id);
      if (node) found.push(node);
    }
    for (const inner of place.scope.scopes.values()) found.push(this.#of.get(inner) ?? this.#make(inner, place));
    return (place.items = found);
  }

  /** Places that `isSought` takes with those around them, outermost first. */
  ordered(isSought: (place: Place) => boolean = () => true): Place[] {
    const order = isSought(this.root) ? [this.root] : [];
    for (const place of order) for (const item of this.itemsOf(place)) if (isPlace(item) && isSought(item)) order.push(item);
    return order;
  }

  /** Takes up operations that were not there; false where others have moved by that, so that all is to be made anew. */
  add(fresh: readonly Node[], nodes: ReadonlyMap<number, Node>): boolean {
    this.#nodes = nodes;
    for (const node of fresh) {
      if (this.#missing.has(node.id) || shownBy(node) !== null) return false;
      const place = this.#ensure(this.#names.homeOf(node.id));
      if (!place) return false;
      this.#home[node.id] = place;
    }
    for (const node of fresh) this.#wire(node);
    return true;
  }

  /** The place of a scope; null where an operation that stood beside it lies in it now. */
  #ensure(scope: Scope): Place | null {
    const known = this.#of.get(scope);
    if (known || !scope.parent) return known ?? null;
    const named = this.#names.idOf(scope.path);
    const above = this.#ensure(scope.parent);
    return !above || (named !== undefined && this.#home[named] !== undefined) ? null : this.#make(scope, above);
  }

  #make(scope: Scope, above: Place | null): Place {
    let number = this.#numbers.get(scope.path);
    if (number === undefined) this.#numbers.set(scope.path, number = -1 - this.#numbers.size);
    const place: Place = { scope, above, depth: above ? above.depth + 1 : 0, number, wires: [], items: null, done: null };
    this.#of.set(scope, place);
    return place;
  }

  /** Brings each edge to the level where its ends part. */
  #wire(to: Node): void {
    const home = this.#home[to.id];
    if (!home) return;
    for (const [id] of to.inputs) {
      const from = this.#nodes.get(id);
      const source = this.#home[id];
      if (!from || !source) this.#missing.add(id);
      // What returns to a loop made by hand is no edge of the level's own direction.
      else if (from !== to && from.type !== "NextIteration") join(id, source, to.id, home);
    }
  }
}

function join(from: number, source: Place, to: number, home: Place): void {
  let [a, b, above, beside] = [from, to, source, home];
  while (above !== beside) {
    if (above.depth >= beside.depth && above.above) [a, above] = [above.number, above.above];
    else if (beside.above) [b, beside] = [beside.number, beside.above];
    else return;
  }
  if (a !== b) above.wires.push(a, b);
}
