/**
 * The rows of a timeline: each lane has as many as slices nest in it. A loop's slice holds those of its iterations, these
 * hold what ran in them. In a row slices follow each other and never overlap, so what is seen is found by bisection. Pure.
 */
import type { Recording } from "./recording.js";

/** A span, or an iteration of a loop: what a row shows. */
export interface Slices {
  readonly count: number;
  readonly begin_ns: Float64Array;
  readonly end_ns: Float64Array;
  /** The span; -1 for an iteration, which is known by its first span. */
  readonly span: Int32Array;
  /** The first span inside; of a span itself. */
  readonly first: Int32Array;
}

export interface Row {
  readonly lane: number;
  /** 0 for the outermost slices of a lane. */
  readonly depth: number;
  readonly slices: Slices;
}

interface Rough {
  begin_ns: number;
  end_ns: number;
  span: number;
  first: number;
  /** Of slices that begin and end together the outer one comes first. */
  rank: number;
}

/** The rows of all lanes, in the lanes' order. */
export function rowsOf(recording: Recording): Row[] {
  const byLane = recording.lanes.map((): Rough[] => []);
  const { spans } = recording;
  for (let i = 0; i < spans.count; i++) byLane[spans.lane[i] ?? -1]?.push(roughOf(recording, i));
  byLane.forEach((found, lane) => {
    if (recording.lanes[lane]?.kind === "device") found.push(...iterationsOf(recording, found));
  });
  return byLane.flatMap((found, lane) => nested(found).map((row, depth): Row => ({ lane, depth, slices: packed(row) })));
}

function roughOf({ spans, frames }: Recording, i: number): Rough {
  const depth = frames[spans.frame[i] ?? -1]?.depth ?? -1;
  return { begin_ns: spans.begin_ns[i] ?? 0, end_ns: spans.end_ns[i] ?? 0, span: i, first: i, rank: 2 * (depth + 1) };
}

/** Iterations have no spans of their own: they reach from their first span to the last one. */
function iterationsOf({ spans, frames }: Recording, found: readonly Rough[]): Rough[] {
  const made = new Map<string, Rough>();
  for (const { span, begin_ns, end_ns } of found) {
    const frame = spans.frame[span] ?? -1;
    if (frame < 0) continue;
    const key = `${frame}:${spans.iteration[span] ?? 0}`;
    const known = made.get(key);
    if (!known) {
      made.set(key, { begin_ns, end_ns, span: -1, first: span, rank: 2 * (frames[frame]?.depth ?? 0) + 1 });
      continue;
    }
    known.begin_ns = Math.min(known.begin_ns, begin_ns);
    known.end_ns = Math.max(known.end_ns, end_ns);
  }
  return [...made.values()];
}

/** Slices by how deep they nest, each depth in order. */
function nested(found: Rough[]): Rough[][] {
  const isBefore = (a: Rough, b: Rough): number => a.begin_ns - b.begin_ns || b.end_ns - a.end_ns || a.rank - b.rank;
  if (found.some((one, i) => i > 0 && isBefore(found[i - 1] ?? one, one) > 0)) found.sort(isBefore);
  const rows: Rough[][] = [];
  const around: Rough[] = [];
  for (const one of found) {
    while (around.length > 0 && (around[around.length - 1]?.end_ns ?? 0) <= one.begin_ns) around.pop();
    // What begins and ends in one moment lies in what begins then.
    (rows[around.length] ??= []).push(one);
    around.push(one);
  }
  return rows;
}

function packed(row: readonly Rough[]): Slices {
  return {
    count: row.length, begin_ns: Float64Array.from(row, (one) => one.begin_ns), end_ns: Float64Array.from(row, (one) => one.end_ns),
    span: Int32Array.from(row, (one) => one.span), first: Int32Array.from(row, (one) => one.first),
  };
}

/** The first slice of a row that ends after a time. */
export function firstAfter({ end_ns, count }: Slices, at_ns: number, from = 0): number {
  let [low, high] = [from, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((end_ns[middle] ?? 0) > at_ns) high = middle;
    else low = middle + 1;
  }
  return low;
}
