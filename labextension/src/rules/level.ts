/**
 * One level of the hierarchy as the rules see it: boxes as numbers, in the order in which the program made them, with edges
 * between them. Merging boxes never makes a cycle that the boxes did not have.
 */
import { hashBag, mix } from "./hash.js";
import type { Group, Lane } from "./types.js";

/** A box of a level: an operation, a scope, or what a rule has merged. */
export interface Unit {
  /** Position in the program of the first operation. */
  readonly first: number;
  /** Structure of the inside. */
  readonly hash: number;
  readonly lane: Lane;
  /** Operations inside. */
  readonly size: number;
  /** Number of the box in the level that it began with; -1 of a merged one. */
  readonly item: number;
  readonly group: Group | null;
  readonly members: readonly Unit[];
  /** A variable, with what reads and fills it. */
  readonly isParameter: boolean;
}

/** The data edges between boxes: from, to, from, to ...; an edge may be told more than once. */
export type Wires = ArrayLike<number>;

/** Boxes to be merged, and what they become. */
export interface Merge {
  readonly members: readonly Unit[];
  readonly group: Group;
}

export class Level {
  #units: readonly Unit[];
  #wires: Wires;
  /** The unit that holds a box of the beginning. */
  readonly #holder: (Unit | undefined)[] = [];
  #edges: { out: Map<Unit, Set<Unit>>; into: Map<Unit, Set<Unit>> } | null = null;
  /** Boxes of the beginning that lie on one cycle have the same number. */
  #knot: readonly number[] | null = null;

  /** `wires` join units by the numbers in `Unit.item`. */
  constructor(units: readonly Unit[], wires: Wires) {
    this.#units = units;
    this.#wires = wires;
    for (const unit of units) this.#holder[unit.item] = unit;
  }

  get units(): readonly Unit[] {
    return this.#units;
  }

  /** A level of some of the units alone, with the edges between them. */
  inside(members: readonly Unit[]): Level {
    const found = new Level([], []);
    found.#begin(members, this.#wires);
    return found;
  }

  #begin(members: readonly Unit[], wires: Wires): void {
    this.#units = members;
    for (const unit of members) this.#hold(unit, unit);
    const inside: number[] = [];
    for (let k = 0; k < wires.length; k += 2) {
      const [from, to] = [wires[k] ?? -1, wires[k + 1] ?? -1];
      if (this.#holder[from] && this.#holder[to]) inside.push(from, to);
    }
    this.#wires = inside;
  }

  into(unit: Unit): ReadonlySet<Unit> {
    return this.#adjacency().into.get(unit) ?? NONE;
  }

  out(unit: Unit): ReadonlySet<Unit> {
    return this.#adjacency().out.get(unit) ?? NONE;
  }

  /** Merges boxes, but for those whose merging would make a cycle; returns what came of it. */
  merge(wanted: readonly Merge[]): Unit[] {
    return this.#apply(this.#safe(wanted.filter(({ members }) => members.length > 0)));
  }

  /** Merges stretches of `sequenceOf` this level: where the level has no cycle, they make none. */
  mergeStretches(wanted: readonly Merge[]): Unit[] {
    return new Set(this.#knots).size === this.#knots.length ? this.#apply(wanted) : this.merge(wanted);
  }

  get #knots(): readonly number[] {
    this.#knot ??= components(this.#holder.length, this.#wires);
    return this.#knot;
  }

