/** What share of a step each box of the graph stands for, and what shows that a branch was not taken. Pure. */
import type { Table } from "../wire/messages.js";
import { column } from "../wire/tables.js";
import { bytesOf } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { opBox, scopeBox, type BoxId } from "./ids.js";
import type { Scope } from "./scopes.js";

/** What the boxes tell by a bar: nothing, a share of a step's time or bytes, the devices that their operations stand on, or how large the model is. */
export const HEATS = ["off", "time", "memory", "device", "weights", "flops"] as const;
export type HeatKind = (typeof HEATS)[number];

/** What the nodes cost in one step of a program; each is made of one or more operations. */
export interface Heat {
  /** Ids of the operations that each node was made of: its own, then others, and the loops and branches that it runs in. */
  readonly ops: readonly (readonly number[])[];
  /** How often each runs in a step. */
  readonly count: ArrayLike<number>;
  readonly self_ns: ArrayLike<number>;
  /** With what ran inside of it: a loop's iterations. */
  readonly total_ns: ArrayLike<number>;
  readonly phase: readonly string[];
  /** Its own part of the time of a step, and of the bytes that all nodes make of which that is known. */
  readonly time: ArrayLike<number>;
  readonly memory: ArrayLike<number>;
  /** Bytes of what it makes each time; NaN where shapes do not tell that. */
  readonly bytes: ArrayLike<number>;
}

const PHASES = ["forward", "gradient", "update"] as const;

/** A program's rows as nodes: the kernel tells one per operation. `ours` gives the views' numbers of operations. */
export function heatOf(table: Table, program: number, nodes: GraphModel["nodes"], ours: (id: number) => number): Heat {
  const programs = column(table, "program");
  const [id, node, phase, count, self_us, total_us, share] =
    ["id", "node", "phase", "count", "self_us", "total_us", "share"].map((name) => column(table, name));
  const index = new Map<number, number>();
  const ops: number[][] = [];
  const rows: number[] = [];
  for (let row = 0; row < table.rows; row++) {
    if (programs[row] !== program) continue;
    const key = node?.[row] ?? -1;
    const known = index.get(key);
    const op = ours(id?.[row] ?? -1);
    if (known !== undefined) ops[known]?.push(op);
    else {
      index.set(key, ops.length);
      ops.push([op]);
      rows.push(row);
    }
  }
  const take = (from: ArrayLike<number> | undefined, by = 1): Float64Array => Float64Array.from(rows, (row) => (from?.[row] ?? 0) * by);
  return heatFrom(ops, nodes, {
    count: take(count), self_ns: take(self_us, 1e3), total_ns: take(total_us, 1e3), time: take(share),
    phase: rows.map((row) => PHASES[phase?.[row] ?? 0] ?? ""),
  });
}

/** What nodes cost, with the bytes that their operations make. */
export function heatFrom(ops: Heat["ops"], nodes: GraphModel["nodes"], costs: Omit<Heat, "ops" | "bytes" | "memory">): Heat {
  const bytes = Float64Array.from(ops, (made) => madeBytes(made, nodes));
  const known = bytes.map((one) => (Number.isNaN(one) ? 0 : one));
  const all = known.reduce((sum, one) => sum + one, 0);
  return { ops, ...costs, bytes, memory: known.map((one) => (all > 0 ? one / all : 0)) };
}

/** What a node makes, NaN where that is not known: its own operation comes first. */
function madeBytes(made: readonly number[], nodes: GraphModel["nodes"]): number {
  const own = nodes.get(made[0] ?? -1);
  return own ? own.outputs.reduce((sum, output) => sum + (output.dtype === "resource" ? 0 : (bytesOf(output) ?? NaN)), 0) : 0;
}

/** What says which boxes are around an operation. */
export interface Joined {
  readonly nodes: GraphModel["nodes"];
  readonly tree: Pick<GraphModel["tree"], "homeOf">;
}

/**
 * Sums nodes up by box: an operation's own box, and every scope around. A node that was made of several operations counts
 * in each box once. Made anew when the graph or the nodes are others; the sums follow at once.
 */
export class HeatBoxes {
  readonly #boxes: BoxId[] = [];
  readonly #at = new Map<BoxId, number>();
  /** The boxes of node i stand in `#of` from `#from[i]` to `#from[i + 1]`. */
  readonly #from: Int32Array;
  readonly #of: Int32Array;
  readonly #sums: Float64Array;

  constructor(model: Joined, ops: Heat["ops"]) {
    const found: number[] = [];
    this.#from = new Int32Array(ops.length + 1);
    ops.forEach((made, i) => {
      const own = new Set<number>();
      for (const op of made) if (model.nodes.has(op)) this.#addAround(model, op, own);
      found.push(...own);
      this.#from[i + 1] = found.length;
    });
    this.#of = Int32Array.from(found);
    this.#sums = new Float64Array(this.#boxes.length);
  }

  #addAround(model: Joined, op: number, into: Set<number>): void {
    into.add(this.#number(opBox(op)));
    for (let scope: Scope | null = model.tree.homeOf(op); scope?.parent; scope = scope.parent) into.add(this.#number(scopeBox(scope.path)));
  }

  #number(box: BoxId): number {
    let number = this.#at.get(box);
    if (number === undefined) {
      number = this.#boxes.length;
      this.#at.set(box, number);
      this.#boxes.push(box);
    }
    return number;
  }

  /** Takes what each node counts for. */
  take(values: ArrayLike<number>): void {
    this.#sums.fill(0);
    for (let i = 0; i + 1 < this.#from.length; i++) {
      const value = values[i] ?? 0;
      if (value === 0) continue;
      for (let k = this.#from[i] ?? 0; k < (this.#from[i + 1] ?? 0); k++) {
        const box = this.#of[k] ?? 0;
        this.#sums[box] = (this.#sums[box] ?? 0) + value;
      }
    }
  }

  /** What a box counts for; null where nothing is told of it. */
  of(box: BoxId): number | null {
    const number = this.#at.get(box);
    return number === undefined ? null : (this.#sums[number] ?? null);
  }
}

/** Operations that may be gone from every plan, or that run in the other branch in the place of values: they tell nothing. */
const QUIET: ReadonlySet<string> = new Set(["Parameter", "Const", "Identity", "NoOp", "EmptyList", "ListOf", "Head"]);

/** The boxes of branches that were not taken while another branch of the same operation was. */
export function untakenBoxes(model: GraphModel, { ops }: Heat): ReadonlySet<BoxId> {
  const branches = [...model.nodes.values()].filter(({ roles }) => roles.includes("then") || roles.includes("else"));
  if (branches.length === 0) return new Set();
  const ran = new Set<string>();
  for (const [own] of ops) {
    const node = model.nodes.get(own ?? -1);
    if (node && !QUIET.has(node.type)) ran.add(node.body);
  }
  const loud = new Set([...model.nodes.values()].filter(({ type }) => !QUIET.has(type)).map(({ body }) => body));
  const untaken = branches.flatMap(({ runs }) => (runs.some((body) => ran.has(body)) ? runs.filter((body) => !ran.has(body) && loud.has(body)) : []));
  return new Set(untaken.map(scopeBox));
}
