/**
 * Repeats: stretches of a level's sequence that are built alike, one behind the other, become one stack where each hands
 * something to the next, and one fan where they stand side by side. Names play no part. Pure.
 */
import type { Sliced } from "../wire/sliced.js";
import { hashList, mix } from "./hash.js";
import type { Level, Unit } from "./level.js";
import { repeatTitle, type Texts } from "./labels.js";
import { placesOf, sequenceOf } from "./sequence.js";
import type { Group } from "./types.js";

/** Copies that make a repeat at least; of single operations it takes more. */
const LEAST_COPIES = 3;
const LEAST_OPS = 4;
/** Distances at which repeats are sought at most, by how often something comes again after them. */
const MOST_PERIODS = 60;

/** A stretch of a sequence: `copies` times `period` units from `start`. */
export interface Stretch {
  readonly start: number;
  readonly period: number;
  readonly copies: number;
}

/** The stretches that save most boxes, none of which overlap. */
export function stretchesOf(hashes: readonly number[], isSame: (a: number, b: number, period: number) => boolean, least: (start: number, period: number) => number): Stretch[] {
  const candidates: (Stretch & { readonly saved: number })[] = [];
  for (const period of periodsOf(hashes)) {
    let run = 0;
    for (let i = 0; i + period <= hashes.length; i++) {
      const goesOn = i + period < hashes.length && hashes[i] === hashes[i + period];
      if (goesOn) {
        run += 1;
        continue;
      }
      if (run >= period) candidates.push(...checked({ start: i - run, period, copies: Math.floor(run / period) + 1 }, isSame, least));
      run = 0;
    }
  }
  candidates.sort((a, b) => b.saved - a.saved || a.period - b.period || a.start - b.start);
  const taken = new Uint8Array(hashes.length);
  const found: Stretch[] = [];
  for (const one of candidates) {
    const end = one.start + one.period * one.copies;
    if (taken.subarray(one.start, end).some(Boolean)) continue;
    taken.fill(1, one.start, end);
    found.push(one);
  }
  return found.sort((a, b) => a.start - b.start);
}

/** Distances after which the same comes again, the most frequent ones, short ones first. */
function periodsOf(hashes: readonly number[]): number[] {
  const last = new Map<number, number>();
  const counts = new Map<number, number>();
  hashes.forEach((hash, i) => {
    const before = last.get(hash);
    if (before !== undefined) counts.set(i - before, (counts.get(i - before) ?? 0) + 1);
    last.set(hash, i);
  });
  const frequent = [...counts].filter(([period, count]) => count >= 2 && 2 * period < hashes.length);
  frequent.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return frequent.slice(0, MOST_PERIODS).map(([period]) => period).sort((a, b) => a - b);
}

/** The parts of a stretch whose copies are also wired alike inside. */
function checked(
  { start, period, copies }: Stretch, isSame: (a: number, b: number, period: number) => boolean, least: (start: number, period: number) => number,
): (Stretch & { readonly saved: number })[] {
  const found: (Stretch & { readonly saved: number })[] = [];
  let from = 0;
  for (let k = 1; k <= copies; k++) {
    if (k < copies && isSame(start + (k - 1) * period, start + k * period, period)) continue;
    const begin = start + from * period;
    if (k - from >= least(begin, period)) found.push({ start: begin, period, copies: k - from, saved: (k - from - 1) * period });
    from = k;
  }
  return found;
}

/** Merges the repeats of a level, those that save most first; whether there were any. */
export function* foldRepeats(level: Level, texts: Texts): Sliced<boolean> {
  if (!hasAlike(level.units)) return false;
  const sequence = sequenceOf(level);
  const wiring = wiringOf(level, sequence);
  yield;
  const hashes = sequence.map(({ hash, lane }) => hashList([hash, lane.length]));
  const stretches = stretchesOf(hashes, (a, b, period) => period === 1 || wiring(a, period) === wiring(b, period), (start, period) => {
    const ops = sequence.slice(start, start + period).reduce((sum, { size }) => sum + size, 0);
    return ops < LEAST_OPS ? LEAST_COPIES + 2 : LEAST_COPIES;
  });
  yield;
  const isFolded = foldStretches(level, sequence, stretches, texts);
  yield;
  return isFolded;
}

