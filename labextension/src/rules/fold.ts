/** All rules on one level, in their order. Pure. */
import { foldConstants } from "./constants.js";
import { foldAside, foldUpdates } from "./aside.js";
import type { Texts } from "./labels.js";
import { foldLayers, foldLosses, isSought } from "./layers.js";
import type { Level, Unit } from "./level.js";
import { foldParts } from "./parts.js";
import { foldRepeats, foldTwins } from "./repeats.js";
import type { Sliced } from "../wire/sliced.js";
import { MOST_BOXES } from "./types.js";

/** Boxes that a level has at least before repeats are sought. */
const FEW = 5;
/** Repeats within repeats are folded so often at most. */
const ROUNDS = 6;
const LEAST_TWINS = 4;

export interface Around {
  readonly texts: Texts;
  /** The boxes of the level, by their numbers, that one waits for without taking anything from them. */
  readonly waitsFor: (item: number) => readonly number[];
  /** The optimizer's name, "" where there is none. */
  readonly optimizer: string;
  /** Whether something derives from a unit, or computes how good the model is. */
  readonly isDerived: (unit: Unit) => boolean;
}

/** Whether the rules can find anything to fold: of many boxes they may, of few only layers, losses, and what stands aside. */
export function mayFold(units: readonly Unit[], texts: Texts): boolean {
  if (units.length > FEW) return true;
  const isAside = units.filter(({ lane }) => lane === "aside" || lane === "optimizer").length > 1;
  return isAside || units.some(({ item, lane }) => lane === "model" && isSought(texts(item)));
}

/** Folds a level so that it has no more boxes than its budget, where it can be done. */
export function* foldLevel(level: Level, { texts, waitsFor, optimizer, isDerived }: Around): Sliced<void> {
  foldUpdates(level, texts, waitsFor);
  foldLayers(level, texts);
  yield;
  foldLosses(level, texts, isDerived);
  yield;
  foldConstants(level, texts);
  yield;
  yield* foldEach(level, texts);
  foldAside(level, texts, optimizer);
  yield;
  yield* foldMore(level, texts);
}

function* foldEach(level: Level, texts: Texts): Sliced<void> {
  for (let round = 0; round < ROUNDS && level.units.length > FEW; round++) if (!(yield* foldRepeats(level, texts))) break;
}

/** Folds repeats, and what is still more than the budget. */
export function* foldMore(level: Level, texts: Texts): Sliced<void> {
  yield* foldEach(level, texts);
  if (level.units.length > MOST_BOXES && foldTwins(level, texts, LEAST_TWINS)) yield* foldRepeats(level, texts);
  yield* cutToParts(level, texts);
}

/** Makes parts, and parts of parts, until the level keeps its budget. */
export function* cutToParts(level: Level, texts: Texts): Sliced<void> {
  for (let round = 0; round < ROUNDS && level.units.length > MOST_BOXES; round++) {
    if (!(yield* foldParts(level, texts, MOST_BOXES))) break;
    yield;
  }
}
