/**
 * The tree that views show: the scopes of names, in which the rules have folded what repeats, belongs together, or is too
 * much for one level. Made anew from the tree of names; levels that did not change are taken over.
 */
import { cutToParts, foldLevel, foldMore, type Around } from "../rules/fold.js";
import { hashBag, hashText, mix } from "../rules/hash.js";
import { assigned, coreOf, type Facts } from "../rules/labels.js";
import { laneOf, Level, type Unit } from "../rules/level.js";
import { isOfGradients, lanesOf } from "../rules/lanes.js";
import { MOST_BOXES, type Carries, type Group, type Lane } from "../rules/types.js";
import type { Node, Origin, Output } from "../wire/messages.js";
import { bytesOf, typeText } from "./figures.js";
import { makeScope, shortName, type Scope, type ScopeTree, type Tree } from "./scopes.js";

type Item = Node | Scope;
const isScope = (item: Item): item is Scope => "ops" in item;

/** What the fold knows of a scope of names. */
interface Known {
  hash: number;
  lane: Lane;
  isParameter: boolean;
  /** Of a variable's scope: the operation of its name. */
  handle: Node | undefined;
  /** The item that the program made first. */
  lead: Item | undefined;
  first: number;
}

const VARIABLE = /^(VarHandleOp|Variable(V2)?)$/;
/** Boxes of which a group is made at least. */
const LEAST_FOLDED = 3;
/** Operations of a scope that computes one thing, at most. */
const MOST_OF_ONE = 3;
/** Types of a scope that a label looks at. */
const MOST_TYPES = 40;

export class FoldedTree implements Tree {
  readonly root: Scope;
  /** Where operations belong that are not the model's own. */
  readonly lanes: ReadonlyMap<number, Lane>;
  readonly #nodes: ReadonlyMap<number, Node>;
  readonly #names: ScopeTree;
  readonly #isFixed: (path: string) => boolean;
  readonly #byPath = new Map<string, Scope>();
  readonly #home = new Map<number, Scope>();
  readonly #known = new Map<Scope, Known>();
  readonly #wires = new Map<Scope, number[]>();
  /** How many scopes have a hash. */
  readonly #alike = new Map<number, number>();
  readonly #hashOfScope = new Map<Scope, number>();
  readonly #items = new Map<Scope, readonly Item[]>();
  readonly #number = new Map<Item, number>();
  readonly #facts = new Map<Scope, Facts>();
  readonly #variables = new Map<Origin, string>();
  readonly #typeHash = new Map<string, number>();
  readonly #outputsHash = new Map<Output, number>();
  readonly #optimizer: string;

  /** `isFixed` says which scopes of names stay as they are: the frames of loops and branches. */
  constructor(nodes: ReadonlyMap<number, Node>, names: ScopeTree, isFixed: (path: string) => boolean) {
    this.#nodes = nodes;
    this.#names = names;
    this.#isFixed = isFixed;
    this.lanes = lanesOf(nodes);
    this.#optimizer = optimizerOf(nodes.values());
    this.#wireLevels();
    this.root = this.#build();
    this.#likenesses();
  }

  get(path: string): Scope | undefined {
    return this.#byPath.get(path);
  }

  homeOf(id: number): Scope {
    const home = this.#home.get(id);
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

  #itemsOf(scope: Scope): readonly Item[] {
    const known = this.#items.get(scope);
    if (known) return known;
    const found: Item[] = [];
    for (const id of scope.ops) {
      const node = this.#nodes.get(id);
      if (node) found.push(node);
    }
    for (const inner of scope.scopes.values()) found.push(inner);
    this.#items.set(scope, found);
    return found;
  }

  /** Brings each edge to the level where its ends part. */
  #wireLevels(): void {
    const depths = new Map<Scope, number>();
    const stack: Scope[] = [this.#names.root];
    for (let scope = stack.pop(); scope; scope = stack.pop()) {
      depths.set(scope, scope.parent ? (depths.get(scope.parent) ?? 0) + 1 : 0);
      this.#wires.set(scope, []);
      this.#itemsOf(scope).forEach((item, i) => this.#number.set(item, i));
      stack.push(...scope.scopes.values());
    }
    for (const node of this.#nodes.values()) {
      for (const [from] of node.inputs) {
        const producer = this.#nodes.get(from);
        // What returns to a loop made by hand is no edge of the level's own direction.
        if (producer && producer !== node && producer.type !== "NextIteration") this.#wire(producer, node, depths);
      }
    }
  }

