/** What goes from one device to another: how much, how often, how fast. Pure. */
import type { Node, Output } from "../wire/messages.js";
import type { Fact } from "./fact.js";
import { bytesOf, significant } from "./figures.js";
import type { GraphModel } from "./graph.js";
import type { Recording } from "./recording.js";
import { bytesText } from "./running.js";

/** The op types of what crosses: both ends, and both as one. */
export const CROSSINGS: ReadonlySet<string> = new Set(["Send", "Recv", "Transfer"]);

const NS_PER_S = 1e9;

/** From where to where, and what a recorded step tells: bytes each time, times a step, and bytes a second. */
export function transferFacts(model: GraphModel, node: Node, recording: Recording | null): Fact[] {
  if (!CROSSINGS.has(node.type)) return [];
  const { send_device: from = "", recv_device: to = "" } = node.attributes;
  // A plan of one process has both ends as one, which is called as the Send.
  const sender = node.type === "Recv" ? model.nodes.get(node.inputs[0]?.[0] ?? -1) : node;
  const seen = recording && sender ? recordedTransfer(recording, sender.name) : null;
  return [
    { name: "from", value: unquoted(from) },
    { name: "to", value: unquoted(to) },
    { name: "each time", value: eachText(node.outputs[0], node.attributes["is_lossy"] === "True") },
    ...(seen ? [{ name: "in the recorded step", value: timesText(seen) }] : []),
  ];
}

/** How much goes over each time: a Send that only says that something is done has no value. */
function eachText(output: Output | undefined, isLossy: boolean): string {
  if (!output || output.shape?.includes(0)) return "no value: it only says that something is done";
  const bytes = bytesOf(output);
  if (bytes === null) return "differs: shapes do not tell it";
  return isLossy ? `${bytesText(bytes / 2)} as bfloat16` : bytesText(bytes);
}

/** What went over in a recorded step: how often, how many bytes in all (null where that is not known), and how long. */
interface Went {
  readonly count: number;
  readonly bytes: number | null;
  readonly seconds: number;
}

/** "3 times, 36.0 kB, 12.0 MB/s". */
export function timesText({ count, bytes, seconds }: Went): string {
  const speed = bytes && seconds > 0 ? `, ${bytesText(bytes)}, ${significant(bytes / seconds / 1e6)}\u00a0MB/s` : "";
  return `${count === 1 ? "once" : `${count} times`}${speed}`;
}

/** What a transfer brought over in a recorded step; null where it did not run. */
function recordedTransfer({ nodes, spans, lanes }: Recording, name: string): Went | null {
  const at = nodes.findIndex((one) => one.type === "Transfer" && one.name === name);
  let [count, time, sum, isKnown] = [0, 0, 0, true];
  for (let i = 0; at >= 0 && i < spans.count; i++) {
    // In a device's own lane it is a Send, or a Recv that waits.
    if (spans.node[i] !== at || lanes[spans.lane[i] ?? -1]?.kind !== "transfer") continue;
    const bytes = spans.bytes[i] ?? -1;
    isKnown &&= bytes >= 0;
    sum += bytes;
    count += spans.stands_for[i] ?? 1;
    time += (spans.end_ns[i] ?? 0) - (spans.begin_ns[i] ?? 0);
  }
  return count > 0 ? { count, bytes: isKnown ? sum : null, seconds: time / NS_PER_S } : null;
}

const unquoted = (text: string): string => text.replace(/^['"]|['"]$/g, "");
