/** What the panel Input says: queues with who waits at them, and the runners, coordinators and hooks of a session. Pure. */
import type { HelperState, QueueState, QueueWait, SessionState } from "../wire/messages.js";
import { plural, significant, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { shortName } from "./scopes.js";

export interface QueueRow {
  /** The operation of its handle, in the picture. */
  readonly op: number;
  readonly name: string;
  /** Parts of its capacity, 0 to 1: how full it is, and how much stays in; null without a bound. */
  readonly fill: number | null;
  readonly least: number | null;
  readonly size: string;
  readonly rate: string;
  readonly waits: readonly string[];
  readonly error: string;
}

export interface HelperRow {
  readonly op: number | null;
  readonly kind: string;
  readonly name: string;
  readonly text: string;
  readonly hasFailed: boolean;
}

/** From here on a capacity counts as none. */
const UNBOUNDED = 1e15;
const KINDS = { runner: "runner", coordinator: "threads", hook: "hook" } as const;

export function queueRows(model: GraphModel): QueueRow[] {
  return (model.session?.queues ?? []).map((queue) => {
    const op = model.ownId(queue.op);
    const isBounded = queue.capacity > 0 && queue.capacity < UNBOUNDED;
    return {
      op, name: model.nodes.get(op)?.name ?? `queue ${queue.op}`,
      fill: isBounded ? Math.min(1, queue.size / queue.capacity) : null,
      least: isBounded && queue.least > 0 && !queue.is_closed ? Math.min(1, queue.least / queue.capacity) : null,
      size: sizeText(queue), rate: queue.per_s === null ? "" : `${significant(queue.per_s)} elements/s`,
      waits: waitTexts(queue), error: queue.error,
    };
  });
}

/** "3 of 4 gradients, time stamp 7, 2 stale ones dropped". */
export function gradientsText({ size, capacity, stamp, dropped }: Pick<QueueState, "size" | "capacity" | "stamp" | "dropped">): string {
  const count = capacity > 0 ? `${whole(size)} of ${plural(capacity, "gradient")}` : plural(size, "gradient");
  return [count, `time stamp ${whole(stamp ?? 0)}`, ...(dropped > 0 ? [`${whole(dropped)} stale ${dropped === 1 ? "one" : "ones"} dropped`] : [])].join(", ");
}

/** "96 of 100, 50 stay in, closed"; of an iterator "3 of 8 ready, at its end"; of an accumulator as `gradientsText`. */
export function sizeText(queue: QueueState): string {
  const { size, capacity, least, is_closed: isClosed, fills_itself: isIterator } = queue;
  if (queue.stamp !== null) return gradientsText(queue);
  if (isIterator) return [capacity > 0 ? `${whole(size)} of ${whole(capacity)} ready` : "computes when asked", ...(isClosed ? ["at its end"] : [])].join(", ");
  const bound = capacity < UNBOUNDED ? ` of ${whole(capacity)}` : "";
  return [`${whole(size)}${bound}`, ...(least > 0 && !isClosed ? [`${whole(least)} stay in`] : []), ...(isClosed ? ["closed"] : [])].join(", ");
}

/** Who waits, and for how long; of those that are not told by name how many there are. */
export function waitTexts({ waits, enqueues, dequeues }: QueueState): string[] {
  const told = waits.map(({ name, kind, seconds }: QueueWait) => `${shortName(name)} waits for ${kind}${seconds > 0 ? `, ${seconds} s` : ""}`);
  const rest = enqueues + dequeues - waits.length;
  return rest > 0 ? [...told, `${waits.length > 0 ? "and " : ""}${plural(rest, "operation")} ${rest === 1 ? "waits" : "wait"}`] : told;
}

export function helperRows(model: GraphModel): HelperRow[] {
  return (model.session?.helpers ?? []).map(({ kind, name, op, text, has_failed: hasFailed }: HelperState) => {
    const own = op === null ? null : model.ownId(op);
    return { op: own !== null && model.nodes.has(own) ? own : null, kind: KINDS[kind], name, text, hasFailed };
  });
}

/** What has to differ for the panel to be drawn anew. */
export function inputKey(session: SessionState | null): string {
  return session === null ? "" : JSON.stringify([session.queues, session.helpers]);
}
