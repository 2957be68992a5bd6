/** Parts: where a level has more boxes than its budget, stretches of its sequence become parts of their own. Pure. */
import { partTitle, type Texts } from "./labels.js";
import type { Level, Merge, Unit } from "./level.js";
import { placesOf, sequenceOf } from "./sequence.js";
import type { Sliced } from "../wire/sliced.js";
import { LIMITS, type Lane } from "./types.js";

/** Parts that a level of too many is cut to, about. */
const WISHED = 20;

/** Cuts each lane's units into stretches with few edges between them; whether anything was merged. */
export function* foldParts(level: Level, texts: Texts, most: number): Sliced<boolean> {
  if (level.units.length <= most) return false;
  const sequence = sequenceOf(level);
  const lanes = new Map<Lane, Unit[]>();
  for (const unit of sequence) {
    const known = lanes.get(unit.lane);
    if (known) known.push(unit);
    else lanes.set(unit.lane, [unit]);
  }
  const cuts = cutsOf(level, sequence);
  yield;
  const wanted: Merge[] = [];
  for (const units of lanes.values()) {
    const share = Math.max(2, Math.round((WISHED * units.length) / sequence.length));
    if (units.length > share + 2) wanted.push(...(yield* partsOf(units, sizeFor(units.length / share), cuts, texts)));
  }
  return level.merge(wanted).length > 0;
}

/** A power of two: what is added later moves no cut that stood. */
function sizeFor(wished: number): number {
  return 2 ** Math.max(1, Math.ceil(Math.log2(wished)));
}

/** How many units' values cross the gap behind each unit, by its position in the level. */
function cutsOf({ taking: { starts, ends, list } }: Level, sequence: readonly Unit[]): Int32Array {
  const place = placesOf(sequence);
  const change = new Int32Array(sequence.length + 1);
  sequence.forEach(({ at }, i) => {
    let last = i;
    for (let k = starts[at]!; k < ends[at]!; k++) last = Math.max(last, place[list[k]!]!);
    change[i]! += 1;
    change[last]! -= 1;
  });
  const cuts = new Int32Array(sequence.length);
  let open = 0;
  sequence.forEach(({ at }, i) => (cuts[at] = open += change[i]!));
  return cuts;
}

function* partsOf(units: readonly Unit[], size: number, cuts: Int32Array, texts: Texts): Sliced<Merge[]> {
  const found: Merge[] = [];
  let start = 0;
  while (start < units.length) {
    const end = units.length - start <= LIMITS.lastPart * size ? units.length : bestEnd(units, start, size, cuts);
    const members = units.slice(start, end);
    start = end;
    if (members.length < 2) continue;
    const { title, detail } = partTitle(members, texts);
    found.push({ members, group: { kind: "part", title, detail, count: 1, carries: null } });
    yield;
  }
  return found;
}

/** Where fewest values cross, within a third of the size around it; the nearest to the size of equals. */
function bestEnd(units: readonly Unit[], start: number, size: number, cuts: Int32Array): number {
  let best = start + size;
  let least = Infinity;
  for (let end = start + Math.ceil(LIMITS.leastPart * size); end <= Math.min(units.length, start + Math.floor(LIMITS.mostPart * size)); end++) {
    const last = units[end - 1];
    const cost = (last ? cuts[last.at]! : 0) + Math.abs(end - start - size) / (2 * size);
    if (cost < least) [best, least] = [end, cost];
  }
  return Math.min(best, units.length);
}
