/** The marks of operations and scopes. Shapes tell kinds apart; colour never does so alone. */
import { detailOf, FONT_PX, kindLine, shapeOf, timesOf, type OpShape } from "../layout/measure.js";
import { SPACE, type Rect } from "../layout/types.js";
import { runsBodies } from "../model/bodies.js";
import type { Mark, ShapeMark, TextMark } from "./marks.js";
import type { Box } from "../model/visible.js";
import { sheets } from "./sheets.js";
import type { PlacedBox, Picture } from "./scene.js";
import { deviceColor, devicePattern, tint, type Theme } from "./theme.js";

/** Side of the square with "+" or "-" on a scope. */
export const TOGGLE_PX = 14;
/** Half of a line of the sign. */
const SIGN_PX = 3.5;

const DOT_PX = 9;

/** Between the two lines around the frame of a loop or a branching operation. */
const FRAME_PX = 3;

/** Below this zoom names are no longer legible, though they grow (see `legible`). */
const NAME_FROM = 0.27;

export function opMarks({ box, rect }: PlacedBox, picture: Picture, theme: Theme): Mark[] {
  const node = box.node;
  if (!node) return [];
  const shape = shapeOf(node);
  const outline: ShapeMark = {
    kind: "shape", id: box.id, shape, ...rect, r: shape === "pill" ? rect.h / 2 : 5,
    ...shapeColors(shape, theme), ...edgeOf(box, picture, theme, shape),
  };
  const x = rect.x + rect.w / 2;
  const room = rect.w - (shape === "call" || shape === "choice" ? 22 : 16);
  if (shape === "pill") {
    return [outline, ...strip(node.placed, rect, shape, picture, theme), ...dots({ box, rect }, picture, theme),
      text(box.id, box.name, x + 4, rect.y + rect.h / 2, room - 8, theme, { size: FONT_PX.type })];
  }
  // The lid of a cylinder takes room above.
  const y = rect.y + rect.h / 2 + (shape === "cylinder" ? 3 : 0);
  return [
    outline, ...strip(node.placed, rect, shape, picture, theme), ...dots({ box, rect }, picture, theme),
    text(box.id, box.name, x, y - 7, room, theme, { weight: 600 }),
    text(box.id, kindLine(box), x, y + 8, room, theme, { size: FONT_PX.type, fill: theme.muted }),
  ];
}

/** On the corner a dot where the latest cell has changed or added something, a ring where something is stale. */
function dots({ box, rect }: PlacedBox, picture: Picture, theme: Theme): Mark[] {
  const dot = { fill: theme.mark, stroke: theme.background, width: 1.5 };
  const ring = { fill: theme.background, stroke: theme.mark, width: 2.5 };
  const kinds = [...(picture.marked.has(box.id) ? [dot] : []), ...(picture.stale.has(box.id) ? [ring] : [])];
  return kinds.map((kind, k) => ({
    kind: "shape", id: "", shape: "pill", x: rect.x + rect.w - DOT_PX + 2 - k * (DOT_PX + 3), y: rect.y - 2,
    w: DOT_PX, h: DOT_PX, r: DOT_PX / 2, ...kind,
  }));
}

/** A strip at the left edge in the device's colour. */
function strip(placed: string | null, rect: Rect, shape: string, picture: Picture, theme: Theme): Mark[] {
  const device = placed === null ? undefined : picture.devices.get(placed);
  if (device === undefined || theme.isPlain) return [];
  const inset = shape === "slant" ? 9 : shape === "pill" ? 8 : shape === "choice" ? 13 : 0;
  const above = shape === "cylinder" ? 9 : shape === "box" || shape === "choice" ? 0 : 5;
  const whole: ShapeMark = {
    kind: "shape", id: "", shape: "strip", x: rect.x + inset, y: rect.y + above, w: 4, h: rect.h - 2 * above,
    r: shape === "box" ? 5 : 2, fill: deviceColor(device), stroke: "", width: 0,
  };
  const every = devicePattern(device);
  const gaps = every === 0 ? 0 : Math.floor((whole.h - 2) / every);
  return [whole, ...Array.from({ length: gaps }, (_, k): ShapeMark => ({ ...whole, shape: "box", r: 0, y: whole.y + (k + 1) * every - 1, h: 2, fill: theme.paper }))];
}

/** What is fed is blue, what lives from step to step is sand-coloured: both have shapes of their own, too. */
function shapeColors(shape: OpShape, theme: Theme): Pick<ShapeMark, "fill"> {
  return { fill: shape === "slant" ? theme.feedFill : shape === "cylinder" ? theme.stateFill : theme.paper };
}

export function scopeMarks({ box, rect }: PlacedBox, picture: Picture, theme: Theme): Mark[] {
  const x = rect.x + SPACE.padding - 3;
  const times = timesOf(box);
  const right = rect.x + rect.w - TOGGLE_PX - 14;
  const room = right - x;
  const forTimes = times ? Math.min(room / 2, times.length * FONT_PX.name * 0.62 + 8) : 0;
  const y = rect.y + rect.h / 2 + (box.isVariable ? 3 : 0);
  const quiet = box.group?.kind === "aside" || box.group?.kind === "more";
  return [
    ...sheets({ box, rect }, theme), ...walls({ box, rect }, picture, theme, false),
    text(box.id, box.name, x, y - 7, room - forTimes, theme, { weight: 600, anchor: "start", ...(quiet ? { fill: theme.muted } : {}) }),
    ...(times ? [text(box.id, times, right, y - 7, forTimes, theme, { weight: 600, anchor: "end", fill: theme.accent })] : []),
    text(box.id, detailOf(box), x, y + 8, room, theme,
      { size: FONT_PX.type, fill: theme.muted, anchor: "start" }),
    ...toggle(rect, y - rect.y, false, theme),
    ...dots({ box, rect }, picture, theme),
  ];
}

