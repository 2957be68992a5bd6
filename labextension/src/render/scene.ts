/** From the visible graph and its positions to the draw list. Pure. */
import type { Link } from "../model/links.js";
import type { BoxId } from "../model/ids.js";
import type { Box, VisibleGraph } from "../model/visible.js";
import type { SessionState } from "../wire/messages.js";
import type { Positions, Rect } from "../layout/types.js";
import { controlMarks, linkMarks } from "./lines.js";
import type { Mark, Scene } from "./marks.js";
import { opMarks, openScopeHeader, scopeMarks, walls } from "./boxes.js";
import type { Theme } from "./theme.js";

/** What is to be drawn. */
export interface Picture {
  readonly graph: VisibleGraph;
  readonly links: readonly Link[];
  /** Scope path -> family of scopes that are built alike. */
  readonly families: ReadonlyMap<string, number>;
  /** Device name -> its number. */
  readonly devices: ReadonlyMap<string, number>;
  readonly selection: BoxId | null;
  /** Boxes that belong to the selection without an edge. */
  readonly related: ReadonlySet<BoxId>;
  /** Boxes that the latest re-run of a cell has changed. */
  readonly marked: ReadonlySet<BoxId>;
  /** Boxes that are stale, or hold what is. */
  readonly stale: ReadonlySet<BoxId>;
}

export interface Part {
  readonly box: Box;
  readonly rect: Rect;
}

export function scene(picture: Picture, positions: Positions, run: SessionState | null, theme: Theme): Scene {
  const parts = placed(picture.graph, positions);
  const open = parts.filter(({ box }) => box.isOpen && box.parent !== null);
  const marks: Mark[] = [
    ...open.flatMap((part) => walls(part, picture, theme, true)),
    ...controlMarks(picture, positions, theme),
    ...linkMarks(picture, positions, run, theme),
    ...open.flatMap((part) => openScopeHeader(part, picture, theme)),
    ...parts.flatMap((part) => closedMarks(part, picture, theme)),
  ];
  return { w: positions.w, h: positions.h, background: theme.background, font: theme.font, marks };
}

/** Boxes with their places, outer ones first. */
function placed(graph: VisibleGraph, positions: Positions): Part[] {
  const parts: Part[] = [];
  for (const box of graph.boxes.values()) {
    const rect = positions.boxes.get(box.id);
    if (rect) parts.push({ box, rect });
  }
  return parts.sort((a, b) => depth(graph, a.box) - depth(graph, b.box));
}

function depth(graph: VisibleGraph, box: Box): number {
  if (!box.isOpen) return 0;
  let count = 0;
  for (let at = box.parent; at !== null; at = graph.boxes.get(at)?.parent ?? null) count += 1;
  return count;
}

function closedMarks(part: Part, picture: Picture, theme: Theme): Mark[] {
  if (part.box.isOpen) return [];
  return part.box.node ? opMarks(part, picture, theme) : scopeMarks(part, picture, theme);
}
