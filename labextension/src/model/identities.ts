/**
 * Keeps an operation's number when a cell is run again and another operation takes its name: so
 * the selection stays, and in the picture it is the same box at the same place.
 */
import type { GraphChange, Node, RunState } from "../wire/messages.js";

export class Identities {
  /** The kernel's number -> ours, where they differ. */
  readonly #ours = new Map<number, number>();
  /** Our number -> the kernel's of the operation that has taken it over. */
  readonly #holder = new Map<number, number>();

  /** The change in our numbers. `idOf` finds the operation that has a name so far. */
  translate(change: GraphChange, idOf: (name: string) => number | undefined): GraphChange {
    for (const { id, name } of change.added) this.#inherit(id, idOf(name));
    // A graph of which no cell was run again keeps its nodes, which are many.
    if (this.#ours.size === 0) return change;
    const isLeft = (id: number): boolean => (this.#holder.get(this.#of(id)) ?? this.#of(id)) === id;
    return {
      ...change,
      added: change.added.map(this.#node),
      changed: change.changed.map(this.#node),
      placed: change.placed.map(([id, device]) => [this.#of(id), device] as const),
      removed: change.removed.filter(isLeft).map(this.#of),
      marked: change.marked.map(this.#of),
    };
  }

  /** Our number of an operation, by the kernel's. */
  of(id: number): number {
    return this.#of(id);
  }

  /** Where steps are, in our numbers. */
  ofRun(run: RunState): RunState {
    const { frames, position, tokens } = run;
    return {
      ...run,
      frames: frames.map((frame) => ({ ...frame, loop: this.#of(frame.loop) })),
      position: position && { ...position, op: position.op === null ? null : this.#of(position.op) },
      tokens: tokens.map((token) => ({ ...token, source: this.#of(token.source), target: this.#of(token.target) })),
    };
  }

  #inherit(id: number, known: number | undefined): void {
    if (known === undefined || known === this.#of(id)) return;
    this.#ours.set(id, known);
    this.#holder.set(known, id);
  }

  readonly #of = (id: number): number => this.#ours.get(id) ?? id;

  readonly #node = (node: Node): Node => ({
    ...node, id: this.#of(node.id), control: node.control.map(this.#of),
    inputs: node.inputs.map(([from, output]) => [this.#of(from), output] as const),
    predicate: node.predicate && [this.#of(node.predicate[0]), node.predicate[1]],
    carried: node.carried.map((one) => ({
      ...one, parameter: this.#of(one.parameter), test: one.test === null ? null : this.#of(one.test),
      result: [this.#of(one.result[0]), one.result[1]] as const,
    })),
    enters: node.enters.map(([parameter, position]) => [this.#of(parameter), position] as const),
    leaves: node.leaves.map(([result, output, position]) => [this.#of(result), output, position] as const),
    always_runs: node.always_runs.map(this.#of),
  });
}
