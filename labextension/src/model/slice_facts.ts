/** What is said of slices of a timeline, and what they stand for in the graph. Pure. */
import { duration, plural, shareText, significant, whole } from "./figures.js";
import type { RecordedNode, Recording } from "./recording.js";
import { bytesText, type ChosenIteration } from "./running.js";
import type { Slices } from "./timeline_rows.js";

/** Of more slices that are merged, these are looked at to say which is the longest. */
const MOST_LOOKED_AT = 50_000;
/** Nodes that a merged mark names. */
const MOST_NAMED = 3;

export interface SliceCard {
  readonly title: string;
  readonly lines: readonly string[];
}

/** What a slice, or a stretch of merged ones, stands for; `origin_ns` is what its begin is told from. */
export function sliceCard(recording: Recording, slices: Slices, first: number, last: number, origin_ns: number): SliceCard {
  return last > first ? mergedCard(recording, slices, first, last) : oneCard(recording, slices, first, origin_ns);
}

function oneCard({ nodes, spans, frames, lanes, step }: Recording, slices: Slices, at: number, origin_ns: number): SliceCard {
  const [begin_ns, end_ns] = [slices.begin_ns[at] ?? 0, slices.end_ns[at] ?? 0];
  const span = slices.span[at] ?? -1;
  const first = slices.first[at] ?? 0;
  const frame = frames[spans.frame[first] ?? -1];
  const iteration = frame && `iteration ${whole(spans.iteration[first] ?? 0)} of ${frame.path}`;
  const step_ns = step.end_ns - step.begin_ns;
  const share = step_ns > 0 ? [`${shareText((end_ns - begin_ns) / step_ns)} of the step`] : [];
  const time = [duration((end_ns - begin_ns) / 1e9), ...share].join(", ");
  const begin = `begins at ${duration((begin_ns - origin_ns) / 1e9)}`;
  if (span < 0) return { title: iteration ?? "", lines: [time, begin] };
  const node = nodes[spans.node[span] ?? -1];
  const count = spans.stands_for[span] ?? 1;
  const sent = sentIn(spans, slices, at, at);
  if (count > 1) return { title: `${plural(count, "slice")}, too narrow to be told apart`, lines: [...sent, time, begin, "zoom in to see them"] };
  return {
    title: node?.name ?? lanes[spans.lane[span] ?? -1]?.name ?? "", lines: [
      ...(node ? [[node.type, node.phase].filter(Boolean).join(", ")] : []), ...sent, time, begin,
      ...(iteration ? [iteration] : []), ...(spans.isCritical[span] ? ["on the critical path"] : []),
    ],
  };
}

/** What went over in slices of a lane of transfers, as a line; [] where that is not known, and in other lanes. */
export function sentIn(spans: Recording["spans"], slices: Slices, first: number, last: number): string[] {
  let [bytes, ns] = [0, 0];
  for (let i = first; i <= Math.min(last, first + MOST_LOOKED_AT); i++) {
    const own = spans.bytes[slices.span[i] ?? -1] ?? -1;
    if (own < 0) return [];
    bytes += own;
    ns += (slices.end_ns[i] ?? 0) - (slices.begin_ns[i] ?? 0);
  }
  return bytes > 0 ? [sentText(bytes, ns)] : [];
}

/** "64 kB, 120 MB/s". */
export function sentText(bytes: number, ns: number): string {
  return `${bytesText(bytes)}${ns > 0 ? `, ${significant((bytes / ns) * 1e3)}\u00a0MB/s` : ""}`;
}

function mergedCard({ nodes, spans }: Recording, slices: Slices, first: number, last: number): SliceCard {
  const byNode = new Map<number, { ns: number; count: number }>();
  let [sum_ns, all] = [0, 0];
  for (let i = first; i <= Math.min(last, first + MOST_LOOKED_AT); i++) {
    const ns = (slices.end_ns[i] ?? 0) - (slices.begin_ns[i] ?? 0);
    const span = slices.span[i] ?? -1;
    const node = spans.node[span] ?? -1;
    const known = byNode.get(node) ?? { ns: 0, count: 0 };
    byNode.set(node, { ns: known.ns + ns, count: known.count + 1 });
    sum_ns += ns;
    all += spans.stands_for[span] ?? 1;
  }
  const longest = [...byNode].filter(([node]) => node >= 0).sort(([, a], [, b]) => b.ns - a.ns).slice(0, MOST_NAMED);
  return {
    title: `${plural(all, "slice")}, each narrower than a pixel`,
    lines: [
      ...sentIn(spans, slices, first, last), `${duration(sum_ns / 1e9)} together`,
      ...longest.map(([node, { ns, count }]) => `${nodes[node]?.name ?? ""}: ${duration(ns / 1e9)}${count > 1 ? ` in ${plural(count, "run")}` : ""}`),
      "zoom in to see them",
    ],
  };
}

/** The operation that stands for a node: the one that has its name, else the first. */
export function opOfNode({ name, ops }: RecordedNode, nameOf: (op: number) => string | undefined): number | null {
  return ops.find((op) => nameOf(op) === name) ?? ops.find((op) => nameOf(op) !== undefined) ?? null;
}

/** The iteration that a slice belongs to; null outside loops. */
export function iterationOf({ spans, frames }: Recording, slices: Slices, at: number): ChosenIteration | null {
  const first = slices.first[at] ?? 0;
  const frame = frames[spans.frame[first] ?? -1];
  return frame ? { frame: frame.path, number: spans.iteration[first] ?? 0 } : null;
}
