/** Folds places: what the rules make of each level becomes scopes. What is made counts only when the tree takes it up. */
import { cutToParts, foldLevel, foldMore, mayFold, type Around } from "../rules/fold.js";
import type { Wires } from "../rules/components.js";
import { hashBag } from "../rules/hash.js";
import type { Facts } from "../rules/labels.js";
import { itemsOf, Level, type Unit } from "../rules/level.js";
import { MOST_BOXES, type Carries, type Group, type Lane } from "../rules/types.js";
import type { Node, Output } from "../wire/messages.js";
import type { Sliced } from "../wire/sliced.js";
import { leastBytes, typeText } from "./figures.js";
import { dividedItems, gradientTitle } from "./gradients.js";
import type { Items } from "./items.js";
import { isPlace, type Done, type Item, type Place, type Places } from "./places.js";
import { ScopeNode, shortName, type ScopeTree } from "./scopes.js";

/** Boxes of a level with a box for the gradients of each, at most. */
const MOST_DIVIDED = 26;
/** Boxes of which a group is made at least. */
const LEAST_FOLDED = 3;

/** What places are folded with. */
export interface Material {
  readonly nodes: ReadonlyMap<number, Node>;
  readonly names: ScopeTree;
  readonly places: Places;
  readonly items: Items;
  readonly lanes: ReadonlyMap<number, Lane>;
  /** Ids of what is known before a step runs, and of each whether it is an array of weights. */
  readonly constants: ReadonlyMap<number, boolean>;
  /** The optimizer's name, "" where there is none. */
  readonly optimizer: string;
  /** Which scopes of names stay as they are: the frames of loops and branches. */
  readonly isFixed: (path: string) => boolean;
  /** Whether a scope that stays has a path. */
  readonly isTaken: (path: string) => boolean;
  /** Scopes of gradients that are dissolved, and the places where what they hold stands. */
  readonly dissolved: ReadonlyMap<Place, Place>;
}

/** A level while it is folded. */
interface At {
  readonly level: Level;
  readonly items: readonly Item[];
  readonly facts: (item: number) => Facts;
  readonly own: ScopeNode[];
}

export class Folding {
  /** All scopes that were made. */
  readonly made: ScopeNode[] = [];
  readonly #with: Material;
  readonly #paths = new Set<string>();

  constructor(material: Material) {
    this.#with = material;
  }

  *fold(place: Place): Sliced<Done> {
    const { scope } = place;
    const { places, nodes, names } = this.#with;
    const gone = this.#leaving(place);
    const items = places.itemsOf(place).filter((item) => !isPlace(item) || !gone.has(item.number));
    const wires = numbered(gone.size === 0 ? place.wires : wiresWithout(place.wires, gone), items);
    const units = items.map((item, i) => this.#with.items.unitOf(item, i, this.#with));
    if (units.length > MOST_BOXES) yield;
    const known = this.#with.items.knowledge(place, items, units, wires, nodes.get(names.idOf(scope.path) ?? -1));
    const own: ScopeNode[] = [];
    const isFixed = this.#with.isFixed(scope.path);
    const dissolved = this.#with.dissolved.get(place)?.scope.path ?? null;
    if (dissolved !== null) return { known, shown: new ScopeNode(scope.path, null, scope.name), own, isFixed, dissolved };
    const shown = this.#own(scope.path, scope.name, null, known, own);
    const facts = (item: number): Facts => this.#with.items.factsOf(items[item], places);
    const at: At = { level: new Level(units, wires), items, facts, own };
    if (units.length < LEAST_FOLDED || known.isParameter || isFixed || !mayFold(units, facts)) {
      for (const item of items) placeItem(item, shown);
    } else {
      yield* this.#foldLevel(place, shown, at, derivedItems(place.wires, gone, items));
    }
    yield* this.#placeGradients(place, shown, at);
    shown.size = sizeOf(shown);
    return { known, shown, own, isFixed, dissolved };
  }

  /** Scopes of gradients in a place whose content stands elsewhere, by the numbers of the items that they are. */
  #leaving(place: Place): ReadonlyMap<number, Place> {
    const found = new Map<number, Place>();
    for (const scope of this.#with.dissolved.keys()) if (scope.above === place) found.set(scope.number, scope);
    return found;
  }

  /** Puts beside each unit of a place what is the gradient of it. */
  *#placeGradients(place: Place, shown: ScopeNode, at: At): Sliced<void> {
    const scopes = [...this.#with.dissolved].filter(([, target]) => target === place).map(([scope]) => scope);
    if (scopes.length === 0) return;
    const holder = new Map(at.level.units.flatMap((unit) => itemsOf(unit).map((item) => [item, unit] as const)));
    for (const scope of scopes) {
      yield;
      const pieces = this.#divided(scope, place, at.items, holder);
      yield;
      // Where there would be too many, they stay one box.
      const isMuch = at.level.units.length + pieces.length > MOST_DIVIDED;
      const { name } = scope.scope;
      yield* isMuch ? this.#placePieces(scope, [pieces.flat()], name, shown, at) : this.#placePieces(scope, pieces, gradientTitle(name), shown, at);
    }
  }

  /** Numbers of a scope's items, those of the gradients of one unit together. */
  #divided(scope: Place, place: Place, items: readonly Item[], holder: ReadonlyMap<number, Unit>): number[][] {
    const { places, names } = this.#with;
    const index = new Map(items.map((item, k) => [item, k]));
    const pieces = new Map<Unit | undefined, number[]>();
    for (const [item, members] of dividedItems(scope, place, places, (name) => names.idOf(name), (one) => index.get(one))) {
      const unit = holder.get(item ?? -1);
      const known = pieces.get(unit);
      if (known) known.push(...members);
      else pieces.set(unit, [...members]);
    }
    return [...pieces.values()];
  }

