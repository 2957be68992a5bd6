/**
 * One level of the hierarchy as the rules see it: boxes as numbers, in the order in which the program made them, with edges
 * between them. Merging boxes never makes a cycle that the boxes did not have.
 */
import { components, Joined, neighbours, type Neighbours, type Wires } from "./components.js";
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
  /** A variable, with what reads and fills it; a constant array of weights. */
  readonly isParameter: boolean;
  /** What is known before a step runs: a constant, or what is made of constants alone. */
  readonly isConstant: boolean;
  /** Position among the units of the level that was made of it last: it changes with every merge. */
  at: number;
}

/** Boxes to be merged, and what they become. */
export interface Merge {
  readonly members: readonly Unit[];
  readonly group: Group;
}

export class Level {
  #units: readonly Unit[];
  /** Edges between boxes of the beginning. */
  readonly #wires: Int32Array;
  /** The position of the unit that holds a box of the beginning. */
  readonly #holder: Int32Array;
  #edges: { readonly out: Neighbours; readonly into: Neighbours; readonly wires: Int32Array } | null = null;
  /** Boxes of the beginning that lie on one cycle have the same number. */
  #knots: Int32Array | null = null;
  #isTangled = false;
  /** Where the wires of each box of the beginning stand, by the end that they come from. */
  #wiresFrom: { readonly starts: Int32Array; readonly list: Int32Array } | null = null;
  #numbers: Int32Array | null = null;

  /** `wires` join units by the numbers in `Unit.item`, which are their positions; `holder` says which unit has a number, where it is another. */
  constructor(units: readonly Unit[], wires: Wires, holder: Int32Array = Int32Array.from(units, ({ item }) => item)) {
    this.#units = units;
    this.#wires = wires instanceof Int32Array ? wires : Int32Array.from(wires);
    this.#holder = holder;
    this.#count();
  }

