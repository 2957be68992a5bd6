/**
 * The tree that views show: the scopes of names, in which the rules have folded what repeats, belongs together, or is too
 * much for one level. It follows the graph: levels that did not change are kept.
 */
import { cutToParts, foldLevel, foldMore, mayFold, type Around } from "../rules/fold.js";
import type { Facts } from "../rules/labels.js";
import type { Wires } from "../rules/components.js";
import { itemsOf, Level, type Unit } from "../rules/level.js";
import { lanesOf } from "../rules/lanes.js";
import { MOST_BOXES, type Carries, type Group, type Lane } from "../rules/types.js";
import type { Node, Output } from "../wire/messages.js";
import { bytesOf, typeText } from "./figures.js";
import { Items } from "./items.js";
import { isPlace, Places, type Done, type Item, type Place } from "./places.js";
import { ScopeNode, shortName, type ScopeTree, type Tree } from "./scopes.js";

/** Boxes of which a group is made at least. */
const LEAST_FOLDED = 3;

/** What became of a graph since it was folded. */
export interface Told {
  /** Operations that were not there. */
  readonly fresh: Node[];
  /** Operations that are others than they were, but stand where they stood, and take what they took. */
  readonly changed: Set<number>;
  /** Whether operations have left, or moved, or take something else. */
  isMoved: boolean;
}

/** A level while it is folded. */
interface At {
  readonly level: Level;
  readonly items: readonly Item[];
  readonly facts: (item: number) => Facts;
  readonly own: ScopeNode[];
}

export class FoldedTree implements Tree {
  root: ScopeNode;
  readonly #nodes: ReadonlyMap<number, Node>;
  readonly #isFixed: (path: string) => boolean;
  readonly #items = new Items();
  #names: ScopeTree;
  #places: Places;
  #lanes: ReadonlyMap<number, Lane>;
  #optimizer: string;
  readonly #byPath = new Map<string, ScopeNode>();
  /** By an operation's id. */
  readonly #home: (ScopeNode | undefined)[] = [];
  readonly #fixed = new Map<string, boolean>();
  /** How many scopes are built alike, by what they are built like. */
  readonly #alike = new Map<number, number>();

  /** `isFixed` says which scopes of names stay as they are: the frames of loops and branches. */
  constructor(nodes: ReadonlyMap<number, Node>, names: ScopeTree, isFixed: (path: string) => boolean) {
    this.#nodes = nodes;
    this.#names = names;
    this.#isFixed = isFixed;
    this.#lanes = lanesOf(nodes);
    this.#optimizer = optimizerOf(nodes.values());
    this.#places = new Places(nodes, names, null);
    this.root = this.#build();
  }

  /** Where operations belong that are not the model's own. */
  get lanes(): ReadonlyMap<number, Lane> {
    return this.#lanes;
  }