  *#placePieces(scope: Place, pieces: readonly (readonly number[])[], title: string, into: ScopeNode, { own }: At): Sliced<void> {
    const { places, items: known } = this.#with;
    const items = places.itemsOf(scope);
    const units = items.map((item, k) => known.unitOf(item, k, this.#with));
    yield;
    const at: At = { level: new Level(units, numbered(scope.wires, items)), items, facts: (item) => known.factsOf(items[item], places), own };
    const group: Group = { kind: "gradient", title, detail: "", count: 1, carries: null };
    for (const piece of pieces) {
      const members = [...piece].sort((a, b) => a - b).flatMap((k) => units[k] ?? []);
      const [first] = members;
      if (!first) continue;
      const hash = hashBag(members.map((unit) => unit.hash));
      const size = members.reduce((sum, unit) => sum + unit.size, 0);
      yield* this.#placeGroup({ ...first, hash, item: -1, group, members, lane: "gradient", size }, group, into, at);
    }
  }

  *#foldLevel({ scope }: Place, shown: ScopeNode, at: At, derived: ReadonlySet<number>): Sliced<void> {
    const { level } = at;
    yield* foldLevel(level, this.#around(at, derived));
    const only = level.units.length === 1 ? level.units[0] : undefined;
    // A scope of the user's that is one layer is that layer, under its own name.
    const isLayer = only?.group?.kind === "layer" && scope.parent !== null;
    if (isLayer && only?.group) shown.group = { ...only.group, title: scope.name, detail: [only.group.title, only.group.detail].join(" ").trim() };
    yield* this.#place(isLayer && only ? only.members : level.units, shown, at);
  }

  #around({ facts: texts, items, level }: At, derived: ReadonlySet<number>): Around {
    const isOfUpdates = ({ lane }: Unit): boolean => lane === "gradient" || lane === "optimizer";
    const feeds = (unit: Unit): boolean => derived.has(unit.item) || level.out(unit).some(isOfUpdates);
    const isDerived = (unit: Unit): boolean => feeds(unit) || level.into(unit).some(feeds);
    return { texts, waitsFor: waitingIn(items), optimizer: this.#with.optimizer, isDerived };
  }

  /** Puts units into a scope: operations, scopes of names, and groups with what they hold. */
  *#place(units: readonly Unit[], into: ScopeNode, at: At): Sliced<void> {
    for (const unit of units) {
      const item = at.items[unit.item];
      if (unit.group) yield* this.#placeGroup(unit, unit.group, into, at);
      else if (item) placeItem(item, into);
    }
  }

