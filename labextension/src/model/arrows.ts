/** Arrows of a timeline: from the device that sends a value to the one that gets it. Pure. */
import type { Recording } from "./recording.js";

/** From the begin of a transfer in its sender's lane to its end in its receiver's. */
export interface Arrow {
  readonly span: number;
  readonly node: number;
  readonly from: number;
  readonly to: number;
  readonly begin_ns: number;
  readonly end_ns: number;
}

/** More arrows than these hide what they lead to: then only those that are marked are drawn. */
export const MOST_ARROWS = 48;

/** The arrows of a recording, in the order in which values were sent. Several spans that are told as one have none. */
export function arrowsOf({ lanes, spans }: Recording): Arrow[] {
  const devices = new Map(lanes.flatMap(({ name, kind }, i) => (kind === "device" ? [[deviceOf(name), i] as const] : [])));
  const ends = lanes.map(({ name, kind }) => (kind === "transfer" ? name.split(" \u2192 ").map((end) => devices.get(deviceOf(end))) : []));
  const arrows: Arrow[] = [];
  for (let span = 0; span < spans.count; span++) {
    const [from, to] = ends[spans.lane[span] ?? -1] ?? [];
    const node = spans.node[span] ?? -1;
    if (from === undefined || to === undefined || node < 0) continue;
    arrows.push({ span, node, from, to, begin_ns: spans.begin_ns[span] ?? 0, end_ns: spans.end_ns[span] ?? 0 });
  }
  return arrows.sort((a, b) => a.begin_ns - b.begin_ns);
}

/** The arrows to be drawn of those that are in sight: all, or where these are many, the marked ones alone. */
export function arrowsInSight(arrows: readonly Arrow[], begin_ns: number, end_ns: number, isMarked: (arrow: Arrow) => boolean): Arrow[] {
  const seen = arrows.filter((arrow) => arrow.end_ns >= begin_ns && arrow.begin_ns <= end_ns);
  return seen.length <= MOST_ARROWS ? seen : seen.filter(isMarked).slice(0, MOST_ARROWS);
}

/** The device of a lane; behind that of another process stands how wrong its clock may be. */
const deviceOf = (name: string): string => name.replace(/ \u00b1 .*$/, "");
