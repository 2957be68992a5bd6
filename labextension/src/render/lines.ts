/** The marks of links and control edges. Data is solid, control dashed, as is what a decision leads to. */
import { FONT_PX } from "../layout/measure.js";
import { textWidth } from "../layout/text.js";
import type { Positions, Rect } from "../layout/types.js";
import type { BoxId } from "../model/ids.js";
import type { Link } from "../model/links.js";
import type { SessionState } from "../wire/messages.js";
import type { Mark, PathMark, TextMark } from "./marks.js";
import type { Picture } from "./scene.js";
import { lineWidth, sheetsBelow } from "./sheets.js";
import { BEYOND_PX, stubMarks, stubsOf, stubTicks, stubText, type Stubs } from "./stubs.js";
import type { Theme } from "./theme.js";

/** Zoom from which labels are drawn. */
const LABEL_FROM = 9 / FONT_PX.type;

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
  const stubs = stubsOf(picture.graph, positions);
  return [
    ...plain, ...lit, ...stubTicks(picture.graph, positions, theme), ...counts(picture, positions, theme), ...labels(picture, positions, theme, run, stubs),
    ...stubMarks(stubs, positions, theme, LABEL_FROM),
  ];
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
    width: (isLit ? 1 : 0) + lineWidth(link.bytes),
    // The arrow head stands where the data arrives, not at every wall on the way; a return shows where it turns in.
    hasArrow: isReturn || (link.to !== null && !goesIn), opacity: isLit ? 1 : 0.85,
  };
}

/** Where several lines leave a box, how many edges each stands for, where it arrives alone; of a single one its box's label tells. */
function counts(picture: Picture, positions: Positions, theme: Theme): Mark[] {
  const drawn = picture.links.filter(({ id, from, kind }) => from !== null && kind !== "return" && positions.routes.has(id));
  const leaving = new Map<BoxId, number>();
  const arriving = new Map<BoxId, number>();
  for (const { from, to } of drawn) {
    leaving.set(from ?? "", (leaving.get(from ?? "") ?? 0) + 1);
    arriving.set(to ?? "", (arriving.get(to ?? "") ?? 0) + 1);
  }
  return drawn.flatMap((link) => {
    const route = positions.routes.get(link.id);
    if (!route || link.count < 2 || link.to === null) return [];
    if (leaving.get(link.from ?? "") === 1 || arriving.get(link.to) !== 1) return [];
    const [x, y] = [route[route.length - 2] ?? 0, route[route.length - 1] ?? 0];
    return [{ ...label(tensors(link.count), x + 6, y - 12, 60, theme, false), anchor: "start" as const }];
  });
}

/** Under each box, what comes out of it, once for all the lines that start there; or where it goes without a line. */
function labels(
  picture: Picture, positions: Positions, theme: Theme, run: SessionState | null, stubs: ReadonlyMap<BoxId, Stubs>,
): Mark[] {
  const bySource = new Map<string, Link[]>();
  for (const link of picture.links) {
    if (link.from !== link.source || link.kind !== "data" || !positions.routes.has(link.id)) continue;
    bySource.set(link.from, [...(bySource.get(link.from) ?? []), link]);
  }
  const isClosed = run?.state === "closed";
  return [...new Set([...bySource.keys(), ...stubs.keys()])].flatMap((source) => {
    const [rect, box] = [positions.boxes.get(source), picture.graph.boxes.get(source)];
    if (!rect || !box) return [];
    const links = bySource.get(source) ?? [];
    const room = rect.w + BEYOND_PX;
    const text = stubText("to", stubs.get(source)?.to ?? [], room) || labelOf(links, room);
    const [x = 0, y = 0] = (links[0] && positions.routes.get(links[0].id)) ?? [];
    // Of a line that leaves sideways the label stands below the box, too.
    const middle = y >= rect.y + rect.h ? x : rect.x + rect.w / 2;
    return text ? [label(text, middle, rect.y + rect.h + 10 + sheetsBelow(box), room, theme, isClosed)] : [];
  });
}

/** What the lines out of a box carry, where they say so; of a single bundle also how many edges it stands for. */
function labelOf(links: readonly Link[], room: number): string {
  const texts = new Set(links.map((link) => (link.label && link.targets.includes(link.scope) ? `result ${link.label}` : link.label)));
  const [only] = links;
  const times = links.length === 1 && only && only.count > 1 ? tensors(only.count) : "";
  const carried = texts.has("") ? "" : [...texts].join(" \u00b7 ");
  const whole = [carried, times].filter(Boolean).join(", ");
  return carried && textWidth(whole, FONT_PX.type) > room ? carried : whole;
}

const tensors = (count: number): string => `${count} tensors`;

function label(
  text: string, x: number, y: number, room: number, theme: Theme, isFaint: boolean,
): TextMark {
  return {
    kind: "text", id: "", text, x, y, size: FONT_PX.type, weight: 400,
    fill: isFaint ? theme.border : theme.muted, anchor: "middle", room, halo: theme.background, from: LABEL_FROM,
  };
}

/** Control edges are drawn where they begin or end at the selection; else they are stubs. */
export function controlMarks(picture: Picture, positions: Positions, theme: Theme): Mark[] {
  return picture.graph.edges.flatMap(({ from, to, kind }): Mark[] => {
    const isLit = kind === "control" && (from === picture.selection || to === picture.selection);
    const [start, end] = [positions.boxes.get(from), positions.boxes.get(to)];
    if (!isLit || !start || !end) return [];
    return [{
      kind: "path", id: `${from}>${to}`, route: controlRoute(start, end), isDashed: true, hasArrow: true,
      stroke: theme.accent, width: 1.5, opacity: 1,
    }];
  });
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
