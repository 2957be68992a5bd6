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
  /** Device name -> its number. */
  readonly devices: ReadonlyMap<string, number>;
  readonly selection: BoxId | null;
  /** Boxes that belong to the selection without an edge. */
  readonly related: ReadonlySet<BoxId>;
  /** Boxes that the latest cell has changed or added. */
  readonly marked: ReadonlySet<BoxId>;
  /** Boxes that are stale, or hold what is. */
  readonly stale: ReadonlySet<BoxId>;
}

/** A box and where it lies. */
export interface PlacedBox {
  readonly box: Box;
  readonly rect: Rect;
}

export function scene(picture: Picture, positions: Positions, run: SessionState | null, theme: Theme): Scene {
  const boxes = placedBoxes(picture.graph, positions);
  const open = boxes.filter(({ box }) => box.isOpen && box.parent !== null);
  const marks: Mark[] = [
    ...open.flatMap((placed) => walls(placed, picture, theme, true)),
    ...controlMarks(picture, positions, theme),
    ...linkMarks(picture, positions, run, theme),
    ...open.flatMap((placed) => openScopeHeader(placed, theme)),
    ...boxes.flatMap((placed) => closedMarks(placed, picture, theme)),
  ];
  return { w: positions.w, h: positions.h, background: theme.background, font: theme.font, text: theme.text, muted: theme.muted, marks };
}

/** Boxes with their positions, outer ones first. */
function placedBoxes(graph: VisibleGraph, positions: Positions): PlacedBox[] {
  const found: PlacedBox[] = [];
  for (const box of graph.boxes.values()) {
    const rect = positions.boxes.get(box.id);
    if (rect) found.push({ box, rect });
  }
  return found.sort((a, b) => depth(graph, a.box) - depth(graph, b.box));
}

function depth(graph: VisibleGraph, box: Box): number {
  if (!box.isOpen) return 0;
  let count = 0;
  for (let at = box.parent; at !== null; at = graph.boxes.get(at)?.parent ?? null) count += 1;
  return count;
}

function closedMarks(placed: PlacedBox, picture: Picture, theme: Theme): Mark[] {
  if (placed.box.isOpen) return [];
  return placed.box.node ? opMarks(placed, picture, theme) : scopeMarks(placed, picture, theme);
}
