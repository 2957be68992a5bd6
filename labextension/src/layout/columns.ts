/**
 * Which boxes of a scope make the main drawing, which stand beside one of those, which in columns on the right, and
 * which aside. Pure.
 */
import type { Lane } from "../rules/types.js";
import type { BoxInput, ScopeInput } from "./types.js";

export interface Columns {
  readonly main: readonly BoxInput[];
  /** Boxes of the main drawing -> their gradients. */
  readonly beside: ReadonlyMap<string, readonly BoxInput[]>;
  readonly sides: readonly (readonly BoxInput[])[];
  readonly aside: readonly BoxInput[];
}

/** Gradients beside one box, at most; more would make it a tower. */
const MOST_BESIDE = 3;

const ORDER: readonly Lane[] = ["model", "gradient", "optimizer", "aside"];

/** The first lane that has boxes is the main one; a scope of gradients alone is drawn like any other. */
export function columnsOf({ boxes }: ScopeInput): Columns {
  const first = ORDER.find((lane) => boxes.some((box) => laneOf(box) === lane)) ?? "model";
  const isMain = (box: BoxInput): boolean => laneOf(box) === first;
  const main = boxes.filter(isMain);
  const ids = new Set(main.map(({ id }) => id));
  const beside = new Map<string, BoxInput[]>();
  const sides = new Map<Lane, BoxInput[]>();
  for (const box of boxes) {
    if (isMain(box)) continue;
    const list = beside.get(box.beside ?? "") ?? [];
    if (box.beside != null && ids.has(box.beside) && list.length < MOST_BESIDE) beside.set(box.beside, [...list, box]);
    else sides.set(laneOf(box), [...(sides.get(laneOf(box)) ?? []), box]);
  }
  const columns = (["gradient", "optimizer"] as const).map((lane) => sides.get(lane) ?? []);
  return { main, beside, sides: columns.filter((column) => column.length > 0), aside: sides.get("aside") ?? [] };
}

const laneOf = ({ lane }: BoxInput): Lane => lane ?? "model";
