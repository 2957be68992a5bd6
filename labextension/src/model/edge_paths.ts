/** The lines that a value takes on its way from the operation that made it to the one that takes it. Pure. */
import type { BoxId } from "./ids.js";
import { opBox, opOf, scopeBox } from "./ids.js";
import type { Edge } from "./edges.js";
import { edgePathsOf } from "./links.js";
import type { GraphModel } from "./graph.js";
import { giversOf, isFrame } from "./frames.js";
import type { VisibleGraph } from "./visible.js";

/** Operations between the two that only hand a value on, at most. */
const MOST_BETWEEN = 4;

export class EdgePaths {
  readonly #model: GraphModel;
  readonly #endOf: (op: number) => BoxId;
  readonly #linksOf: (edge: Edge) => readonly string[];
  readonly #graph: VisibleGraph;
  readonly #out = new Map<BoxId, Edge[]>();

  constructor(model: GraphModel, graph: VisibleGraph, endOf: (op: number) => BoxId) {
    this.#model = model;
    this.#graph = graph;
    this.#endOf = endOf;
    this.#linksOf = edgePathsOf(graph);
    for (const edge of graph.edges) {
      if (edge.kind === "control") continue;
      const list = this.#out.get(edge.from);
      if (list) list.push(edge);
      else this.#out.set(edge.from, [edge]);
    }
  }

  /** The box that shows an operation. */
  boxOf(op: number): BoxId | null {
    return this.#model.nodes.has(op) ? this.#endOf(op) : null;
  }

  /** The box that shows a loop: its frame, or a closed scope around it. */
  frameOf(op: number): BoxId | null {
    const path = this.#model.scopeOfLoop(op);
    if (path === null) return this.boxOf(op);
    const seen = this.#model.tree.ancestry(path).map(scopeBox).filter((box) => this.#graph.boxes.has(box));
    return seen[seen.length - 1] ?? null;
  }

  /**
   * Ids of the links from an output of an operation to an operation; [] where both are in one box or no
   * lines join them. A plan has no parameters, so the way may lead through some.
   */
  find(source: number, output: number, target: number): readonly string[] {
    const starts = this.#startsOf(source, output);
    const to = this.boxOf(target);
    if (to === null || starts.includes(to)) return [];
    const cameBy = new Map<BoxId, Edge | null>(starts.map((box) => [box, null]));
    let rim: readonly BoxId[] = starts;
    for (let depth = 0; depth <= MOST_BETWEEN && rim.length > 0; depth++) {
      const next: BoxId[] = [];
      for (const edge of rim.flatMap((box) => this.#edgesFrom(box, depth === 0))) {
        if (edge.to === to) return this.#collect(edge, cameBy);
        if (cameBy.has(edge.to)) continue;
        cameBy.set(edge.to, edge);
        next.push(edge.to);
      }
      rim = next;
    }
    return [];
  }

  /** What is seen to give an output: in an open frame the results of its bodies. */
  #startsOf(source: number, output: number): BoxId[] {
    const node = this.#model.nodes.get(source);
    if (!node) return [];
    const isOpen = isFrame(node) && this.#endOf(source) === opBox(source);
    return isOpen ? giversOf(node, output).map(([id]) => this.#endOf(id)) : [this.#endOf(source)];
  }

  /** On the way a value passes through parameters only. */
  #edgesFrom(box: BoxId, isStart: boolean): readonly Edge[] {
    const handsOn = isStart || this.#model.nodes.get(opOf(box) ?? -1)?.type === "Parameter";
    return handsOn ? (this.#out.get(box) ?? []) : [];
  }

  #collect(last: Edge, cameBy: ReadonlyMap<BoxId, Edge | null>): string[] {
    const way: Edge[] = [];
    for (let edge: Edge | null = last; edge; edge = cameBy.get(edge.from) ?? null) way.unshift(edge);
    return way.flatMap((edge) => this.#linksOf(edge));
  }
}
