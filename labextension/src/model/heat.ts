/** What share of a step each box of the graph stands for, and what shows that a branch was not taken. Pure. */
import type { GraphModel } from "./graph.js";
import { opBox, scopeBox, type BoxId } from "./ids.js";
import type { Scope } from "./scopes.js";

/** What the boxes tell by a bar. */
export const HEATS = ["off", "time", "memory"] as const;
export type HeatKind = (typeof HEATS)[number];

/** What nodes cost, by their index, as shares of a step or of the most bytes. */
export interface Heat {
  /** Ids of the operations that each node was made of. */
  readonly ops: readonly (readonly number[])[];
  readonly time: ArrayLike<number>;
  readonly memory: ArrayLike<number>;
  /** How often each ran. */
  readonly count: ArrayLike<number>;
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

  constructor(model: GraphModel, ops: Heat["ops"]) {
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

  #addAround(model: GraphModel, op: number, into: Set<number>): void {
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

/** The boxes of branches that were not taken while another branch of the same operation was. */
export function untakenBoxes(model: GraphModel, { ops, count }: Heat): ReadonlySet<BoxId> {
  const ran = new Map<string, boolean>();
  ops.forEach((made, i) => {
    for (const op of made) {
      const body = model.nodes.get(op)?.body ?? "";
      if (body !== "") ran.set(body, (ran.get(body) ?? false) || (count[i] ?? 0) > 0);
    }
  });
  const found = new Set<BoxId>();
  for (const { runs, roles } of model.nodes.values()) {
    if (!roles.includes("then") && !roles.includes("else")) continue;
    if (runs.some((body) => ran.get(body))) for (const body of runs) if (ran.get(body) === false) found.add(scopeBox(body));
  }
  return found;
}