  #apply(safe: readonly Merge[]): Unit[] {
    if (safe.length === 0) return [];
    const gone = new Set(safe.flatMap(({ members }) => members));
    const made = safe.map(mergedUnit);
    for (const unit of made) this.#hold(unit, unit);
    this.#units = [...this.#units.filter((unit) => !gone.has(unit)), ...made].sort((a, b) => a.first - b.first);
    this.#edges = null;
    return made;
  }

  #hold(unit: Unit, holder: Unit): void {
    const stack: Unit[] = [unit];
    for (let at = stack.pop(); at; at = stack.pop()) {
      if (at.item >= 0) this.#holder[at.item] = holder;
      for (const member of at.members) stack.push(member);
    }
  }

  #adjacency(): { out: Map<Unit, Set<Unit>>; into: Map<Unit, Set<Unit>> } {
    if (this.#edges) return this.#edges;
    const out = new Map<Unit, Set<Unit>>(this.#units.map((unit) => [unit, new Set()]));
    const into = new Map<Unit, Set<Unit>>(this.#units.map((unit) => [unit, new Set()]));
    for (let k = 0; k < this.#wires.length; k += 2) {
      const [from, to] = [this.#holder[this.#wires[k] ?? -1], this.#holder[this.#wires[k + 1] ?? -1]];
      if (!from || !to || from === to) continue;
      out.get(from)?.add(to);
      into.get(to)?.add(from);
    }
    this.#edges = { out, into };
    return this.#edges;
  }

  /** Those merges that make no cycle; where some together make one, none of these. */
  #safe(wanted: readonly Merge[]): readonly Merge[] {
    let kept = wanted;
    while (kept.length > 0) {
      const bad = this.#onCycles(kept);
      if (bad.size === 0) break;
      kept = kept.filter((one) => !bad.has(one));
    }
    return kept;
  }

  #onCycles(wanted: readonly Merge[]): Set<Merge> {
    const joined = new Joined(this.#knots);
    const index = new Map<Unit, number>();
    for (const unit of this.#units) index.set(unit, joined.join(itemsOf(unit)));
    const ends = wanted.map(({ members }) => joined.joinAll(members.map((unit) => index.get(unit) ?? 0)));
    const [names, count] = joined.numbers();
    const wires = Int32Array.from(this.#wires, (item) => names[item] ?? 0);
    const knots = components(count, wires);
    const sizes = new Map<number, number>();
    for (const knot of knots) sizes.set(knot, (sizes.get(knot) ?? 0) + 1);
    return new Set(wanted.filter((_, k) => (sizes.get(knots[names[ends[k] ?? 0] ?? 0] ?? 0) ?? 1) > 1));
  }
}

const NONE: ReadonlySet<Unit> = new Set();

/** The boxes of the beginning that a unit holds. */
export function itemsOf(unit: Unit): number[] {
  const found: number[] = [];
  const stack: Unit[] = [unit];
  for (let at = stack.pop(); at; at = stack.pop()) {
    if (at.item >= 0) found.push(at.item);
    for (const member of at.members) stack.push(member);
  }
  return found;
}

function mergedUnit({ members, group }: Merge): Unit {
  const sorted = [...members].sort((a, b) => a.first - b.first);
  return {
    first: sorted[0]?.first ?? 0, hash: mix(hashBag(sorted.map(({ hash }) => hash)), group.kind.length), lane: laneOf(sorted),
    size: sorted.reduce((sum, { size }) => sum + size, 0), item: -1, group, members: sorted,
    isParameter: sorted.every(({ isParameter }) => isParameter),
  };
}

/** What is part of the model makes the whole part of it. */
export function laneOf(members: readonly { readonly lane: Lane }[]): Lane {
  const order: readonly Lane[] = ["model", "gradient", "optimizer", "aside"];
  return order.find((lane) => members.some((one) => one.lane === lane)) ?? "model";
}

/** Sets of numbers that grow together. */
class Joined {
  readonly #up: number[];

  constructor(knots: readonly number[]) {
    this.#up = knots.map((_, i) => i);
    const first = new Map<number, number>();
    knots.forEach((knot, i) => this.#link(i, first.get(knot) ?? (first.set(knot, i), i)));
  }

  join(items: readonly number[]): number {
    const [head = 0] = items;
    for (const item of items) this.#link(item, head);
    return head;
  }

  joinAll(items: readonly number[]): number {
    return this.join(items);
  }

  #find(item: number): number {
    let at = item;
    while (this.#up[at] !== at) {
      this.#up[at] = this.#up[this.#up[at] ?? at] ?? at;
      at = this.#up[at] ?? at;
    }
    return at;
  }

  #link(a: number, b: number): void {
    this.#up[this.#find(a)] = this.#find(b);
  }

  /** A number for each item, from 0 without a gap, and how many there are. */
  numbers(): [number[], number] {
    const names = new Map<number, number>();
    const found = this.#up.map((_, i) => {
      const root = this.#find(i);
      const name = names.get(root) ?? names.size;
      names.set(root, name);
      return name;
    });
    return [found, names.size];
  }
}

/** Numbers of the strongly connected components, by Tarjan's algorithm without recursion. */
export function components(count: number, wires: Wires): number[] {
  const starts = new Int32Array(count + 1);
  for (let k = 0; k < wires.length; k += 2) starts[(wires[k] ?? 0) + 1]! += 1;
  for (let i = 0; i < count; i++) starts[i + 1]! += starts[i]!;
  const fill = starts.slice();
  const targets = new Int32Array(wires.length / 2);
  for (let k = 0; k < wires.length; k += 2) targets[fill[wires[k]!]!++] = wires[k + 1]!;
  const order = new Int32Array(count).fill(-1);
  const low = new Int32Array(count);
  const found = new Array<number>(count).fill(-1);
  const path: number[] = [];
  const next = starts.slice();
  let time = 0;
  let number = 0;
  for (let start = 0; start < count; start++) {
    if (order[start] !== -1) continue;
    const calls = [start];
    while (calls.length > 0) {
      const at = calls[calls.length - 1]!;
      if (order[at] === -1) {
        order[at] = low[at] = time++;
        path.push(at);
      }
      if (next[at]! < starts[at + 1]!) {
        const to = targets[next[at]!++]!;
        if (order[to] === -1) calls.push(to);
        else if (found[to] === -1) low[at] = Math.min(low[at]!, order[to]!);
        continue;
      }
      calls.pop();
      const above = calls[calls.length - 1];
      if (above !== undefined) low[above] = Math.min(low[above]!, low[at]!);
      if (low[at] !== order[at]) continue;
      for (let one = path.pop(); one !== undefined; one = path.pop()) {
        found[one] = number;
        if (one === at) break;
      }
      number += 1;
    }
  }
  return found;
}

/**
 * The units in an order in which data runs forward: as the program made them, but a variable that only one other box
 * takes, and what fills it, stand before that. Any stretch of it can be merged without a cycle.
 */
export function sequenceOf(level: Level): Unit[] {
  const found: Unit[] = [];
  const state = new Map<Unit, "begun" | "done">();
  const isLazy = lazyUnits(level);
  for (const start of [...level.units.filter((unit) => !isLazy.has(unit)), ...level.units]) {
    const stack: Unit[] = [start];
    while (stack.length > 0) {
      const at = stack[stack.length - 1]!;
      if (state.has(at)) {
        stack.pop();
        if (state.get(at) === "begun") {
          state.set(at, "done");
          found.push(at);
        }
        continue;
      }
      state.set(at, "begun");
      const before = [...level.into(at)].filter((unit) => !state.has(unit)).sort((a, b) => b.first - a.first);
      stack.push(...before);
    }
  }
  return found;
}

function lazyUnits(level: Level): Set<Unit> {
  const found = new Set<Unit>();
  for (const unit of level.units) {
    const into = [...level.into(unit)];
    const holds = unit.isParameter || unit.lane === "aside";
    const takers = [...level.out(unit)].filter(({ lane }) => lane === "model" || unit.lane !== "model");
    if (holds && takers.length === 1 && into.every((one) => found.has(one))) found.add(unit);
  }
  return found;
}
