/** The cluster that a session runs on: its workers, what each waits for, and what is wrong. */
import type { Wish } from "../wire/channel.js";
import type { Cluster, ClusterStatus, WaitStatus, WorkerStatus } from "../wire/messages.js";
import { taskText } from "./devices.js";
import { duration, plural, whole } from "./figures.js";
import { gradientsText } from "./input.js";
import { bytesText } from "./running.js";
import { Signal } from "./signal.js";

/** So much of what Dask allows is too much: Dask itself spills from 60 % on and pauses a worker at 80 %. */
const FULL = { high: 0.6, critical: 0.8 } as const;

/** Looks at the cluster that are kept to be gone back to. */
const MOST_EARLIER = 600;

/** What a bar shows: a share from 0 to 1, and how bad that is. */
export interface Fill {
  readonly share: number;
  readonly level: "well" | "high" | "critical";
}

/** A worker as a row of a table. */
export interface WorkerRow {
  readonly task: string;
  readonly name: string;
  /** Its name in Dask, and which life of it it is. */
  readonly dask: string;
  readonly host: string;
  readonly process: string;
  readonly devices: readonly { readonly name: string; readonly short: string }[];
  readonly health: WorkerStatus["health"];
  readonly reason: string;
  /** "2 variables and 1 queue": what it had before it was started again, and has not yet; "" for nothing. */
  readonly lost: string;
  /** The names of these. */
  readonly lostNames: string;
  /** Null where Dask sets no limit. */
  readonly fill: Fill | null;
  readonly memory: string;
  readonly held: string;
  readonly steps: string;
  /** How many of them run; "" for none. */
  readonly running: string;
  readonly sent: string;
  readonly received: string;
  /** Bytes a second that go there from the kernel, and what a message takes there and back; "" where it was not measured. */
  readonly link: string;
  /** So far ahead of the kernel's clock, and the most that this is wrong; "" where it was not measured. */
  readonly clock: string;
  readonly clockError: string;
  /** By what it is reached, and the same in a sentence; "" where it is connected with nobody. */
  readonly transport: string;
  readonly transportTitle: string;
  /** All that is known of it but its waits, a line each: there may be no room for it in the table. */
  readonly title: string;
  /** What its devices wait for, the longest wait first. */
  readonly waits: readonly WaitRow[];
  readonly queues: readonly string[];
}

/** What one device waits for. */
export interface WaitRow {
  readonly text: string;
  /** The operation that makes the value; null for a queue. */
  readonly op: string | null;
  readonly since: string;
}

export class ClusterModel {
  readonly changed = new Signal<void>();
  #request = 0;
  #answered = 0;
  #told: Cluster | null = null;
  /** What was told earlier, with how many steps had ended then. */
  readonly #earlier: { readonly steps: number; readonly status: ClusterStatus }[] = [];

  /** Null before an answer, and where there is no cluster. */
  get status(): ClusterStatus | null {
    return this.#told?.status ?? null;
  }