  #wire(from: Node, to: Node, depths: ReadonlyMap<Scope, number>): void {
    let [a, b]: [Item, Item] = [from, to];
    let [above, beside] = [this.#names.homeOf(from.id), this.#names.homeOf(to.id)];
    while (above !== beside) {
      const isDeeper = (depths.get(above) ?? 0) >= (depths.get(beside) ?? 0);
      if (isDeeper && above.parent) [a, above] = [above, above.parent];
      else if (beside.parent) [b, beside] = [beside, beside.parent];
      else return;
    }
    if (a !== b) this.#wires.get(above)?.push(this.#number.get(a) ?? 0, this.#number.get(b) ?? 0);
  }

  /** From the innermost scopes outwards. */
  #build(): Scope {
    const order: Scope[] = [];
    const stack: Scope[] = [this.#names.root];
    for (let scope = stack.pop(); scope; scope = stack.pop()) {
      order.push(scope);
      stack.push(...scope.scopes.values());
    }
    const made = new Map<Scope, Scope>();
    for (const scope of order.reverse()) made.set(scope, this.#fold(scope, made));
    const root = made.get(this.#names.root);
    if (!root) throw new Error("folded: no root");
    return root;
  }

  #fold(scope: Scope, made: ReadonlyMap<Scope, Scope>): Scope {
    const items = this.#itemsOf(scope);
    const wires = this.#wires.get(scope) ?? [];
    const units = items.map((item, i) => this.#unitOf(item, i));
    const known = this.#knowledge(scope, items, units, wires);
    this.#known.set(scope, known);
    const shown = this.#own(scope.path, scope.name, null, known);
    const isFolded = units.length >= LEAST_FOLDED && !known.isParameter && !this.#isFixed(scope.path);
    if (!isFolded) {
      for (const item of items) this.#placeItem(item, shown, made);
      return shown;
    }
    const facts = (item: number): Facts => this.#factsOf(items[item]);
    const level = new Level(units, wires);
    foldLevel(level, this.#around(facts, level));
    const only = level.units.length === 1 ? level.units[0] : undefined;
    // A scope of the user's that is one layer is that layer, under its own name.
    const isLayer = only?.group?.kind === "layer" && scope.parent !== null;
    if (isLayer && only?.group) shown.group = { ...only.group, title: scope.name, detail: [only.group.title, only.group.detail].join(" ").trim() };
    this.#place(isLayer && only ? only.members : level.units, shown, items, made, level, facts);
    return shown;
  }

  #around(texts: (item: number) => Facts, level: Level): Around {
    const feeds = (unit: Unit): boolean => [...level.out(unit)].some(({ lane }) => lane === "gradient");
    const isDerived = (unit: Unit): boolean => feeds(unit) || [...level.into(unit)].some(feeds);
    return { texts, optimizer: this.#optimizer, isDerived };
  }

  /** Puts units into a scope: operations, scopes of names, and groups with what they hold. */
  #place(
    units: readonly Unit[], into: Scope, items: readonly Item[], made: ReadonlyMap<Scope, Scope>, level: Level, facts: (item: number) => Facts,
  ): void {
    for (const unit of units) {
      const item = items[unit.item];
      if (unit.group) this.#placeGroup(unit, unit.group, into, items, made, level, facts);
      else if (item) this.#placeItem(item, into, made);
    }
  }

  #placeItem(item: Item, into: Scope, made: ReadonlyMap<Scope, Scope>): void {
    if (isScope(item)) return this.#adopt(made.get(item), into);
    this.#home.set(item.id, into);
    into.ops.add(item.id);
    this.#grow(into, 1);
  }

  #placeGroup(
    unit: Unit, group: Group, into: Scope, items: readonly Item[], made: ReadonlyMap<Scope, Scope>, level: Level, facts: (item: number) => Facts,
  ): void {
    const path = this.#freePath(into.path, group, this.#firstName(unit, items));
    const shown = this.#own(path, group.title, group, unit);
    this.#adopt(shown, into);
    if (group.kind === "stack" || group.kind === "fan") {
      this.#placeCopies(unit, group, shown, items, made, level, facts);
      return;
    }
    this.#place(this.#refolded(unit.members, level, facts, group.kind === "more"), shown, items, made, level, facts);
  }