  *#placeGroup(unit: Unit, group: Group, into: ScopeNode, at: At): Sliced<void> {
    const path = this.#freePath(into.path, group, this.#firstName(unit, at.items));
    const shown = this.#own(path, group.title, group, unit, at.own);
    shown.size = unit.size;
    into.hold(shown);
    yield;
    if (group.kind === "stack" || group.kind === "fan") yield* this.#placeCopies(unit, group, shown, at);
    else yield* this.#place(yield* this.#refolded(unit.members, at, group.kind === "more"), shown, at);
  }

  /** The first and the last copy, and what is between them. */
  *#placeCopies(unit: Unit, group: Group, shown: ScopeNode, at: At): Sliced<void> {
    const copies = unit.members.map((copy, k) => (copy.group ? { ...copy, group: { ...copy.group, title: `${group.title} ${k + 1}` } } : copy));
    const [first, last] = [copies[0], copies[copies.length - 1]];
    if (!first || !last) return;
    if (copies.length <= 3) {
      yield* this.#place(copies, shown, at);
    } else {
      const middle = copies.slice(1, -1);
      const more: Group = { kind: "more", title: `${middle.length} more`, detail: `2 \u2026 ${copies.length - 1}`, count: middle.length, carries: null };
      const size = middle.reduce((sum, copy) => sum + copy.size, 0);
      yield* this.#place([first], shown, at);
      yield* this.#placeGroup({ ...first, item: -1, group: more, members: middle, size }, more, shown, at);
      yield* this.#place([last], shown, at);
    }
    if (group.kind === "stack") shown.group = { ...group, carries: this.#carried(copies, at.items) };
  }

  /** What is too much inside a group is folded there again; copies that are known to be alike are only cut to parts. */
  *#refolded(members: readonly Unit[], { level, facts }: At, isAlike: boolean): Sliced<readonly Unit[]> {
    if (members.length <= MOST_BOXES) return members;
    const inner = level.inside(members);
    if (isAlike) yield* cutToParts(inner, facts);
    else yield* foldMore(inner, facts);
    return inner.units;
  }

  #carried(copies: readonly Unit[], items: readonly Item[]): Carries | null {
    const [one, two] = [copies[0], copies[1]];
    if (!one || !two) return null;
    const from = new Set(this.#opsOf(one, items).map(({ id }) => id));
    const ends = new Map<string, Output>();
    for (const { inputs } of this.#opsOf(two, items)) {
      for (const [id, output] of inputs) {
        const carries = from.has(id) ? this.#with.nodes.get(id)?.outputs[output] : undefined;
        if (carries) ends.set(`${id}:${output}`, carries);
      }
    }
    const outputs = [...ends.values()];
    const labels = new Set(outputs.map(typeText));
    return { count: outputs.length, bytes: outputs.reduce((sum, output) => sum + leastBytes(output), 0), label: labels.size === 1 ? ([...labels][0] ?? "") : "" };
  }

  #opsOf(unit: Unit, items: readonly Item[]): Node[] {
    const found: Node[] = [];
    const stack: (Item | undefined)[] = itemsOf(unit).map((item) => items[item]);
    for (let at = stack.pop(); at; at = stack.pop()) {
      if (isPlace(at)) stack.push(...this.#with.places.itemsOf(at));
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
    this.made.push(scope);
    this.#paths.add(path);
    return scope;
  }

  /** Made of the first operation's name, so that it stays the same when others are added behind. */
  #freePath(parent: string, { kind }: Group, first: string): string {
    const wished = `${parent ? `${parent}/` : ""}[${kind} ${first}]`;
    let path = wished;
    for (let k = 2; this.#paths.has(path) || this.#with.isTaken(path); k++) path = `${wished}${k}`;
    return path;
  }

  #firstName(unit: Unit, items: readonly Item[]): string {
    let at: Unit | undefined = unit;
    while (at && at.item < 0) at = at.members[0];
    const item = items[at?.item ?? -1];
    return item ? shortName(isPlace(item) ? item.scope.path : item.name) : "";
  }
}

/** Operations in a scope that was put together. */
function sizeOf({ ops, scopes }: ScopeNode): number {
  let size = ops.size;
  for (const inner of scopes.values()) size += inner.size;
  return size;
}

function wiresWithout(wires: readonly number[], gone: ReadonlyMap<number, unknown>): number[] {
  return wires.filter((_, k) => !gone.has(wires[k & ~1]!) && !gone.has(wires[k | 1]!));
}

/** Numbers of the items that gradients take from which stand elsewhere. */
function derivedItems(wires: readonly number[], gone: ReadonlyMap<number, unknown>, items: readonly Item[]): ReadonlySet<number> {
  if (gone.size === 0) return new Set();
  const from = new Set<number>();
  for (let k = 0; k < wires.length; k += 2) if (gone.has(wires[k + 1]!)) from.add(wires[k]!);
  return new Set(items.flatMap((item, k) => (from.has(isPlace(item) ? item.number : item.id) ? [k] : [])));
}

/** For which items of a level one waits. */
function waitingIn(items: readonly Item[]): (item: number) => readonly number[] {
  let numbers: Map<number, number> | null = null;
  return (k) => {
    const item = items[k];
    if (!item || isPlace(item)) return [];
    numbers ??= new Map(items.flatMap((one, n) => (isPlace(one) ? [] : [[one.id, n] as const])));
    return item.control.flatMap((id) => numbers?.get(id) ?? []);
  };
}

function placeItem(item: Item, into: ScopeNode): void {
  if (!isPlace(item)) into.addOp(item.id);
  else if (item.done) into.hold(item.done.shown);
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
