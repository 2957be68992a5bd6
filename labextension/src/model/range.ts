/** What a stretch of a timeline adds up to: own time, count and mean, by operation, lane or scope. Pure. */
import { duration, plural, whole } from "./figures.js";
import { ownTimes } from "./own_times.js";
import type { Recording } from "./recording.js";

export type RangeGrouping = "op" | "lane" | "scope";
export const RANGE_GROUPINGS: readonly RangeGrouping[] = ["op", "lane", "scope"];

export interface TimeRange {
  readonly begin_ns: number;
  readonly end_ns: number;
}

export interface RangeRow {
  readonly key: string;
  readonly name: string;
  /** The node's operations; [] of lanes and scopes. */
  readonly ops: readonly number[];
  readonly sum_ns: number;
  readonly count: number;
  /** Of one slice. */
  readonly mean_ns: number;
}

/**
 * Rows by their sums, the greatest first. A slice that lies partly in the range counts as one, with the part of its own time
 * that its overlap has. Slices that were told as one have no operation and no scope: they are a row of their own.
 */
export function rangeRows(recording: Recording, { begin_ns, end_ns }: TimeRange, by: RangeGrouping): RangeRow[] {
  const { spans, nodes, lanes } = recording;
  const own = ownTimes(recording);
  const found = new Map<string, { name: string; ops: readonly number[]; sum_ns: number; count: number }>();
  for (let i = 0; i < spans.count; i++) {
    const [from, to] = [spans.begin_ns[i] ?? 0, spans.end_ns[i] ?? 0];
    const overlap = Math.min(to, end_ns) - Math.max(from, begin_ns);
    if (overlap < 0 || (overlap === 0 && to > from)) continue;
    const node = nodes[spans.node[i] ?? -1];
    const lane = lanes[spans.lane[i] ?? -1]?.name ?? "";
    const several = (spans.stands_for[i] ?? 1) > 1;
    const name = by === "lane" ? lane : several ? "too narrow to be told apart" : !node ? lane : by === "op" ? node.name : scopeOf(node.name);
    const row = found.get(name) ?? { name, ops: by === "op" && node ? node.ops : [], sum_ns: 0, count: 0 };
    found.set(name, row);
    row.sum_ns += to > from ? ((own[i] ?? 0) * overlap) / (to - from) : 0;
    row.count += spans.stands_for[i] ?? 1;
  }
  return [...found].map(([key, row]) => ({ key, ...row, mean_ns: row.sum_ns / Math.max(1, row.count) }))
    .sort((a, b) => b.sum_ns - a.sum_ns || b.count - a.count || (a.name < b.name ? -1 : 1));
}

const scopeOf = (name: string): string => (name.includes("/") ? name.replace(/[^/]*$/, "") : "outside scopes");

/** "1.20 ms of 4.00 ms, 12 slices". */
export function rangeText({ begin_ns, end_ns }: TimeRange, rows: readonly RangeRow[]): string {
  const slices = rows.reduce((sum, { count }) => sum + count, 0);
  const busy = rows.reduce((sum, { sum_ns }) => sum + sum_ns, 0);
  return `${duration((end_ns - begin_ns) / 1e9)}: ${plural(slices, "slice")}, ${duration(busy / 1e9)} in all lanes`;
}

/** Rows as text, a line each, to be pasted into a table. */
export function rangeTable(rows: readonly RangeRow[]): string {
  return ["name\tsum_us\tcount\tmean_us", ...rows.map(({ name, sum_ns, count, mean_ns }) => `${name}\t${sum_ns / 1e3}\t${whole(count).replace(/\D/g, "")}\t${mean_ns / 1e3}`)].join("\n");
}