  /** The first and the last copy, and what is between them. */
  #placeCopies(
    unit: Unit, group: Group, shown: Scope, items: readonly Item[], made: ReadonlyMap<Scope, Scope>, level: Level, facts: (item: number) => Facts,
  ): void {
    const copies = unit.members.map((copy, k) => (copy.group ? { ...copy, group: { ...copy.group, title: `${group.title} ${k + 1}` } } : copy));
    const [first, last] = [copies[0], copies[copies.length - 1]];
    if (!first || !last) return;
    if (copies.length <= 3) {
      this.#place(copies, shown, items, made, level, facts);
    } else {
      const middle = copies.slice(1, -1);
      const more: Group = { kind: "more", title: `${middle.length} more`, detail: `2 \u2026 ${copies.length - 1}`, count: middle.length, carries: null };
      this.#place([first], shown, items, made, level, facts);
      this.#placeGroup({ ...first, item: -1, group: more, members: middle }, more, shown, items, made, level, facts);
      this.#place([last], shown, items, made, level, facts);
    }
    if (group.kind === "stack") shown.group = { ...group, carries: this.#carried(copies, items) };
  }

  /** What is too much inside a group is folded there again; copies that are known to be alike are only cut to parts. */
  #refolded(members: readonly Unit[], level: Level, facts: (item: number) => Facts, isAlike: boolean): readonly Unit[] {
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
    const stack: (Unit | Scope)[] = [unit];
    for (let at = stack.pop(); at; at = stack.pop()) {
      if ("ops" in at) {
        for (const id of at.ops) found.push(...[this.#nodes.get(id)].flatMap((node) => node ?? []));
        stack.push(...at.scopes.values());
        continue;
      }
      const item = items[at.item];
      if (item && isScope(item)) stack.push(item);
      else if (item) found.push(item);
      stack.push(...at.members);
    }
    return found;
  }

  #own(path: string, name: string, group: Group | null, { lane, hash }: Pick<Unit, "lane" | "hash">): Scope {
    const scope = makeScope(path, null, name);
    scope.group = group;
    scope.lane = lane;
    this.#byPath.set(path, scope);
    this.#alike.set(hash, (this.#alike.get(hash) ?? 0) + 1);
    this.#hashOfScope.set(scope, hash);
    return scope;
  }

  /** Says of scopes of some size that are built alike that they are. */
  #likenesses(): void {
    for (const [scope, hash] of this.#hashOfScope) {
      const isOne = scope.group?.kind === "stack" || scope.group?.kind === "fan" || scope.group?.kind === "more";
      if (scope.size > 1 && !isOne && (this.#alike.get(hash) ?? 0) > 1) scope.likeness = (hash >>> 1) || 1;
    }
  }

  #adopt(inner: Scope | undefined, into: Scope): void {
    if (!inner) return;
    inner.parent = into;
    into.scopes.set(inner.path, inner);
    this.#grow(into, inner.size);
  }

  #grow(scope: Scope, by: number): void {
    for (let at: Scope | null = scope; at; at = at.parent) at.size += by;
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
    return item ? shortName(isScope(item) ? item.path : item.name) : "";
  }

  #unitOf(item: Item, number: number): Unit {
    if (!isScope(item)) {
      const lane = this.lanes.get(item.id) ?? "model";
      return { first: item.id, hash: this.#hashOf(item), lane, size: 1, item: number, group: null, members: NONE, isParameter: VARIABLE.test(item.type) };
    }
    const known = this.#known.get(item);
    if (!known) throw new Error(`folded: ${item.path} is not known yet`);
    const { first, hash, lane, isParameter } = known;
    return { first, hash, lane, size: item.size, item: number, group: null, members: NONE, isParameter };
  }

  #hashOf({ type, inputs, outputs }: Node): number {
    let hash = mix(this.#textHash(type), inputs.length);
    for (const output of outputs) {
      let known = this.#outputsHash.get(output);
      if (known === undefined) this.#outputsHash.set(output, known = hashText(typeText(output)));
      hash = mix(hash, known);
    }
    return hash;
  }

  #textHash(text: string): number {
    let known = this.#typeHash.get(text);
    if (known === undefined) this.#typeHash.set(text, known = hashText(text));
    return known;
  }

  #knowledge(scope: Scope, items: readonly Item[], units: readonly Unit[], wires: readonly number[]): Known {
    const own = this.#names.idOf(scope.path);
    const handle = own === undefined ? undefined : this.#nodes.get(own);
    const isParameter = handle !== undefined && VARIABLE.test(handle.type) && scope.ops.has(handle.id);
    let first = units[0];
    for (const unit of units) if (!first || unit.first < first.first) first = unit;
    return {
      hash: hashOfLevel(units, wires), lane: isOfGradients(scope.path) ? "gradient" : laneOf(units), isParameter, handle: isParameter ? handle : undefined,
      lead: items[first?.item ?? -1], first: first?.first ?? 0,
    };
  }

  /** What a label can say of an item; asked of few. */
  #factsOf(item: Item | undefined): Facts {
    if (!item) return NOTHING;
    if (!isScope(item)) {
      return {
        name: shortName(item.name), type: item.type, core: item.type, types: [item.type], shape: item.outputs[0]?.shape ?? null,
        variable: item.origin ? this.#variableOf(item.origin) : "", made_in: item.origin?.function ?? "",
      };
    }
    const known = this.#facts.get(item);
    if (known) return known;
    const { handle, lead } = this.#known.get(item) ?? {};
    const { variable, made_in } = this.#factsOf(lead);
    const types = this.#typesOf(item);
    const core = item.size <= MOST_OF_ONE ? coreOf(types) : "";
    const facts = { name: item.name, type: "", core, types, shape: handle?.outputs[0]?.shape ?? null, variable, made_in };
    this.#facts.set(item, facts);
    return facts;
  }

  /** Operations of one line share its origin. */
  #variableOf(origin: Origin): string {
    let known = this.#variables.get(origin);
    if (known === undefined) this.#variables.set(origin, known = assigned(origin.text));
    return known;
  }

  #typesOf(scope: Scope): string[] {
    const found = new Set<string>();
    const stack = [scope];
    for (let at = stack.pop(); at && found.size < MOST_TYPES; at = stack.pop()) {
      for (const id of at.ops) found.add(this.#nodes.get(id)?.type ?? "");
      stack.push(...at.scopes.values());
    }
    return [...found];
  }
}