  /** Takes up what became of the graph: levels that it does not touch stay as they are. */
  follow(names: ScopeTree, { fresh, changed, isMoved }: Told): void {
    const touched = new Set([...changed, ...fresh.map(({ id }) => id), ...this.#newLanes()]);
    this.#names = names;
    if (isMoved || !this.#places.add(fresh)) this.#replace(touched);
    for (const id of touched) this.#undo(this.#places.homeOf(id) ?? null);
    this.root = this.#build();
  }

  /** Operations that belong elsewhere now; all where the optimizer has another name. */
  #newLanes(): Iterable<number> {
    const before = this.#lanes;
    const optimizer = optimizerOf(this.#nodes.values());
    this.#lanes = lanesOf(this.#nodes);
    const isRenamed = optimizer !== this.#optimizer;
    this.#optimizer = optimizer;
    if (isRenamed) return this.#nodes.keys();
    const found: number[] = [];
    for (const [id, lane] of this.#lanes) if (before.get(id) !== lane) found.push(id);
    for (const id of before.keys()) if (!this.#lanes.has(id)) found.push(id);
    return found;
  }

  /** Makes the places anew; what was made of those that are as they were stays. */
  #replace(touched: ReadonlySet<number>): void {
    const before = new Map(this.#places.ordered().map((place) => [place.scope.path, place]));
    this.#home.forEach((_, id) => {
      if (!this.#nodes.has(id)) delete this.#home[id];
    });
    this.#places = new Places(this.#nodes, this.#names, this.#places);
    for (const place of this.#places.ordered().reverse()) {
      const old = before.get(place.scope.path);
      if (!old?.done || !this.#isAsBefore(place, old, touched)) continue;
      place.done = old.done;
      before.delete(place.scope.path);
    }
    for (const { done } of before.values()) if (done) this.#drop(done);
  }

  #isAsBefore(place: Place, old: Place, touched: ReadonlySet<number>): boolean {
    const [items, others] = [this.#places.itemsOf(place), old.items ?? []];
    if (items.length !== others.length || place.wires.length !== old.wires.length) return false;
    if (this.#fixed.get(place.scope.path) !== this.#isFixed(place.scope.path)) return false;
    const isSame = items.every((item, k) => {
      const other = others[k]!;
      if (isPlace(item)) return isPlace(other) && item.done !== null && item.number === other.number;
      return !isPlace(other) && item.id === other.id && !touched.has(item.id);
    });
    return isSame && place.wires.every((end, k) => end === old.wires[k]);
  }

  /** Takes back what was made of a place, and of those around it. */
  #undo(place: Place | null): void {
    for (let at = place; at; at = at.above) {
      if (at.done) this.#drop(at.done);
      at.done = at.items = null;
    }
  }

  #drop({ own }: Done): void {
    for (const scope of own) {
      this.#alike.set(scope.hash, (this.#alike.get(scope.hash) ?? 1) - 1);
      this.#byPath.delete(scope.path);
    }
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
    return this.#names.idOf(name);
  }

  ancestry(path: string): string[] {
    const way: string[] = [];
    for (let scope = this.#byPath.get(path); scope?.parent; scope = scope.parent) way.push(scope.path);
    return way.reverse();
  }

  /** From the innermost places outwards. */
  #build(): ScopeNode {
    for (const place of this.#places.ordered(({ done }) => done === null).reverse()) place.done = this.#fold(place);
    this.#likenesses();
    const root = this.#places.root.done?.shown;
    if (!root) throw new Error("folded: no root");
    root.parent = null;
    return root;
  }

  #fold(place: Place): Done {
    const { scope } = place;
    const items = this.#places.itemsOf(place);
    const wires = numbered(place.wires, items);
    const units = items.map((item, i) => this.#items.unitOf(item, i, this.#lanes));
    const known = this.#items.knowledge(place, items, units, wires, this.#nodes.get(this.#names.idOf(scope.path) ?? -1));
    const own: ScopeNode[] = [];
    const shown = this.#own(scope.path, scope.name, null, known, own);
    const isFixed = this.#isFixed(scope.path);
    this.#fixed.set(scope.path, isFixed);
    const facts = (item: number): Facts => this.#items.factsOf(items[item], this.#places);
    if (units.length < LEAST_FOLDED || known.isParameter || isFixed || !mayFold(units, facts)) {
      for (const item of items) this.#placeItem(item, shown);
    } else {
      this.#foldLevel(place, shown, { level: new Level(units, wires), items, facts, own });
    }
    shown.size = scope.size;
    return { known, shown, own };
  }

  #foldLevel({ scope }: Place, shown: ScopeNode, at: At): void {
    const { level } = at;
    foldLevel(level, this.#around(at.facts, level));
    const only = level.units.length === 1 ? level.units[0] : undefined;
    // A scope of the user's that is one layer is that layer, under its own name.
    const isLayer = only?.group?.kind === "layer" && scope.parent !== null;
    if (isLayer && only?.group) shown.group = { ...only.group, title: scope.name, detail: [only.group.title, only.group.detail].join(" ").trim() };
    this.#place(isLayer && only ? only.members : level.units, shown, at);
  }

  #around(texts: (item: number) => Facts, level: Level): Around {
    const feeds = (unit: Unit): boolean => level.out(unit).some(({ lane }) => lane === "gradient");
    const isDerived = (unit: Unit): boolean => feeds(unit) || level.into(unit).some(feeds);
    return { texts, optimizer: this.#optimizer, isDerived };
  }

  /** Puts units into a scope: operations, scopes of names, and groups with what they hold. */
  #place(units: readonly Unit[], into: ScopeNode, at: At): void {
    for (const unit of units) {
      const item = at.items[unit.item];
      if (unit.group) this.#placeGroup(unit, unit.group, into, at);
      else if (item) this.#placeItem(item, into);
    }
  }

  #placeItem(item: Item, into: ScopeNode): void {
    if (isPlace(item)) {
      if (item.done) into.adopt(item.done.shown);
      return;
    }
    this.#home[item.id] = into;
    into.addOp(item.id);
  }

  #placeGroup(unit: Unit, group: Group, into: ScopeNode, at: At): void {
    const path = this.#freePath(into.path, group, this.#firstName(unit, at.items));
    const shown = this.#own(path, group.title, group, unit, at.own);
    shown.size = unit.size;
    into.adopt(shown);
    if (group.kind === "stack" || group.kind === "fan") this.#placeCopies(unit, group, shown, at);
    else this.#place(this.#refolded(unit.members, at, group.kind === "more"), shown, at);
  }

  /** The first and the last copy, and what is between them. */
  #placeCopies(unit: Unit, group: Group, shown: ScopeNode, at: At): void {
    const copies = unit.members.map((copy, k) => (copy.group ? { ...copy, group: { ...copy.group, title: `${group.title} ${k + 1}` } } : copy));
    const [first, last] = [copies[0], copies[copies.length - 1]];
    if (!first || !last) return;
    if (copies.length <= 3) {
      this.#place(copies, shown, at);
    } else {
      const middle = copies.slice(1, -1);
      const more: Group = { kind: "more", title: `${middle.length} more`, detail: `2 \u2026 ${copies.length - 1}`, count: middle.length, carries: null };
      const size = middle.reduce((sum, copy) => sum + copy.size, 0);
      this.#place([first], shown, at);
      this.#placeGroup({ ...first, item: -1, group: more, members: middle, size }, more, shown, at);
      this.#place([last], shown, at);
    }
    if (group.kind === "stack") shown.group = { ...group, carries: this.#carried(copies, at.items) };
  }

  /** What is too much inside a group is folded there again; copies that are known to be alike are only cut to parts. */
  #refolded(members: readonly Unit[], { level, facts }: At, isAlike: boolean): readonly Unit[] {
    if (members.length <= MOST_BOXES) return members;
    const inner = level.inside(members);
    if (isAlike) cutToParts(inner, facts);
    else foldMore(inner, facts);
    return inner.units;
  }

  #carried(copies: readonly Unit[], items: readonly Item[]): Carries | null {
    const [one, two] = [copies[0], copies[1]];
    if (!one || !two) return null;
    const from = new Set(this.#opsOf(one, items).map(({ id }) => id));
    const ends = new Map<string, Output>();
    for (const { inputs } of this.#opsOf(two, items)) {
      for (const [id, output] of inputs) {
        const carries = from.has(id) ? this.#nodes.get(id)?.outputs[output] : undefined;
        if (carries) ends.set(`${id}:${output}`, carries);
      }
    }
    const outputs = [...ends.values()];
    const labels = new Set(outputs.map(typeText));
    return { count: outputs.length, bytes: outputs.reduce((sum, output) => sum + bytesOf(output), 0), label: labels.size === 1 ? ([...labels][0] ?? "") : "" };
  }

  #opsOf(unit: Unit, items: readonly Item[]): Node[] {
    const found: Node[] = [];
    const stack: (Item | undefined)[] = itemsOf(unit).map((item) => items[item]);
    for (let at = stack.pop(); at; at = stack.pop()) {
      if (isPlace(at)) stack.push(...this.#places.itemsOf(at));
      else found.push(at);
    }
    return found;
  }

  #own(path: string, name: string, group: Group | null, { lane, hash }: Pick<Unit, "lane" | "hash">, own: ScopeNode[]): ScopeNode {
    const scope = new ScopeNode(path, null, name);
    scope.group = group;
    scope.lane = lane;
    scope.hash = hash;
    own.push(scope);
    this.#byPath.set(path, scope);
    this.#alike.set(hash, (this.#alike.get(hash) ?? 0) + 1);
    return scope;
  }

