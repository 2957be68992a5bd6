/** The order in which rules look for repeats and parts. Pure. */
import type { Level, Unit } from "./level.js";

/** A tail that is longer is sorted by the engine. */
const FEW_TO_SORT = 32;

/**
 * The units in an order in which data runs forward: as the program made them, but a variable that only one other box
 * takes, and what fills it, stand before that. Any stretch of it can be merged without a cycle.
 */
export function sequenceOf(level: Level): Unit[] {
  const { units, giving: { starts, ends, list } } = level;
  const found: Unit[] = [];
  /** 1: begun, 2: done. */
  const state = new Uint8Array(units.length);
  const isLazy = lazyUnits(level);
  const stack: number[] = [];
  const visit = (start: number): void => {
    stack.push(start);
    while (stack.length > 0) {
      const at = stack[stack.length - 1]!;
      if (state[at] !== 0) {
        stack.pop();
        if (state[at] === 2) continue;
        state[at] = 2;
        found.push(units[at]!);
        continue;
      }
      state[at] = 1;
      const base = stack.length;
      for (let k = starts[at]!; k < ends[at]!; k++) if (state[list[k]!] === 0) stack.push(list[k]!);
      if (stack.length > base + 1) sortTail(stack, base, units);
    }
  };
  for (let i = 0; i < units.length; i++) if (isLazy[i] === 0) visit(i);
  for (let i = 0; i < units.length; i++) visit(i);
  return found;
}

/** The position in a sequence of each unit, by its position in the level. */
export function placesOf(sequence: readonly Unit[]): Int32Array {
  const places = new Int32Array(sequence.length);
  for (let i = 0; i < places.length; i++) places[sequence[i]!.at] = i;
  return places;
}

/** Puts what was made last first; insertion keeps the order of equals. */
function sortTail(stack: number[], base: number, units: readonly Unit[]): void {
  if (stack.length - base > FEW_TO_SORT) {
    const tail = stack.splice(base).sort((a, b) => units[b]!.first - units[a]!.first);
    for (const one of tail) stack.push(one);
    return;
  }
  for (let i = base + 1; i < stack.length; i++) {
    const one = stack[i]!;
    let k = i;
    for (; k > base && units[stack[k - 1]!]!.first < units[one]!.first; k--) stack[k] = stack[k - 1]!;
    stack[k] = one;
  }
}

/** 1 for what waits for its only taker. */
function lazyUnits(level: Level): Uint8Array {
  const { units, giving, taking } = level;
  const found = new Uint8Array(units.length);
  for (let i = 0; i < units.length; i++) {
    const { isParameter, isConstant, lane } = units[i]!;
    if ((!isParameter || isConstant) && lane !== "aside") continue;
    let takers = 0;
    for (let k = taking.starts[i]!; k < taking.ends[i]!; k++) if (lane !== "model" || units[taking.list[k]!]!.lane === "model") takers += 1;
    let isFed = true;
    for (let k = giving.starts[i]!; k < giving.ends[i]!; k++) isFed &&= found[giving.list[k]!] === 1;
    if (takers === 1 && isFed) found[i] = 1;
  }
  return found;
}
