/** What the operations cost in one recorded step, and on which devices they ran. Pure. */
import type { GraphModel } from "./graph.js";
import { heatFrom, type Heat } from "./heat.js";
import { ownTimes } from "./own_times.js";
import { isComplete, type Recording } from "./recording.js";

/** A step that was gone back to. */
export interface StepHeat extends Heat {
  readonly step: number;
  /** Whether spans that were too narrow to be told are left out. */
  readonly isPart: boolean;
  /** Where each operation ran. */
  readonly devices: ReadonlyMap<number, string>;
}

export function heatOfStep(recording: Recording, nodes: GraphModel["nodes"]): StepHeat {
  const { spans, lanes } = recording;
  const own = ownTimes(recording);
  const size = recording.nodes.length;
  const [count, self_ns, total_ns] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  for (let i = 0; i < spans.count; i++) {
    const node = spans.node[i] ?? -1;
    const kind = lanes[spans.lane[i] ?? -1]?.kind;
    if (node < 0 || (kind !== "device" && kind !== "helper")) continue;
    count[node]! += spans.stands_for[i] ?? 1;
    self_ns[node]! += own[i] ?? 0;
    total_ns[node]! += (spans.end_ns[i] ?? 0) - (spans.begin_ns[i] ?? 0);
  }
  const ran = recording.nodes.flatMap(({ ops }, k) => (ops.length > 0 && (count[k] ?? 0) > 0 ? [k] : []));
  const all = ran.reduce((sum, k) => sum + (self_ns[k] ?? 0), 0);
  const take = (from: Float64Array): Float64Array => Float64Array.from(ran, (k) => from[k] ?? 0);
  const devices = new Map(ran.flatMap((k) => (recording.nodes[k]?.ops ?? []).map((op) => [op, recording.nodes[k]?.device ?? ""] as const)));
  return {
    ...heatFrom(ran.map((k) => recording.nodes[k]?.ops ?? []), nodes, {
      count: take(count), self_ns: take(self_ns), total_ns: take(total_ns),
      time: Float64Array.from(ran, (k) => (all > 0 ? (self_ns[k] ?? 0) / all : 0)), phase: ran.map((k) => recording.nodes[k]?.phase ?? ""),
    }),
    step: recording.step.number, isPart: !isComplete(recording), devices,
  };
}
