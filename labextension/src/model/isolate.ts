/** One box alone: what is in it, and what it is joined to. Pure. */
import type { BoxId } from "./ids.js";
import type { Box, VisibleGraph } from "./visible.js";

/** The part of a graph that has to do with a box; the graph itself where it has no such box. */
export function isolated(graph: VisibleGraph, box: BoxId): VisibleGraph {
  if (!graph.boxes.has(box)) return graph;
  const inside = new Set([box]);
  const rest = [box];
  for (let id = rest.pop(); id !== undefined; id = rest.pop()) {
    for (const child of graph.boxes.get(id)?.children ?? []) {
      inside.add(child);
      rest.push(child);
    }
  }
  const edges = graph.edges.filter(({ from, to }) => inside.has(from) || inside.has(to));
  const kept = new Set(inside);
  for (const id of [box, ...edges.flatMap(({ from, to }) => [from, to])]) {
    for (let at: BoxId | null = id; at !== null; at = graph.boxes.get(at)?.parent ?? null) kept.add(at);
  }
  const boxes = new Map<BoxId, Box>();
  for (const [id, one] of graph.boxes) {
    if (kept.has(id)) boxes.set(id, { ...one, children: one.children.filter((child) => kept.has(child)) });
  }
  return { ...graph, boxes, edges: edges.filter(({ from, to }) => kept.has(from) && kept.has(to)) };
}
