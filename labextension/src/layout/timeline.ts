/**
 * What of a timeline is seen, and where. A slice that is narrower than a pixel is merged with its neighbours: a row gives at
 * most one mark per pixel, however many slices it has. Pure.
 */
import { firstAfter, type Row, type Slices } from "../model/timeline_rows.js";

/** The part of time that is seen. */
export interface TimeWindow {
  readonly begin_ns: number;
  readonly ns_per_px: number;
}

/** Narrower slices are merged. */
const LEAST_PX = 1;
/** Merged slices with less than this between them are one mark. */
const LEAST_GAP_PX = 1;
/** Zoomed in, a pixel is this much at least. */
export const FINEST_NS_PER_PX = 0.5;

/** The marks of one row, as columns that are filled anew for each picture. */
export class SeenRow {
  count = 0;
  x = new Float32Array(256);
  w = new Float32Array(256);
  /** The slices from the first to the last one, in one mark. */
  first = new Int32Array(256);
  last = new Int32Array(256);

  add(x: number, w: number, first: number, last: number): void {
    if (this.count === this.x.length) this.#grow();
    this.x[this.count] = x;
    this.w[this.count] = w;
    this.first[this.count] = first;
    this.last[this.count] = last;
    this.count += 1;
  }

  /** The mark at a place; -1 for none. A merged mark is met a little beside it, too. */
  at(x: number): number {
    for (let i = 0; i < this.count; i++) {
      const [left, width] = [this.x[i] ?? 0, this.w[i] ?? 0];
      const slack = width < 3 ? 2 : 0;
      if (x >= left - slack && x <= left + width + slack) return i;
    }
    return -1;
  }

  #grow(): void {
    const grown = <T extends Float32Array | Int32Array>(column: T, other: T): T => (other.set(column as never), other);
    const size = 2 * this.x.length;
    this.x = grown(this.x, new Float32Array(size));
    this.w = grown(this.w, new Float32Array(size));
    this.first = grown(this.first, new Int32Array(size));
    this.last = grown(this.last, new Int32Array(size));
  }
}

/** Fills in the marks of a row that lie in sight, so many pixels wide. */
export function see(slices: Slices, { begin_ns, ns_per_px }: TimeWindow, width: number, into: SeenRow): void {
  into.count = 0;
  const end = begin_ns + width * ns_per_px;
  let [mergedFrom, mergedTo, mergedX, mergedEnd] = [-1, -1, 0, 0];
  const flush = (): void => {
    if (mergedFrom >= 0) into.add(mergedX, Math.max(LEAST_PX, mergedEnd - mergedX), mergedFrom, mergedTo);
    mergedFrom = -1;
  };
  for (let i = firstAfter(slices, begin_ns); i < slices.count; i++) {
    const from = slices.begin_ns[i] ?? 0;
    if (from >= end) break;
    const x = (from - begin_ns) / ns_per_px;
    const right = ((slices.end_ns[i] ?? 0) - begin_ns) / ns_per_px;
    if (right - x >= LEAST_PX) {
      flush();
      into.add(x, right - x, i, i);
      continue;
    }
    // All that ends before the next pixel begins is narrower than one.
    const next = firstAfter(slices, begin_ns + (Math.floor(x) + 1) * ns_per_px, i + 1);
    if (mergedFrom >= 0 && x - mergedEnd > LEAST_GAP_PX) flush();
    if (mergedFrom < 0) [mergedFrom, mergedX] = [i, x];
    mergedTo = Math.max(i, next - 1);
    mergedEnd = ((slices.end_ns[mergedTo] ?? 0) - begin_ns) / ns_per_px;
    i = mergedTo;
  }
  flush();
}

/** Zooms so that the time at `x` stays where it is seen; the whole of an extent is the most that is seen. */
export function zoomTime(sight: TimeWindow, factor: number, x: number, most_ns_per_px: number): TimeWindow {
  const ns_per_px = Math.min(most_ns_per_px, Math.max(FINEST_NS_PER_PX, sight.ns_per_px / factor));
  return { ns_per_px, begin_ns: sight.begin_ns + x * (sight.ns_per_px - ns_per_px) };
}

/** Steps between the marks of a ruler: 1, 2 or 5 times a power of ten, at least so many pixels apart. */
export function tickStep(ns_per_px: number, least_px: number): number {
  const rough = ns_per_px * least_px;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((n) => n * power >= rough) ?? 10);
}

export interface PlacedRow {
  readonly row: Row;
  readonly y: number;
}

export interface PlacedLane {
  readonly lane: number;
  readonly y: number;
  readonly h: number;
  readonly rows: readonly PlacedRow[];
}

export const ROW_PX = 18;
const LANE_GAP_PX = 5;

/** Lanes under each other, with what they hold; those without slices are left out. */
export function placeLanes(rows: readonly Row[]): { readonly lanes: readonly PlacedLane[]; readonly h: number } {
  const lanes: PlacedLane[] = [];
  let y = 0;
  for (let i = 0; i < rows.length;) {
    const lane = rows[i]?.lane ?? 0;
    const own = rows.filter((row) => row.lane === lane);
    lanes.push({ lane, y, h: own.length * ROW_PX, rows: own.map((row, k) => ({ row, y: y + k * ROW_PX })) });
    y += own.length * ROW_PX + LANE_GAP_PX;
    i += own.length;
  }
  return { lanes, h: Math.max(0, y - LANE_GAP_PX) };
}
