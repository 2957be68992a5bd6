/** Running loops as people read them, and where what moves is seen. Pure. */
import type { FrameState, Iteration, RunState } from "../wire/messages.js";
import { plural, significant, whole } from "./figures.js";
import type { BoxId } from "./ids.js";
import { shortName } from "./scopes.js";

/** One iteration of one running frame, as a user has chosen it. */
export interface ChosenIteration {
  readonly frame: string;
  readonly number: number;
}

const SPACE = "\u00a0";

/** Iterations that have begun and have not ended. */
export function inFlight({ window: iterations }: FrameState): number {
  return iterations.filter(({ state, finished }) => state === "running" || (state === "waiting" && finished > 0)).length;
}

/** Frames as a tree is read: each before those in it, and these from the oldest iteration on. */
export function inOrder(frames: readonly FrameState[]): FrameState[] {
  const within = new Map<string | null, FrameState[]>();
  const ids = new Set(frames.map(({ id }) => id));
  for (const frame of frames) {
    const around = frame.parent !== null && ids.has(frame.parent) ? frame.parent : null;
    within.set(around, [...(within.get(around) ?? []), frame]);
  }
  const found: FrameState[] = [];
  const stack: FrameState[] = [];
  const push = (around: string | null): void => {
    const age = ({ parent_iteration: number }: FrameState): number => number ?? 0;
    stack.push(...(within.get(around) ?? []).sort((a, b) => age(b) - age(a) || b.loop - a.loop));
  };
  push(null);
  for (let frame = stack.pop(); frame; frame = stack.pop()) {
    found.push(frame);
    push(frame.id);
  }
  return found;
}

/** How quickly a frame moves, for which of two is shown where not all can be. */
function busyness(frame: FrameState): number {
  return (frame.iterations_per_s ?? 0) + inFlight(frame);
}

/**
 * As many frames as can be read, as a tree: those nearest to the root first, of these the busiest, and always
 * those that they run in. Then how many more there are.
 */
export function readable(frames: readonly FrameState[], most: number): { shown: FrameState[]; more: number } {
  const all = inOrder(frames);
  if (all.length <= most) return { shown: all, more: 0 };
  const byId = new Map(frames.map((frame) => [frame.id, frame]));
  const depth = new Map(all.map((frame) => [frame, depthOf(frame, byId)]));
  const nearest = [...all].sort((a, b) => (depth.get(a) ?? 0) - (depth.get(b) ?? 0) || busyness(b) - busyness(a));
  const kept = new Set(nearest.slice(0, most));
  return { shown: all.filter((frame) => kept.has(frame)), more: all.length - most };
}

/** "i = 412", and "i = 412, 8 in flight" where several overlap. */
export function chipText(frame: FrameState): string {
  const count = inFlight(frame);
  return `i = ${whole(frame.iteration)}${count > 1 ? `, ${whole(count)} in flight` : ""}`;
}

/** A loop's short name: "inner" of "outer/body/inner/Loop". */
export function nameText({ name }: FrameState): string {
  return shortName(name.replace(/\/Loop$/, ""));
}

/** "412 / 1 000", or "412" where no limit is known. */
export function countText({ iteration, limit }: FrameState): string {
  return limit === null ? whole(iteration) : `${whole(iteration)}${SPACE}/${SPACE}${whole(limit)}`;
}

/** How much of a loop is done, 0 to 1; null where that is not known. */
export function shareOf({ iteration, limit }: FrameState): number | null {
  return limit === null || limit <= 0 ? null : Math.min(1, iteration / limit);
}

/** "1 230 it/s"; "" where no iteration has ended for a while. */
export function paceText(perSecond: number | null): string {
  return perSecond === null || perSecond === 0 ? "" : `${significant(perSecond)}${SPACE}it/s`;
}

/** "1.2 MB kept of 40 MB"; "" where nothing is kept. */
export function keptText({ kept_bytes: kept, kept_estimate_bytes: estimate }: FrameState): string {
  if (kept === null && estimate === null) return "";
  if (kept === null) return `will keep ${bytesText(estimate ?? 0)}`;
  return estimate === null ? `${bytesText(kept)} kept` : `${bytesText(kept)} kept of ${bytesText(estimate)}`;
}

/** Bytes -> "1.20 MB". */
export function bytesText(bytes: number): string {
  const units: readonly [number, string][] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [size, unit] = units.find(([unitSize]) => bytes >= unitSize * 0.9995) ?? [1, "B"];
  return `${unit === "B" ? whole(bytes) : significant(bytes / size)}${SPACE}${unit}`;
}

/** "iteration 412: running, 3 of 7 ops". */
export function iterationText({ number, state, finished, total }: Iteration): string {
  const isOnTheWay = state === "running" || (state === "waiting" && finished > 0);
  const done = isOnTheWay && total > 0 ? `, ${whole(finished)} of ${plural(total, "op")}` : "";
  return `iteration ${whole(number)}: ${state}${done}`;
}

/** "12 of outer" and what it is doing: the iteration that is chosen, in words. */
export function chosenText(chosen: ChosenIteration, frame: FrameState): string {
  const { window: iterations } = frame;
  const iteration = iterations.find(({ number }) => number === chosen.number);
  const state = iteration ? iterationText(iteration).replace(/^[^:]*: /, "") : "no longer in flight";
  return `${whole(chosen.number)} of ${nameText(frame)}, ${state}`;
}

/** How deep a frame lies in others. */
export function depthOf(frame: FrameState, frames: ReadonlyMap<string, FrameState>): number {
  let depth = 0;
  for (let at = frame; at.parent !== null; depth++) {
    const around = frames.get(at.parent);
    if (!around || depth > frames.size) break;
    at = around;
  }
  return depth;
}

/** Whether a frame runs in an iteration of another frame, or in a frame of it. */
export function belongsTo(frame: FrameState, chosen: ChosenIteration, frames: ReadonlyMap<string, FrameState>): boolean {
  let at: FrameState | undefined = frame;
  for (let steps = 0; at && at.parent !== null && steps <= frames.size; steps++) {
    if (at.parent === chosen.frame) return at.parent_iteration === chosen.number;
    at = frames.get(at.parent);
  }
  return false;
}

/** Whether nothing is left to be shown of a run. */
export function isOver(run: RunState | null): boolean {
  return run === null || (run.frames.length === 0 && run.position === null);
}

export interface Chip {
  readonly box: BoxId;
  readonly text: string;
}

/** One chip per box: of the outermost frame there, how many more there are, and the iteration that is chosen. */
export function chipsOf(
  run: RunState | null, boxOf: (loop: number) => BoxId | null, chosen: ChosenIteration | null = null,
): Chip[] {
  const byBox = new Map<BoxId, { first: FrameState; more: number }>();
  for (const frame of run?.frames ?? []) {
    const box = boxOf(frame.loop);
    if (box === null) continue;
    const known = byBox.get(box);
    if (known) known.more += 1;
    else byBox.set(box, { first: frame, more: 0 });
  }
  return [...byBox].map(([box, { first, more }]) => {
    const note = chosen?.frame === first.id ? `, ${whole(chosen.number)} chosen` : "";
    return { box, text: `${chipText(first)}${note}${more > 0 ? `, ${more} more` : ""}` };
  });
}