const NONE: readonly Unit[] = [];

const NOTHING: Facts = { name: "", type: "", core: "", types: [], shape: null, variable: "", made_in: "" };

/** The hash of a level: what stands in it, and how it is wired. */
function hashOfLevel(units: readonly Unit[], wires: readonly number[]): number {
  if (wires.length === 0) return units.length === 1 ? mix(units[0]?.hash ?? 0, 1) : mix(hashBag(units.map(({ hash }) => hash)), units.length);
  // Sums do not depend on an order, and need no lists.
  const around = units.map(({ hash }) => hash);
  for (let k = 0; k < wires.length; k += 2) {
    const [from, to] = [wires[k] ?? 0, wires[k + 1] ?? 0];
    around[to] = ((around[to] ?? 0) + mix(units[from]?.hash ?? 0, 3)) | 0;
    around[from] = ((around[from] ?? 0) + mix(units[to]?.hash ?? 0, 5)) | 0;
  }
  return mix(hashBag(around), units.length);
}

/** The name of the update group that most variables belong to: "Adam". */
function optimizerOf(nodes: Iterable<Node>): string {
  const counts = new Map<string, number>();
  for (const { attributes: { group } } of nodes) if (group) counts.set(group, (counts.get(group) ?? 0) + 1);
  const [best] = [...counts].sort((a, b) => b[1] - a[1]);
  return best ? shortName(best[0]) : "";
}
