/** Constants: what a model of many knows before a step runs stands in the box of what alone takes it. Pure. */
import { isDefaultName, readable, type Facts, type Texts } from "./labels.js";
import type { Level, Merge, Unit } from "./level.js";
import { MOST_CONSTANTS } from "./types.js";

/** Merges each box with the constants that it alone takes, and others among themselves, where a level has many; whether anything was merged. */
export function foldConstants(level: Level, texts: Texts): boolean {
  const constants = level.units.filter(({ isConstant }) => isConstant);
  if (constants.length <= MOST_CONSTANTS || constants.length === level.units.length) return false;
  const owned = new Map<Unit, Unit[]>();
  const others: Unit[] = [];
  const known = new Map<Unit, Unit | null>();
  for (const unit of constants) {
    const owner = ownerOf(level, unit, known);
    if (owner === null) others.push(unit);
    if (owner === null || owner.group !== null) continue;
    const members = owned.get(owner);
    if (members) members.push(unit);
    else owned.set(owner, [unit]);
  }
  const wanted = [...owned].map(([owner, members]): Merge => ({
    members: [owner, ...members], group: { kind: "layer", title: titleOf(texts(owner.item)), detail: "", count: 1, carries: null },
  }));
  const [shared, unused] = [others.filter((unit) => level.out(unit).length > 0), others.filter((unit) => level.out(unit).length === 0)];
  for (const [members, title] of [[shared, "constants"], [unused, "unused constants"]] as const) {
    if (members.length > FEW) wanted.push({ members, group: { kind: "aside", title, detail: "", count: 1, carries: null } });
  }
  return level.merge(wanted).length > 0;
}

/** Constants without an owner that stand for themselves at most. */
const FEW = 4;

/** The only box that takes a constant, or what is made of it; null where there are several, or none. */
function ownerOf(level: Level, start: Unit, known: Map<Unit, Unit | null>): Unit | null {
  const stack = [start];
  for (let at = stack[stack.length - 1]; at; at = stack[stack.length - 1]) {
    const takers = level.out(at);
    const open = takers.filter((taker) => taker.isConstant && !known.has(taker));
    if (open.length > 0) {
      // Nothing leads back to it while it is open: constants make no cycle.
      stack.push(...open);
      continue;
    }
    const owners = new Set(takers.map((taker) => (taker.isConstant ? (known.get(taker) ?? null) : taker)));
    const [only] = owners;
    known.set(at, owners.size === 1 ? (only ?? null) : null);
    stack.pop();
  }
  return known.get(start) ?? null;
}

/** By its own name where it has one, without the number that makes it unique; else by what it computes. */
function titleOf({ name, type }: Facts): string {
  return readable(type !== "" && isDefaultName(name, type) ? type : name.replace(/_\d+$/, "") || name);
}
