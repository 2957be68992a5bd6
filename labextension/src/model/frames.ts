/**
 * Frames: loops and branching operations as scopes that hold what they run. Inside an open frame the
 * operation's own box is what decides; data enters at the parameters of the bodies, comes out of
 * their results, and in a loop returns from results to parameters. Pure.
 */
import type { Node } from "../wire/messages.js";
import type { Bundles } from "./edges.js";
import type { GraphModel } from "./graph.js";
import { opBox, scopeBox, type BoxId } from "./ids.js";
import { framePath } from "./scopes.js";

/** An output of an operation: its id, and which one. */
export type End = readonly [number, number];

/** Bodies that a frame runs or does not, as is decided; a loop's condition always runs. */
const DECIDED: readonly string[] = ["body", "then", "else"];

export function isFrame({ runs }: Pick<Node, "runs">): boolean {
  return runs.length > 0;
}

/** Whether it runs a body again and again, or leads into a loop that was made by hand. */
export function isLoop({ roles, frame }: Pick<Node, "roles" | "frame">): boolean {
  return roles.includes("body") || frame !== "";
}

/** The path of the scope that shows what an operation runs, or the loop made by hand that an Enter leads into. */
export function shownBy(node: Node): string | null {
  return isFrame(node) ? framePath(node) : node.frame || null;
}

/** The operations that take an input of a frame: parameters of its bodies, or what decides. */
export function takersOf(node: Node, input: number): readonly number[] {
  const found = [
    ...node.carried.filter((one) => one.input === input).flatMap(({ test, parameter }) => (test === null ? [parameter] : [test, parameter])),
    ...node.enters.filter(([, position]) => position === input).map(([parameter]) => parameter),
  ];
  return found.length > 0 ? found : [node.id];
}

/** The outputs that come out as an output of a frame: results of its bodies, or its own. */
export function giversOf(node: Node, output: number): readonly End[] {
  const found: End[] = [
    ...node.carried.filter((one) => one.output === output).map(({ result }) => result),
    ...node.leaves.filter(([, , position]) => position === output).map(([id, which]): End => [id, which]),
  ];
  return found.length > 0 ? found : [[node.id, output]];
}

/** What a parameter of a frame's bodies stands for. */
export interface Entry {
  readonly frame: Node;
  /**
   * "variable" of a loop; a value "from outside", which is computed whatever the frame does; or a "kept
   * value": of those that a loop has kept for its gradient each iteration gets one.
   */
  readonly what: "variable" | "from outside" | "kept value";
  /** Position among the inputs of the frame. */
  readonly input: number;
  /** What it becomes in the next iteration; null where it stays. */
  readonly next: End | null;
}

/** The parameters of loops and branches by id. */
export function entriesOf(frames: Iterable<Node>, nodes: ReadonlyMap<number, Node>): Map<number, Entry> {
  const isKept = (frame: Node, [from, output]: End = [-1, 0]): boolean => {
    const source = nodes.get(from);
    return isLoop(frame) && source !== undefined && isLoop(source) && source.leaves.some(([, , position]) => position === output);
  };
  const found = new Map<number, Entry>();
  for (const frame of frames) {
    for (const { parameter, test, input, result } of frame.carried) {
      for (const id of test === null ? [parameter] : [parameter, test]) found.set(id, { frame, what: "variable", input, next: result });
    }
    for (const [id, input] of frame.enters) {
      found.set(id, { frame, what: isKept(frame, frame.inputs[input]) ? "kept value" : "from outside", input, next: null });
    }
  }
  return found;
}

/** What the box that decides in a frame says: "if true", "while true", "n times". */
export function decisionText(node: Node): string {
  if (!isLoop(node)) return "if true";
  return node.predicate ? "while true" : "n times";
}

/** What is seen of a graph's frames: whether one is open, and what stands for an operation. */
export class FrameEdges {
  readonly #model: GraphModel;
  readonly #endOf: (op: number) => BoxId;

  constructor(model: GraphModel, endOf: (op: number) => BoxId) {
    this.#model = model;
    this.#endOf = endOf;
  }

  /** The boxes that an operation's input leads to. */
  takers(node: Node, input: number): readonly BoxId[] {
    if (!this.#isOpen(node)) return [this.#endOf(node.id)];
    return takersOf(node, input).map(this.#endOf);
  }

  /** The outputs that are seen in the place of an output: those of results in open frames. */
  givers(id: number, output: number): readonly End[] {
    const node = this.#model.nodes.get(id);
    if (!node) return [];
    if (!isFrame(node) || !this.#isOpen(node)) return [[id, output]];
    return giversOf(node, output).flatMap(([inner, which]) => (inner === id ? [[inner, which] as const] : this.givers(inner, which)));
  }

  /** What stands for all outputs of an operation: the results of its bodies in an open frame. */
  ends(node: Node): readonly BoxId[] {
    if (!isFrame(node) || !this.#isOpen(node)) return [this.#endOf(node.id)];
    const inner = node.outputs.flatMap((_, output) => this.givers(node.id, output)).filter(([id]) => id !== node.id);
    return [...new Set(inner.map(([id]) => this.#endOf(id)))];
  }

  /** What runs inside an open frame besides the data between operations. */
  addTo(bundles: Bundles, node: Node): void {
    if (!isFrame(node) || !this.#isOpen(node)) return;
    this.#addDecision(bundles, node);
    for (const { parameter, test, result } of node.carried) {
      for (const [from, output] of this.givers(...result)) {
        const carries = this.#model.nodes.get(from)?.outputs[output] ?? null;
        for (const to of test === null ? [parameter] : [test, parameter]) {
          if (this.#model.nodes.has(to)) bundles.add(this.#endOf(from), this.#endOf(to), "return", carries, scopeBox(framePath(node)));
        }
      }
    }
  }

  #addDecision(bundles: Bundles, node: Node): void {
    node.runs.forEach((name, k) => {
      const isThere = DECIDED.includes(node.roles[k] ?? "") && this.#model.tree.get(name);
      if (isThere) bundles.add(opBox(node.id), scopeBox(name), "decides", null);
    });
    // A branching operation takes its predicate as an input; a loop has it of its condition.
    if (!node.predicate || !isLoop(node)) return;
    for (const [from, output] of this.givers(...node.predicate)) {
      bundles.add(this.#endOf(from), opBox(node.id), "data", this.#model.nodes.get(from)?.outputs[output] ?? null);
    }
  }

  #isOpen(node: Node): boolean {
    return this.#endOf(node.id) === opBox(node.id);
  }
}