  /** What was told when a step ran, or last before it; null where nobody looked. */
  statusAt(step: number): ClusterStatus | null {
    return [...this.#earlier].reverse().find(({ steps }) => steps <= step)?.status ?? null;
  }

  /** Why nothing is known. */
  get problem(): string {
    return this.#told?.error ?? "";
  }

  /** Whether it was said that there is a cluster, or that there is none. */
  get isKnown(): boolean {
    return this.#told !== null;
  }

  /** Whether an answer is under way. */
  get isAsked(): boolean {
    return this.#answered < this.#request;
  }

  ask(): Wish<"ask_cluster"> {
    return { request_id: ++this.#request };
  }

  /** @param steps how many steps have ended */
  take(told: Cluster, steps: number): void {
    if (told.request_id <= this.#answered) return;
    this.#answered = told.request_id;
    this.#told = told;
    // Between two steps the last look counts.
    if (told.status && this.#earlier[this.#earlier.length - 1]?.steps === steps) this.#earlier.pop();
    if (told.status) this.#earlier.push({ steps, status: told.status });
    if (this.#earlier.length > MOST_EARLIER) this.#earlier.shift();
    this.changed.emit();
  }
}

/** A device beside its task: "worker 3", and "GPU:0 of worker 3" of all but the first processor. */
export function deviceText(device: string): string {
  const at = device.lastIndexOf("/device:");
  const [task, name] = at < 0 ? [device, "CPU:0"] : [device.slice(0, at), device.slice(at + "/device:".length)];
  return name === "CPU:0" ? taskText(task) : `${name} of ${taskText(task)}`;
}

export function workerRows({ workers, waits }: ClusterStatus): WorkerRow[] {
  return workers.map((worker) => {
    const row = {
      task: worker.task,
      name: taskText(worker.task),
      dask: worker.worker === "" ? "" : `${worker.worker} in Dask`,
      host: worker.host,
      process: `process ${worker.pid}`,
      devices: worker.devices.map((name) => ({ name, short: name.slice(name.lastIndexOf("/device:") + "/device:".length) })),
      health: worker.health,
      reason: worker.reason,
      lost: lostText(worker),
      lostNames: worker.lost.map(({ kind, name }) => `${kind} ${name}`).join(", "),
      fill: fillOf(worker),
      memory: memoryText(worker),
      held: bytesText(worker.held_bytes),
      steps: whole(worker.steps),
      running: worker.running > 0 ? `${worker.running} running` : "",
      sent: worker.sent_bytes === null ? "" : `${bytesText(worker.sent_bytes)} sent`,
      received: worker.received_bytes === null ? "" : `${bytesText(worker.received_bytes)} received`,
      link: linkText(worker),
      clock: worker.clock_ahead_s === null ? "" : `${worker.clock_ahead_s < 0 ? "\u2212" : "+"}${duration(Math.abs(worker.clock_ahead_s))}`,
      clockError: worker.clock_error_s === null ? "" : `\u00b1 ${duration(worker.clock_error_s)}`,
      transport: transportText(worker),
      transportTitle: transportTitle(worker),
      waits: waits.filter(({ device }) => device.startsWith(`${worker.task}/`)).map(waitRow),
      queues: worker.queues.map((one) => `${one.name}: ${one.stamp === null ? `${one.size} of ${one.capacity}` : gradientsText(one)}`),
    };
    return { ...row, title: titleOf(row) };
  });
}

function titleOf(row: Omit<WorkerRow, "title">): string {
  const lines = [
    [row.name, row.dask],
    [row.host, row.process],
    [row.memory === "" ? "" : `memory ${row.memory}`],
    [row.devices.length === 0 ? "" : `devices ${row.devices.map(({ short }) => short).join(" ")}`],
    [row.lost === "" ? "" : `lost ${row.lost}: ${row.lostNames}`],
    [`steps ${row.steps}`, row.running],
    [`holds ${row.held}`, ...row.queues],
    [row.sent, row.received],
    [row.link === "" ? "" : `from here ${row.link}`],
    [row.clock === "" ? "" : `clock ${row.clock} ${row.clockError}`.trim()],
    [row.transport],
  ];
  return lines.map((parts) => parts.filter((part) => part !== "").join(", ")).filter((text) => text !== "").join("\n");
}

/** "2 variables, 1 queue and 1 lock"; "" for nothing. */
export function lostText({ lost }: WorkerStatus): string {
  const counts = (["variable", "queue", "lock", "table", "staging area", "accumulator", "reader"] as const).map((kind) => [kind, lost.filter((one) => one.kind === kind).length] as const);
  const parts = counts.filter(([, count]) => count > 0).map(([kind, count]) => plural(count, kind));
  return [parts.slice(0, -1).join(", "), ...parts.slice(-1)].filter((part) => part !== "").join(" and ");
}

function fillOf({ memory_bytes: used, memory_limit: limit }: WorkerStatus): Fill | null {
  if (used === null || limit === null || limit <= 0) return null;
  const share = Math.min(1, used / limit);
  return { share, level: share >= FULL.critical ? "critical" : share >= FULL.high ? "high" : "well" };
}

/** "1.90 GB/s, 120 \u00b5s there and back". */
function linkText({ bytes_per_s: speed, round_trip_s: trip }: WorkerStatus): string {
  const parts = [...(speed === null ? [] : [`${bytesText(speed)}/s`]), ...(trip === null ? [] : [`${duration(trip)} there and back`])];
  return parts.join(", ");
}

/** What the parts of `WorkerStatus.transport` are called, and what they are. */
const TRANSPORTS: ReadonlyMap<string, readonly [string, string]> = new Map([
  ["sockets", ["sockets", "sockets of flowscope's own"]],
  ["dask", ["Dask's ports", "Dask's ports (distributed.comm)"]],
]);

function transportParts({ transport }: WorkerStatus): (readonly [string, string])[] {
  return transport === "" ? [] : transport.split(" and ").map((part) => TRANSPORTS.get(part) ?? [part, part]);
}

/** "sockets, TLS"; "Dask's ports and sockets, no TLS". */
function transportText(worker: WorkerStatus): string {
  const parts = transportParts(worker);
  return parts.length === 0 ? "" : `${parts.map(([name]) => name).join(" and ")}, ${worker.is_encrypted ? "TLS" : "no TLS"}`;
}

function transportTitle(worker: WorkerStatus): string {
  const parts = transportParts(worker);
  if (parts.length === 0) return "";
  const who = worker.task.startsWith("/job:client/") ? "This notebook" : "This worker";
  const over = parts.map(([, what]) => what).join(" with some processes, and with others over ");
  return `${who} exchanges messages and values with other processes over ${over}, ${worker.is_encrypted ? "encrypted by TLS" : "not encrypted"}.`;
}

function memoryText({ memory_bytes: used, memory_limit: limit }: WorkerStatus): string {
  if (used === null) return "";
  return limit === null ? bytesText(used) : `${bytesText(used)} of ${bytesText(limit)}`;
}

export function waitRow(wait: WaitStatus): WaitRow {
  const { kind, what, peer, seconds } = wait;
  const since = `for ${duration(seconds)}`;
  if (kind === "queue") return { text: `queue ${what}`, op: null, since };
  const text = kind === "credit" ? `${deviceText(peer)} to read ${what}` : `${what} of ${deviceText(peer)}`;
  return { text, op: what.replace(/:\d+$/, ""), since };
}

/** "4 workers: 2 ok, 1 hung, 1 without its state". */
export function summaryText({ workers }: ClusterStatus): string {
  const others = workers.filter(({ task }) => !task.startsWith("/job:client"));
  const counts = new Map<string, number>();
  for (const { health, lost } of others) {
    const state = health === "ok" && lost.length > 0 ? "without its state" : health;
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  const parts = [...counts].map(([health, count]) => `${count} ${health}`);
  return `${plural(others.length, "worker")}${counts.size > 1 || !counts.has("ok") ? `: ${parts.join(", ")}` : ""}`;
}

/** A page that may be linked to; null for anything else. */
export function pageOf(address: string): string | null {
  return /^https?:\/\//.test(address) ? address : null;
}
