/** The boxes that can be seen as the rows of a list: each scope before what is in it. Pure. */
import { ROOT, type BoxId } from "./ids.js";
import type { VisibleGraph } from "./visible.js";

export interface Row {
  readonly id: BoxId;
  /** Of the outermost boxes 1. */
  readonly level: number;
  /** How many boxes its scope has, and which of them it is, from 1. */
  readonly size: number;
  readonly place: number;
}

export function rowsOf(graph: VisibleGraph): Row[] {
  const rows: Row[] = [];
  const rest = below(graph, ROOT, 1).reverse();
  for (let row = rest.pop(); row; row = rest.pop()) {
    rows.push(row);
    rest.push(...below(graph, row.id, row.level + 1).reverse());
  }
  return rows;
}

function below(graph: VisibleGraph, id: BoxId, level: number): Row[] {
  const children = graph.boxes.get(id)?.children ?? [];
  return children.map((child, i) => ({ id: child, level, size: children.length, place: i + 1 }));
}

/** The first of at most `most` rows around a place. */
export function windowAround(place: number, rows: number, most: number): number {
  return Math.max(0, Math.min(place - Math.floor(most / 3), rows - most));
}
