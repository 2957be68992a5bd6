/** What goes from one device to another: how much, how often, how fast. Pure. */
import type { Node } from "../wire/messages.js";
import { shortDevice } from "./devices.js";
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
  const [bytes] = node.outputs.map(bytesOf);
  // A plan of one process has both ends as one, which is called as the Send.
  const sender = node.type === "Recv" ? model.nodes.get(node.inputs[0]?.[0] ?? -1) : node;
  const seen = recording && sender ? recordedTransfer(recording, sender.name) : null;
  return [
    { name: "from", value: shortDevice(unquoted(from), [unquoted(to)]) },
    { name: "to", value: shortDevice(unquoted(to), [unquoted(from)]) },
    { name: "each time", value: bytes ? bytesText(bytes) : "no value: it only says that something is done" },
    ...(seen ? [{ name: "in the recorded step", value: timesText(seen.count, bytes ?? 0, seen.seconds) }] : []),
  ];
}

/** "3 times, 12.0 MB/s". */
export function timesText(count: number, bytes: number, seconds: number): string {
  const speed = bytes > 0 && seconds > 0 ? `, ${significant((count * bytes) / seconds / 1e6)}\u00a0MB/s` : "";
  return `${count === 1 ? "once" : `${count} times`}${speed}`;
}

/** How often a transfer ran in a recorded step, and how long in all; null where it did not. */
function recordedTransfer({ nodes, spans }: Recording, name: string): { count: number; seconds: number } | null {
  const at = nodes.findIndex((one) => one.type === "Transfer" && one.name === name);
  let [count, time] = [0, 0];
  for (let i = 0; at >= 0 && i < spans.count; i++) {
    if (spans.node[i] !== at) continue;
    count += spans.stands_for[i] ?? 1;
    time += (spans.end_ns[i] ?? 0) - (spans.begin_ns[i] ?? 0);
  }
  return count > 0 ? { count, seconds: time / NS_PER_S } : null;
}

const unquoted = (text: string): string => text.replace(/^['"]|['"]$/g, "");
