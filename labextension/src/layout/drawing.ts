/**
 * The layered drawing of one scope while it is being made.
 *
 * Idea (Sugiyama, Tagawa, Toda 1981): give every box a rank so that data runs downwards, put a
 * way point into each rank that a long line passes, order the ranks so that few lines cross, then
 * choose x. What is ours: way points are shared by all lines of one source (or of one target), so
 * that a fan runs as one line until it spreads; and former positions seed the order, so that a
 * change moves little. Rejected: engines from outside (slower by 5 to 40 times, and they forget
 * where things were). Limits: beyond `TOO_MANY` boxes a grid says as much and costs less.
 */
import type { LinkInput, Rect, ScopeInput, ScopeLayout } from "./types.js";

export type VertexKind = "box" | "in" | "out" | "point";

export interface Vertex {
  readonly kind: VertexKind;
  /** Box id, port's source, or "" for a way point. */
  readonly id: string;
  readonly w: number;
  readonly h: number;
  rank: number;
  /** Middle. */
  x: number;
  /** Upper edge. */
  y: number;
  /** Former middle, NaN where there was none. */
  readonly seed: number;
}

/** A link between vertices; the ends lie `dx` from the middle. */
export interface Wire {
  readonly link: LinkInput;
  readonly from: number;
  readonly to: number;
  readonly fromDx: number;
  readonly toDx: number;
  /** A return, or closes a cycle; it is drawn outside and has no say in ranks. */
  isBack: boolean;
  /** The vertices that the line passes, ends included; empty for a line that has no way points. */
  path: number[];
}

/** One hop between neighbouring ranks. */
export interface Hop {
  readonly upper: number;
  readonly lower: number;
  readonly upperDx: number;
  lowerDx: number;
  /** How strongly the hop wants to be straight. */
  weight: number;
}

export interface Drawing {
  readonly vertices: Vertex[];
  readonly wires: Wire[];
  /** Boxes without a data link here; they stand aside. */
  readonly aside: readonly number[];
}

export interface Inside {
  readonly box: string;
  readonly layout: ScopeLayout;
}

/** Makes vertices of boxes and ports, and wires of links. */
export function startDrawing(
  input: ScopeInput, inside: ReadonlyMap<string, ScopeLayout>, before: ScopeLayout | null,
): Drawing {
  const vertices: Vertex[] = [];
  const index = new Map<string, number>();
  const add = (key: string, kind: VertexKind, id: string, w: number, h: number, seed: number): number => {
    const known = index.get(key);
    if (known !== undefined) return known;
    vertices.push({ kind, id, w, h, rank: 0, x: 0, y: 0, seed });
    index.set(key, vertices.length - 1);
    return vertices.length - 1;
  };
  for (const box of input.boxes) {
    const inner = inside.get(box.id);
    add(`=${box.id}`, "box", box.id, inner?.w ?? box.w, inner?.h ?? box.h, middle(before?.boxes.get(box.id)));
  }
  const wires = input.links.map((link): Wire => {
    const from = link.from === null
      ? add(`<${link.source}`, "in", link.source, 4, 0, before?.inPorts.get(link.source) ?? NaN)
      : find(index, link.from);
    const to = link.to === null
      ? add(`>${link.source}`, "out", link.source, 4, 0, before?.outPorts.get(link.source) ?? NaN)
      : find(index, link.to);
    return {
      link, from, to, isBack: link.isReturn ?? false, path: [],
      fromDx: portDx(inside.get(link.from ?? ""), "outPorts", link.source),
      toDx: portDx(inside.get(link.to ?? ""), "inPorts", link.source),
    };
  });
  const linked = new Set(wires.flatMap((wire) => [wire.from, wire.to]));
  return { vertices, wires, aside: vertices.map((_, i) => i).filter((i) => !linked.has(i)) };
}

function find(index: ReadonlyMap<string, number>, box: string): number {
  const at = index.get(`=${box}`);
  if (at === undefined) throw new Error(`layout: a link names "${box}", which is not in its scope`);
  return at;
}

function portDx(inside: ScopeLayout | undefined, wall: "inPorts" | "outPorts", source: string): number {
  const x = inside?.[wall].get(source);
  return inside && x !== undefined ? x - inside.w / 2 : 0;
}

function middle(rect: Rect | undefined): number {
  return rect ? rect.x + rect.w / 2 : NaN;
}

/** Reads an array at an index that is known to be there. */
export function at<T>(list: readonly T[], index: number): T {
  const value = list[index];
  if (value === undefined) throw new Error(`layout: no element ${index} of ${list.length}`);
  return value;
}