  #count(): void {
    const units = this.#units;
    for (let i = 0; i < units.length; i++) units[i]!.at = i;
  }

  get units(): readonly Unit[] {
    return this.#units;
  }

  /** A level of some of the units alone, or of members of theirs, with the edges between them. Only for a level that was given all of its boxes. */
  inside(members: readonly Unit[]): Level {
    const numbers = (this.#numbers ??= new Int32Array(this.#holder.length).fill(-1));
    const items: number[] = [];
    const holder: number[] = [];
    members.forEach((unit, i) => {
      for (const item of itemsOf(unit)) {
        numbers[item] = items.length;
        items.push(item);
        holder.push(i);
      }
    });
    const wires = this.#wiresAmong(items, numbers);
    for (let k = 0; k < wires.length; k++) wires[k] = numbers[wires[k]!]!;
    for (const item of items) numbers[item] = -1;
    return new Level(members, wires, Int32Array.from(holder));
  }

  /** The wires between some boxes of the beginning, which have numbers, in their order. */
  #wiresAmong(items: readonly number[], numbers: Int32Array): Int32Array {
    const { starts, list } = (this.#wiresFrom ??= wiresByStart(this.#holder.length, this.#wires));
    const found: number[] = [];
    for (const item of items) {
      for (let k = starts[item]!; k < starts[item + 1]!; k++) if (numbers[this.#wires[list[k]! + 1]!]! >= 0) found.push(list[k]!);
    }
    const order = Int32Array.from(found).sort();
    const wires = new Int32Array(2 * order.length);
    for (let k = 0; k < order.length; k++) {
      wires[2 * k] = this.#wires[order[k]!]!;
      wires[2 * k + 1] = this.#wires[order[k]! + 1]!;
    }
    return wires;
  }

  /** The units that a unit takes from. */
  into(unit: Unit): Unit[] {
    return this.#listed(unit, this.#adjacency().into);
  }

  /** The units that take from a unit. */
  out(unit: Unit): Unit[] {
    return this.#listed(unit, this.#adjacency().out);
  }

  /** Positions of neighbours. */
  get taking(): Neighbours {
    return this.#adjacency().out;
  }

  get giving(): Neighbours {
    return this.#adjacency().into;
  }

  #listed({ at }: Unit, { starts, ends, list }: Neighbours): Unit[] {
    const found: Unit[] = [];
    for (let k = starts[at]!; k < ends[at]!; k++) found.push(this.#units[list[k]!]!);
    return found;
  }

  /** Merges boxes, but for those whose merging would make a cycle; returns what came of it. */
  merge(wanted: readonly Merge[]): Unit[] {
    return this.#apply(this.#safe(wanted.filter(({ members }) => members.length > 0)));
  }

  /** Merges stretches of `sequenceOf` this level: where the level has no cycle, they make none. */
  mergeStretches(wanted: readonly Merge[]): Unit[] {
    this.#findKnots();
    return this.#isTangled ? this.merge(wanted) : this.#apply(wanted);
  }

  #findKnots(): Int32Array {
    if (this.#knots) return this.#knots;
    const knots = components(this.#holder.length, this.#wires);
    let most = -1;
    for (const knot of knots) if (knot > most) most = knot;
    this.#isTangled = most + 1 < knots.length;
    return (this.#knots = knots);
  }

  #apply(safe: readonly Merge[]): Unit[] {
    if (safe.length === 0) return [];
    const made = safe.map(mergedUnit);
    const before = this.#units;
    const into: (Unit | undefined)[] = new Array<Unit | undefined>(before.length);
    for (const unit of made) for (const { at } of unit.members) into[at] = unit;
    this.#units = [...before.filter((_, i) => into[i] === undefined), ...made].sort((a, b) => a.first - b.first);
    this.#count();
    for (let i = 0; i < this.#holder.length; i++) {
      const was = this.#holder[i]!;
      this.#holder[i] = (into[was] ?? before[was]!).at;
    }
    this.#edges = null;
    return made;
  }

  #adjacency(): { readonly out: Neighbours; readonly into: Neighbours; readonly wires: Int32Array } {
    if (this.#edges) return this.#edges;
    const wires = new Int32Array(this.#wires.length);
    let length = 0;
    for (let k = 0; k < wires.length; k += 2) {
      const [from, to] = [this.#holder[this.#wires[k]!]!, this.#holder[this.#wires[k + 1]!]!];
      if (from === to) continue;
      wires[length++] = from;
      wires[length++] = to;
    }
    const between = wires.subarray(0, length);
    const count = this.#units.length;
    return (this.#edges = { out: neighbours(count, between, 0), into: neighbours(count, between, 1), wires: between });
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

  /** What is on one cycle already counts as one box. */
  #onCycles(wanted: readonly Merge[]): Set<Merge> {
    const joined = new Joined(this.#units.length);
    const knots = this.#findKnots();
    if (this.#isTangled) joinKnots(joined, knots, this.#holder);
    for (const { members } of wanted) for (const { at } of members) joined.link(at, members[0]!.at);
    const [names, count] = joined.numbers();
    const wires = this.#adjacency().wires.map((unit) => names[unit]!);
    const found = components(count, wires);
    const sizes = new Int32Array(count);
    for (const knot of found) sizes[knot]! += 1;
    return new Set(wanted.filter(({ members }) => sizes[found[names[members[0]!.at]!]!]! > 1));
  }
}

function joinKnots(joined: Joined, knots: Int32Array, holder: Int32Array): void {
  const first = new Int32Array(knots.length).fill(-1);
  for (let i = 0; i < knots.length; i++) {
    const knot = knots[i]!;
    if (first[knot] === -1) first[knot] = holder[i]!;
    else joined.link(holder[i]!, first[knot]!);
  }
}

/** Where wires stand, by the box that they come from. */
function wiresByStart(count: number, wires: Int32Array): { readonly starts: Int32Array; readonly list: Int32Array } {
  const starts = new Int32Array(count + 1);
  for (let k = 0; k < wires.length; k += 2) starts[wires[k]! + 1]! += 1;
  for (let i = 0; i < count; i++) starts[i + 1]! += starts[i]!;
  const fill = starts.slice(0, count);
  const list = new Int32Array(wires.length >> 1);
  for (let k = 0; k < wires.length; k += 2) list[fill[wires[k]!]!++] = k;
  return { starts, list };
}

/** The boxes of the beginning that a unit holds. */
export function itemsOf(unit: Unit): number[] {
  if (unit.item >= 0) return [unit.item];
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
  // Constants of a file stand before all that takes them.
  const lead = sorted.find(({ isConstant }) => !isConstant) ?? sorted[0];
  return {
    first: lead?.first ?? 0, hash: mix(hashBag(sorted.map(({ hash }) => hash)), group.kind.length), lane: laneOf(sorted),
    size: sorted.reduce((sum, { size }) => sum + size, 0), item: -1, group, members: sorted,
    isParameter: sorted.every(({ isParameter }) => isParameter), isConstant: sorted.every(({ isConstant }) => isConstant), at: 0,
  };
}

const ORDER: readonly Lane[] = ["model", "gradient", "optimizer", "aside"];

/** What is part of the model makes the whole part of it. */
export function laneOf(members: readonly { readonly lane: Lane }[]): Lane {
  let found = ORDER.length;
  for (const { lane } of members) {
    if (lane === "model") return lane;
    found = Math.min(found, ORDER.indexOf(lane));
  }
  return ORDER[found] ?? "model";
}
