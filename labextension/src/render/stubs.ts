/**
 * Stubs: edges that are shown by names at their ends instead of a line - control edges, fans, lines that would be long.
 * Above a box stands what it takes and waits for, below where its values go. Pure.
 */
import { FONT_PX } from "../layout/measure.js";
import { textWidth } from "../layout/text.js";
import type { Positions } from "../layout/types.js";
import type { Edge } from "../model/edges.js";
import type { BoxId } from "../model/ids.js";
import { edgePathsOf } from "../model/links.js";
import type { VisibleGraph } from "../model/visible.js";
import type { PathMark, TextMark } from "./marks.js";
import type { Theme } from "./theme.js";

/** A text may reach so far beyond its box. */
export const BEYOND_PX = 20;

export interface Stubs {
  /** Boxes that data comes from without a line, that it goes to, that are waited for. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly after: readonly string[];
}

/** What stands at each box that has stubs. */
export function stubsOf(graph: VisibleGraph, positions: Positions): Map<BoxId, Stubs> {
  const found = new Map<BoxId, { from: string[]; to: string[]; after: string[] }>();
  const at = (box: BoxId): { from: string[]; to: string[]; after: string[] } => {
    const known = found.get(box) ?? { from: [], to: [], after: [] };
    found.set(box, known);
    return known;
  };
  const name = (box: BoxId): string => graph.boxes.get(box)?.name ?? "";
  const pairs = new Set(graph.edges.filter(({ kind }) => kind === "data").map(({ from, to }) => `${from}>${to}`));
  // A gradient reads what that reads of which it is the gradient.
  const isSaid = ({ from, to }: Edge): boolean => pairs.has(`${from}>${graph.boxes.get(to)?.gradientOf ?? ""}`);
  for (const edge of stubEdges(graph, positions)) {
    // Within what it leads out of or into, an end has no name of its own.
    if (graph.boxes.get(edge.to)?.isOpen || graph.boxes.get(edge.from)?.isOpen) continue;
    if (edge.kind === "control") at(edge.to).after.push(name(edge.from));
    else {
      // What initialises says so at its own end.
      if (graph.boxes.get(edge.from)?.lane !== "aside" && !isSaid(edge)) at(edge.to).from.push(name(edge.from));
      // Every layer has a gradient, an update, a saver: they say so themselves.
      const lane = graph.boxes.get(edge.from)?.lane;
      if (lane === "aside" || lane === graph.boxes.get(edge.to)?.lane) at(edge.from).to.push(name(edge.to));
    }
  }
  return found;
}

function stubEdges(graph: VisibleGraph, positions: Positions): Edge[] {
  const pathOf = edgePathsOf(graph);
  return graph.edges.filter((edge) => edge.isStub || edge.kind === "control" || pathOf(edge).some((id) => !positions.routes.has(id)));
}

/** How far a tick stands from its box's right side, its length, and the distance of data from control. */
const TICK = { inset: 9, length: 8, apart: 7 } as const;

/** At both ends of each edge without a line a tick, at every zoom: where names are too small to be read it says that there is more. */
export function stubTicks(graph: VisibleGraph, positions: Positions, theme: Theme): PathMark[] {
  const marks = new Map<string, PathMark>();
  for (const { from, to, kind } of stubEdges(graph, positions)) {
    const isControl = kind === "control";
    for (const [box, isEnd] of [[from, false], [to, true]] as const) {
      const rect = positions.boxes.get(box);
      const id = `${isEnd ? "into" : "out of"} ${box}${isControl ? ", control" : ""}`;
      if (!rect || marks.has(id)) continue;
      const x = rect.x + rect.w - TICK.inset - (isControl ? TICK.apart : 0);
      const y = isEnd ? rect.y - TICK.length : rect.y + rect.h;
      marks.set(id, {
        kind: "path", id, route: [x, y, x, y + TICK.length], isDashed: isControl, hasArrow: false, stroke: theme.line, width: 1.5, opacity: 0.85,
      });
    }
  }
  return [...marks.values()];
}

/** "from a, b", or as much of it as has room: "from a and 3 more", "from 4 boxes". */
export function stubText(word: string, names: readonly string[], room: number): string {
  const unique = [...new Set(names)];
  const [first] = unique;
  if (first === undefined) return "";
  const choices = [`${word} ${unique.join(", ")}`, ...(unique.length > 1 ? [`${word} ${first} and ${unique.length - 1} more`, `${word} ${unique.length} boxes`] : []), ...(word === "runs after" ? [`after ${unique.length} ${unique.length === 1 ? "box" : "boxes"}`] : [])];
  return choices.find((text) => textWidth(text, FONT_PX.type) <= room) ?? choices[choices.length - 1] ?? "";
}

/** The texts above boxes; those below stand with the labels of their values. */
export function stubMarks(stubs: ReadonlyMap<BoxId, Stubs>, positions: Positions, theme: Theme, from: number): TextMark[] {
  const marks: TextMark[] = [];
  for (const [box, { from: sources, after }] of stubs) {
    const rect = positions.boxes.get(box);
    if (!rect) continue;
    const room = rect.w + BEYOND_PX;
    const text = sources.length > 0 ? stubText("from", sources, room) : stubText("runs after", after, room);
    if (!text) continue;
    marks.push({
      kind: "text", id: "", text, x: rect.x + 1, y: rect.y - 8, size: FONT_PX.type, weight: 400, fill: theme.muted, anchor: "start",
      room, halo: theme.background, from,
    });
  }
  return marks;
}
