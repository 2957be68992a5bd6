/** The marks of links and control edges. Data is solid, control dashed, as is what a decision leads to. */
import { FONT_PX } from "../layout/measure.js";
import type { Positions, Rect } from "../layout/types.js";
import { plural } from "../model/figures.js";
import { opOf, type BoxId } from "../model/ids.js";
import type { Link } from "../model/links.js";
import type { SessionState } from "../wire/messages.js";
import type { Mark, PathMark, TextMark } from "./marks.js";
import type { Picture } from "./scene.js";
import type { Theme } from "./theme.js";

/** A box with more control edges than this shows their number, and the edges when it is selected. */
const MOST_CONTROL = 6;

/** Zoom from which labels are drawn. */
const LABEL_FROM = 0.75;

export function linkMarks(
  picture: Picture, positions: Positions, run: SessionState | null, theme: Theme,
): Mark[] {
  const plain: Mark[] = [];
  const lit: Mark[] = [];
  for (const link of picture.links) {
    const route = positions.routes.get(link.id);
    if (!route || route.length < 4) continue;
    const isLit = touches(link, picture.selection);
    (isLit ? lit : plain).push(linkMark(picture, link, route, isLit, theme));
  }
  return [...plain, ...lit, ...labels(picture, positions, theme, run)];
}

/** Whether a line starts or ends at the selection. */
function touches(link: Link, selection: BoxId | null): boolean {
  if (selection === null) return false;
  return link.source === selection || link.to === selection || link.from === selection
    || link.targets.includes(selection);
}

function linkMark(
  picture: Picture, link: Link, route: readonly number[], isLit: boolean, theme: Theme,
): PathMark {
  const goesIn = link.to !== null && picture.graph.boxes.get(link.to)?.isOpen && !link.targets.includes(link.to);
  const isReturn = link.kind === "return";
  return {
    kind: "path", id: link.id, route, isDashed: link.kind === "decides",
    stroke: isLit ? theme.accent : isReturn ? theme.body : theme.line,
    width: (isLit ? 1 : 0) + Math.min(3, 1 + Math.log2(link.count) * 0.3),
    // The arrow head stands where the data arrives, not at every wall on the way; a return shows where it turns in.
    hasArrow: isReturn || (link.to !== null && !goesIn), opacity: isLit ? 1 : 0.85,
  };
}

/** Under each operation, what comes out of it: once, for all the lines that start there. */
function labels(
  picture: Picture, positions: Positions, theme: Theme, run: SessionState | null,
): Mark[] {
  const bySource = new Map<string, { texts: Set<string>; link: Link }>();
  for (const link of picture.links) {
    if (link.from !== link.source || link.kind !== "data") continue;
    const text = link.label && link.targets.includes(link.scope) ? `result ${link.label}` : link.label;
    const known = bySource.get(link.from);
    if (known) known.texts.add(text);
    else bySource.set(link.from, { texts: new Set([text]), link });
  }
  const marks: Mark[] = [];
  const isClosed = run?.state === "closed";
  for (const [source, { texts, link }] of bySource) {
    const rect = positions.boxes.get(source);
    const route = positions.routes.get(link.id);
    const text = [...texts].filter((label) => label !== "").join(" \u00b7 ");
    if (!rect || !route || !text || texts.has("")) continue;
    marks.push(label(text, route[0] ?? 0, rect.y + rect.h + 12, rect.w + 44, theme, isClosed));
  }
  return marks;
}

function label(
  text: string, x: number, y: number, room: number, theme: Theme, isFaint: boolean,
): TextMark {
  return {
    kind: "text", id: "", text, x, y, size: FONT_PX.type - 1, weight: 400,
    fill: isFaint ? theme.border : theme.muted, anchor: "middle", room, halo: theme.background, from: LABEL_FROM,
  };
}

export function controlMarks(picture: Picture, positions: Positions, theme: Theme): Mark[] {
  const edges = picture.graph.edges.filter((edge) => edge.kind === "control");
  const degree = new Map<BoxId, number>();
  for (const { from, to } of edges) {
    for (const end of [from, to]) degree.set(end, (degree.get(end) ?? 0) + 1);
  }
  const marks: Mark[] = [];
  const hidden = new Map<BoxId, number>();
  for (const { from, to } of edges) {
    const isLit = from === picture.selection || to === picture.selection;
    // Across walls they would run behind boxes that they have nothing to do with.
    const isHidden = parentOf(picture, from) !== parentOf(picture, to) || (degree.get(from) ?? 0) > MOST_CONTROL || (degree.get(to) ?? 0) > MOST_CONTROL;
    const [start, end] = [positions.boxes.get(from), positions.boxes.get(to)];
    if (isHidden && !isLit) for (const box of [from, to]) hidden.set(box, (hidden.get(box) ?? 0) + 1);
    if (!start || !end || (isHidden && !isLit)) continue;
    marks.push({
      kind: "path", id: `${from}>${to}`, route: controlRoute(start, end), isDashed: true, hasArrow: true,
      stroke: isLit ? theme.accent : theme.line, width: isLit ? 1.5 : 1, opacity: isLit ? 1 : 0.6,
    });
  }
  return [...marks, ...counts(hidden, picture, positions, theme)];
}

function parentOf(picture: Picture, box: BoxId): BoxId | null {
  return picture.graph.boxes.get(box)?.parent ?? null;
}

/** "12 control edges" below a box whose control edges are not drawn. */
function counts(
  hidden: ReadonlyMap<BoxId, number>, picture: Picture, positions: Positions, theme: Theme,
): Mark[] {
  const giving = new Set(picture.links.map((link) => link.from));
  const marks: Mark[] = [];
  for (const [box, count] of hidden) {
    const rect = positions.boxes.get(box);
    // Where data leaves a box, its label stands there already.
    if (!rect || opOf(box) === null || giving.has(box)) continue;
    marks.push(label(plural(count, "control edge"), rect.x + rect.w / 2, rect.y + rect.h + 11, 160, theme, false));
  }
  return marks;
}

/** Downwards where that is near; else out at the side, along, and in just before the end. */
function controlRoute(start: Rect, end: Rect): number[] {
  const [x0, x1] = [start.x + start.w / 2, end.x + end.w / 2];
  const goesRight = end.x > start.x + start.w;
  if (end.y >= start.y + start.h && !goesRight) return [x0, start.y + start.h, x1, end.y];
  const [xs, xe] = goesRight ? [start.x + start.w, end.x] : [start.x, end.x + end.w];
  const [ys, ye] = [start.y + start.h / 2, end.y + end.h / 2];
  const turn = goesRight ? xe - 15 : (xs + xe) / 2;
  if (!goesRight || Math.abs(ys - ye) > start.h / 2) return [xs, ys, turn, ys, turn, ye, xe, ye];
  // Side by side: under the boxes that may stand between.
  const under = Math.max(start.y + start.h, end.y + end.h) + 9;
  return [x0, start.y + start.h, x0, under, turn, under, turn, ye, xe, ye];
}