/** The area of a scope and the line around it; the frames of loops and branches have two. */
export function walls({ box, rect }: PlacedBox, picture: Picture, theme: Theme, isOpen: boolean): Mark[] {
  const shape: OpShape = box.isVariable && !isOpen ? "cylinder" : "box";
  const { stroke, width } = edgeOf(box, picture, theme, shape);
  const isMade = box.group?.kind === "part" || box.group?.kind === "more" || box.group?.kind === "copy";
  const outer = { ...outline(box.id, rect, fillOf(box, theme, isOpen), stroke, width), shape, ...(isMade ? { isDashed: true } : {}) };
  if (!box.frame) return [outer];
  const { x, y, w, h } = rect;
  const inner = { x: x + FRAME_PX, y: y + FRAME_PX, w: Math.max(0, w - 2 * FRAME_PX), h: Math.max(0, h - 2 * FRAME_PX) };
  return [outer, { ...outline("", inner, "", stroke, 0.75), r: 5 }];
}

/** The line around a box: the selection and what belongs to it stand out, and so do functions. */
function edgeOf(box: Box, picture: Picture, theme: Theme, shape: OpShape): Pick<ShapeMark, "stroke" | "width"> {
  if (picture.selection === box.id) return { stroke: theme.accent, width: 2.5 };
  if (picture.related.has(box.id)) return { stroke: theme.accent, width: 2 };
  if (shape === "slant" && box.node?.type !== "Parameter") return { stroke: theme.feed, width: 1.25 };
  if (shape === "cylinder") return { stroke: theme.state, width: 1 };
  const isOfBody = box.body !== null || box.frame !== null || (box.node !== null && runsBodies(box.node));
  return { stroke: isOfBody ? theme.body : theme.border, width: box.body || box.frame ? 1.5 : 1 };
}

/** Drawn after the lines, so that lines pass under the name. */
export function openScopeHeader({ box, rect }: PlacedBox, theme: Theme): Mark[] {
  const y = rect.y + SPACE.header / 2 + 1;
  const x = rect.x + SPACE.padding - 4;
  const halo = fillOf(box, theme, true);
  const count = [timesOf(box), detailOf(box)].filter(Boolean).join("  ");
  // The layout made the header wide enough for both; this only holds while a box grows.
  const room = Math.max(20, rect.w - SPACE.padding - TOGGLE_PX - 20);
  const forCount = Math.min(room / 2, count.length * FONT_PX.type * 0.7);
  return [
    text(box.id, box.name, x, y, room - forCount, theme, { weight: 600, anchor: "start", halo }),
    text(box.id, count, rect.x + rect.w - TOGGLE_PX - 16, y, Math.max(forCount, 46), theme,
      { size: FONT_PX.type, fill: theme.muted, anchor: "end", halo }),
    ...toggle(rect, SPACE.header / 2 + 1, true, theme),
  ];
}

function fillOf(box: Box, theme: Theme, isOpen: boolean): string {
  if (box.body) return theme.bodyFill;
  if (box.isVariable && !isOpen) return theme.stateFill;
  if (box.likeness > 0 && !theme.isPlain) return tint(box.likeness, theme);
  return isOpen ? theme.background : theme.folder;
}

function outline(id: string, rect: Rect, fill: string, stroke: string, width: number): ShapeMark {
  return { kind: "shape", id, shape: "box", ...rect, r: 8, fill, stroke, width };
}

/** Where the "+" or "-" of a scope is, relative to nothing: in the picture's coordinates. */
export function toggleRect(rect: Rect, middle: number): Rect {
  return { x: rect.x + rect.w - TOGGLE_PX - 9, y: rect.y + middle - TOGGLE_PX / 2, w: TOGGLE_PX, h: TOGGLE_PX };
}

/** The sign is drawn, so that it can be seen where a text of its size could not be read. */
function toggle(rect: Rect, middle: number, isOpen: boolean, theme: Theme): Mark[] {
  const at = toggleRect(rect, middle);
  const [x, y] = [at.x + at.w / 2, at.y + at.h / 2];
  const line = (route: readonly number[]): Mark => (
    { kind: "path", id: "", route, stroke: theme.text, width: 1.6, isDashed: false, hasArrow: false, opacity: 1 }
  );
  return [
    { kind: "shape", id: "", shape: "box", ...at, r: 3, fill: theme.paper, stroke: theme.border, width: 1 },
    line([x - SIGN_PX, y, x + SIGN_PX, y]), ...(isOpen ? [] : [line([x, y - SIGN_PX, x, y + SIGN_PX])]),
  ];
}

function text(
  id: string, content: string, x: number, y: number, room: number, theme: Theme,
  style: Partial<Pick<TextMark, "size" | "weight" | "fill" | "anchor" | "halo" | "from">>,
): TextMark {
  return {
    kind: "text", id, text: content, x, y, room, size: FONT_PX.name, weight: 400, fill: theme.text,
    anchor: "middle", halo: "", from: NAME_FROM, ...style,
  };
}
