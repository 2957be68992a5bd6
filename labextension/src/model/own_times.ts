/** The own time of each span of a recorded step: what runs inside it is not counted. Pure. */
import type { Recording } from "./recording.js";

/** Nanoseconds, by span. Within a lane spans nest or follow each other. */
export function ownTimes({ spans, lanes }: Pick<Recording, "spans" | "lanes">): Float64Array {
  const own = new Float64Array(spans.count);
  const byLane: number[][] = lanes.map(() => []);
  for (let i = 0; i < spans.count; i++) byLane[spans.lane[i] ?? -1]?.push(i);
  const begin = (i: number): number => spans.begin_ns[i] ?? 0;
  const end = (i: number): number => spans.end_ns[i] ?? 0;
  for (const lane of byLane) {
    lane.sort((a, b) => begin(a) - begin(b) || end(b) - end(a));
    const around: number[] = [];
    for (const i of lane) {
      while (around.length > 0 && end(around[around.length - 1]!) <= begin(i)) around.pop();
      const outer = around[around.length - 1];
      own[i] = end(i) - begin(i);
      // A clock's grain may let the inner span end a little later.
      if (outer !== undefined) own[outer] = Math.max(0, own[outer]! - (Math.min(end(i), end(outer)) - begin(i)));
      around.push(i);
    }
  }
  return own;
}