  /** Says of scopes of some size that are built alike that they are. */
  #likenesses(): void {
    for (const scope of this.#byPath.values()) {
      const { hash } = scope;
      const isOne = scope.group?.kind === "stack" || scope.group?.kind === "fan" || scope.group?.kind === "more";
      scope.likeness = scope.size > 1 && !isOne && (this.#alike.get(hash) ?? 0) > 1 ? (hash >>> 1) || 1 : 0;
    }
  }

  /** Made of the first operation's name, so that it stays the same when others are added behind. */
  #freePath(parent: string, { kind }: Group, first: string): string {
    const wished = `${parent ? `${parent}/` : ""}[${kind} ${first}]`;
    let path = wished;
    for (let k = 2; this.#byPath.has(path); k++) path = `${wished}${k}`;
    return path;
  }

  #firstName(unit: Unit, items: readonly Item[]): string {
    let at: Unit | undefined = unit;
    while (at && at.item < 0) at = at.members[0];
    const item = items[at?.item ?? -1];
    return item ? shortName(isPlace(item) ? item.scope.path : item.name) : "";
  }
}

/** The wires of a place by positions in its items. */
function numbered(wires: readonly number[], items: readonly Item[]): Wires {
  if (wires.length === 0) return NONE;
  const ends = items.map((item) => (isPlace(item) ? item.number : item.id));
  // Few are found faster without a table, and most places hold few.
  if (ends.length <= FEW_ITEMS) return wires.map((end) => ends.indexOf(end));
  const numbers = new Map<number, number>();
  for (let i = 0; i < ends.length; i++) numbers.set(ends[i]!, i);
  return wires.map((end) => numbers.get(end) ?? 0);
}

const FEW_ITEMS = 8;
const NONE: Wires = [];

/** The name of the update group that most variables belong to: "Adam". */
function optimizerOf(nodes: Iterable<Node>): string {
  const counts = new Map<string, number>();
  for (const { attributes: { group } } of nodes) if (group) counts.set(group, (counts.get(group) ?? 0) + 1);
  const [best] = [...counts].sort((a, b) => b[1] - a[1]);
  return best ? shortName(best[0]) : "";
}
