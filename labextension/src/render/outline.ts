/** The outlines of shapes, as pen strokes for canvas and SVG. */
import type { ShapeMark } from "./marks.js";
import type { Pen } from "./trace.js";

/** How far a parallelogram leans, and how high a cylinder's lid is. */
const LEAN_PX = 8;
const LID_PX = 5;
/** How far inside a call's bars stand: right of the device strip. */
const BAR_PX = 8;
/** How far the points of what decides reach. */
const POINT_PX = 12;

export function traceOutline(pen: Pen, mark: ShapeMark): void {
  if (mark.shape === "slant") slant(pen, mark);
  else if (mark.shape === "cylinder") cylinder(pen, mark);
  else if (mark.shape === "strip") strip(pen, mark);
  else if (mark.shape === "call") call(pen, mark);
  else if (mark.shape === "choice") choice(pen, mark);
  else rounded(pen, mark);
}

function rounded(pen: Pen, { x, y, w, h, r: wish }: ShapeMark): void {
  const r = Math.min(wish, w / 2, h / 2);
  pen.moveTo(x + r, y);
  pen.lineTo(x + w - r, y);
  pen.quadraticCurveTo(x + w, y, x + w, y + r);
  pen.lineTo(x + w, y + h - r);
  pen.quadraticCurveTo(x + w, y + h, x + w - r, y + h);
  pen.lineTo(x + r, y + h);
  pen.quadraticCurveTo(x, y + h, x, y + h - r);
  pen.lineTo(x, y + r);
  pen.quadraticCurveTo(x, y, x + r, y);
}

/** With an upright line at each side: flow charts draw what stands elsewhere so. */
function call(pen: Pen, mark: ShapeMark): void {
  rounded(pen, mark);
  for (const x of [mark.x + BAR_PX, mark.x + mark.w - BAR_PX]) {
    pen.moveTo(x, mark.y);
    pen.lineTo(x, mark.y + mark.h);
  }
}

/** Pointed at both sides: flow charts draw what decides so, or what begins a loop. */
function choice(pen: Pen, { x, y, w, h }: ShapeMark): void {
  const point = Math.min(POINT_PX, w / 4);
  pen.moveTo(x, y + h / 2);
  pen.lineTo(x + point, y);
  pen.lineTo(x + w - point, y);
  pen.lineTo(x + w, y + h / 2);
  pen.lineTo(x + w - point, y + h);
  pen.lineTo(x + point, y + h);
  pen.lineTo(x, y + h / 2);
}

function slant(pen: Pen, { x, y, w, h }: ShapeMark): void {
  pen.moveTo(x + LEAN_PX, y);
  pen.lineTo(x + w, y);
  pen.lineTo(x + w - LEAN_PX, y + h);
  pen.lineTo(x, y + h);
  pen.lineTo(x + LEAN_PX, y);
}

function cylinder(pen: Pen, { x, y, w, h }: ShapeMark): void {
  const lid = LID_PX;
  const [left, right, top, foot] = [x, x + w, y + lid, y + h - lid];
  pen.moveTo(left, top);
  pen.bezierCurveTo(left, top - lid * 1.33, right, top - lid * 1.33, right, top);
  pen.lineTo(right, foot);
  pen.bezierCurveTo(right, foot + lid * 1.33, left, foot + lid * 1.33, left, foot);
  pen.lineTo(left, top);
  pen.bezierCurveTo(left, top + lid * 1.33, right, top + lid * 1.33, right, top);
}

/** Rounded on the left only, as the box is that it lies in. */
function strip(pen: Pen, { x, y, w, h, r }: ShapeMark): void {
  const round = Math.min(r, w);
  pen.moveTo(x + w, y);
  pen.lineTo(x + round, y);
  pen.quadraticCurveTo(x, y, x, y + round);
  pen.lineTo(x, y + h - round);
  pen.quadraticCurveTo(x, y + h, x + round, y + h);
  pen.lineTo(x + w, y + h);
  pen.lineTo(x + w, y);
}
