/** The devices of a graph: their numbers, their short names, and on which the operations in each box stand. Pure. */
import type { GraphModel } from "./graph.js";
import { opOf, pathOf, type BoxId } from "./ids.js";
import type { Scope } from "./scopes.js";
import type { SessionState } from "../wire/messages.js";

/**
 * The session's devices in the order of their names, whatever stands on them: each has one number, and so one colour, in the
 * graph as written and in the program as cut. Behind them those of other sessions that operations stand on.
 */
export function devicesOf({ session, nodes }: Pick<GraphModel, "nodes"> & { readonly session: Pick<SessionState, "devices"> | null }): Map<string, number> {
  const own = new Set(session?.devices ?? []);
  const others = new Set<string>();
  for (const { placed } of nodes.values()) if (placed !== null && !own.has(placed)) others.add(placed);
  return new Map([...[...own].sort(byNumber), ...[...others].sort(byNumber)].map((name, i) => [name, i]));
}

const ORDER = new Intl.Collator("en", { numeric: true });
export const byNumber = (a: string, b: string): number => ORDER.compare(a, b);

/**
 * What a device is called beside others: "CPU:0" where all belong to one task, else "worker 1, CPU", and with its number where
 * there is a second one of its type.
 */
export function shortDevice(device: string, all: Iterable<string>): string {
  const [task, name] = taskAndName(device);
  const others = [...all].map(taskAndName);
  if (task === "" || others.every(([other]) => other === task)) return name;
  const [type = "", number] = name.split(":");
  const isFirst = number === "0" && others.every(([, other]) => other.endsWith(":0") || !other.startsWith(`${type}:`));
  return `${taskText(task)}, ${isFirst ? type : name}`;
}

/** "/job:worker/replica:0/task:3" -> "worker 3". */
export function taskText(task: string): string {
  const job = /\/job:([^/]*)/.exec(task)?.[1];
  const number = /\/task:([^/]*)/.exec(task)?.[1] ?? "";
  if (job === undefined) return task;
  return job === "client" ? "this notebook" : `${job} ${number}`.trim();
}

const FULL_NAME = /\/job:[\w-]+\/replica:\d+\/task:\d+\/device:\w+:\d+/g;

/** Puts short names in the place of the full ones in texts, beside a graph's devices; these are looked up once, if ever. */
export function deviceTexts(model: Parameters<typeof devicesOf>[0]): (text: string) => string {
  let all: readonly string[] | null = null;
  return (text) => text.replace(FULL_NAME, (device) => shortDevice(device, (all ??= [...devicesOf(model).keys()])));
}

function taskAndName(device: string): readonly [string, string] {
  const at = device.lastIndexOf("/device:");
  return at < 0 ? ["", device] : [device.slice(0, at), device.slice(at + "/device:".length)];
}

/** Whether all belong to one task. */
function shared(all: Iterable<string>): boolean {
  return new Set([...all].map((device) => taskAndName(device)[0])).size < 2;
}

/** A question that finds what stands on a device, and nothing else. */
export function deviceQuestion(device: string, all: Iterable<string>): string {
  return `device:/${(shared(all) ? taskAndName(device)[1] : device).replace(/[/.+*?()[\]{}|\\^$]/g, "\\$&")}$/`;
}

/** How many of some operations stand on each device, by its number; the last count is of those that are not placed. */
export type Counts = Uint32Array;

/** On which devices the operations of each box stand. Made anew when the graph is another. */
export class DeviceMix {
  readonly devices: ReadonlyMap<string, number>;
  readonly #model: GraphModel;
  readonly #placedIn: ReadonlyMap<number, string> | null;
  readonly #scopes = new Map<string, Counts>();

  /** @param placedIn where operations stood in a step that was gone back to; what is not in it did not run */
  constructor(model: GraphModel, devices: ReadonlyMap<string, number>, placedIn: ReadonlyMap<number, string> | null = null) {
    [this.#model, this.devices, this.#placedIn] = [model, devices, placedIn];
    this.#countsOf("");
    const homes = new Map<Scope, Counts>();
    for (const node of model.nodes.values()) {
      const { id } = node;
      const home = model.tree.homeOf(id);
      const counts = homes.get(home) ?? this.#none();
      homes.set(home, counts);
      counts[this.#number(node)]! += 1;
    }
    for (const [home, counts] of homes) {
      for (let scope: Scope | null = home; scope; scope = scope.parent) add(this.#countsOf(scope.path), counts);
    }
  }

  /** Of all operations. */
  get all(): Counts {
    return this.#countsOf("");
  }

  /** Null for a box that is not there. */
  of(box: BoxId): Counts | null {
    const path = pathOf(box);
    if (path !== null) return this.#scopes.get(path) ?? null;
    const node = this.#model.nodes.get(opOf(box) ?? -1);
    if (!node) return null;
    const counts = this.#none();
    counts[this.#number(node)] = 1;
    return counts;
  }

  #number(node: { readonly id: number; readonly placed: string | null }): number {
    const placed = this.#placedIn === null ? node.placed : (this.#placedIn.get(node.id) ?? null);
    return placed === null ? this.devices.size : (this.devices.get(placed) ?? this.devices.size);
  }

  #countsOf(path: string): Counts {
    const known = this.#scopes.get(path) ?? this.#none();
    this.#scopes.set(path, known);
    return known;
  }

  #none(): Counts {
    return new Uint32Array(this.devices.size + 1);
  }
}

function add(to: Counts, counts: Counts): void {
  for (let i = 0; i < to.length; i++) to[i]! += counts[i] ?? 0;
}