/** Whether so many units are built alike that there can be a repeat. */
function hasAlike(units: readonly Unit[]): boolean {
  const counts = new Map<number, number>();
  return units.some(({ hash }) => {
    const count = (counts.get(hash) ?? 0) + 1;
    counts.set(hash, count);
    return count >= LEAST_COPIES;
  });
}

/** How the units of one copy are wired among themselves; what was asked for a period is kept until another is. */
function wiringOf({ giving: { starts, ends, list } }: Level, sequence: readonly Unit[]): (start: number, period: number) => number {
  const place = placesOf(sequence);
  const known = new Map<number, number>();
  let knownFor = 0;
  return (start, period) => {
    if (period !== knownFor) known.clear();
    knownFor = period;
    let found = known.get(start);
    if (found !== undefined) return found;
    found = 17;
    for (let i = start; i < start + period; i++) {
      const { at } = sequence[i]!;
      const offsets: number[] = [];
      for (let k = starts[at]!; k < ends[at]!; k++) {
        const offset = place[list[k]!]! - start;
        if (offset >= 0 && offset < period) offsets.push(offset);
      }
      found = hashList(offsets.sort(ascending), mix(found, -1));
    }
    known.set(start, found);
    return found;
  };
}

const ascending = (a: number, b: number): number => a - b;

function foldStretches(level: Level, sequence: readonly Unit[], stretches: readonly Stretch[], texts: Texts): boolean {
  const repeats = stretches.map(({ start, period, copies }) => {
    const parts = Array.from({ length: copies }, (_, k) => sequence.slice(start + k * period, start + (k + 1) * period));
    return { parts, title: repeatTitle(parts[0] ?? [], texts) };
  });
  const isLong = ({ parts: [first] }: { parts: Unit[][] }): boolean => (first?.length ?? 0) > 1;
  const made = new Map(level.mergeStretches(repeats.filter(isLong).flatMap(({ parts, title }) => (
    parts.map((members) => ({ members, group: copyGroup(title) }))
  ))).flatMap((copy) => (copy.members[0] ? [[copy.members[0], copy] as const] : [])));
  const firstOf = (part: readonly Unit[]): Unit | undefined => [...part].sort((a, b) => a.first - b.first)[0];
  const stacks = repeats.flatMap(({ parts, title }) => {
    const units = parts.flatMap((part) => (part.length === 1 ? part : (made.get(firstOf(part) ?? part[0]!) ?? [])));
    if (units.length < parts.length) return [];
    const joined = units.slice(1).filter((unit, k) => level.into(unit).includes(units[k] ?? unit)).length;
    const kind = joined >= parts.length - 2 ? "stack" as const : "fan" as const;
    return [{ members: units, group: { kind, title, detail: "", count: parts.length, carries: null } }];
  });
  return level.mergeStretches(stacks).length > 0;
}

function copyGroup(title: string): Group {
  return { kind: "copy", title, detail: "", count: 1, carries: null };
}

/** Merges units that are built alike and take from the same units, wherever they stand. */
export function foldTwins(level: Level, texts: Texts, least: number): boolean {
  const alike = new Map<string, Unit[]>();
  for (const unit of level.units) {
    if (unit.group?.kind === "fan" || unit.group?.kind === "stack") continue;
    const from = level.into(unit).map(({ at }) => at).sort(ascending);
    const key = `${unit.hash} ${unit.lane} ${from.join(" ")}`;
    const known = alike.get(key);
    if (known) known.push(unit);
    else alike.set(key, [unit]);
  }
  const wanted = [...alike.values()].filter((units) => units.length >= least).map((members) => ({
    members, group: { kind: "fan" as const, title: repeatTitle(members.slice(0, 1), texts), detail: "", count: members.length, carries: null },
  }));
  return level.merge(wanted).length > 0;
}
