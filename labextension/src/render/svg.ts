/** The draw list as an SVG document. Digits are rounded; all that is text is escaped. */
import { fitText } from "./fit.js";
import type { Mark, PathMark, Scene, ShapeMark, TextMark } from "./marks.js";
import { traceOutline } from "./outline.js";
import { arrowHead, trace, type Pen } from "./trace.js";

const MARGIN_PX = 12;

export function toSvg(scene: Scene): string {
  const w = Math.ceil(scene.w) + 2 * MARGIN_PX;
  const h = Math.ceil(scene.h) + 2 * MARGIN_PX;
  const lines = scene.marks.map((mark) => markSvg(mark));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="${-MARGIN_PX} ${-MARGIN_PX} ${w} ${h}"`
      + ` font-family="${escape(scene.font)}">`,
    `<rect x="${-MARGIN_PX}" y="${-MARGIN_PX}" width="${w}" height="${h}" fill="${escape(scene.background)}"/>`,
    ...lines, "</svg>", "",
  ].join("\n");
}

function markSvg(mark: Mark): string {
  if (mark.kind === "shape") return shapeSvg(mark);
  return mark.kind === "path" ? pathSvg(mark) : textSvg(mark);
}

function shapeSvg(mark: ShapeMark): string {
  const pen = new PathText();
  traceOutline(pen, mark);
  const stroke = mark.stroke ? ` stroke="${escape(mark.stroke)}" stroke-width="${mark.width}"` : "";
  return `<path d="${pen.text}" fill="${escape(mark.fill || "none")}"${stroke}/>`;
}

function pathSvg(mark: PathMark): string {
  const pen = new PathText();
  trace(pen, mark.route);
  const dash = mark.isDashed ? ` stroke-dasharray="5 4"` : "";
  const line = `<path d="${pen.text}" fill="none" stroke="${escape(mark.stroke)}" stroke-width="${short(mark.width)}"`
    + ` opacity="${mark.opacity}"${dash}/>`;
  if (!mark.hasArrow) return line;
  const head = arrowHead(mark.route, 7).map(short).join(" ");
  return `${line}<polygon points="${head}" fill="${escape(mark.stroke)}" opacity="${mark.opacity}"/>`;
}

function textSvg(mark: TextMark): string {
  const halo = mark.halo ? ` stroke="${escape(mark.halo)}" stroke-width="3" paint-order="stroke"` : "";
  const text = fitText(mark.text, mark.room, (part) => part.length * mark.size * 0.56);
  return `<text x="${short(mark.x)}" y="${short(mark.y)}" font-size="${mark.size}" font-weight="${mark.weight}"`
    + ` text-anchor="${mark.anchor}" dominant-baseline="central" fill="${escape(mark.fill)}"${halo}>${escape(text)}</text>`;
}

class PathText implements Pen {
  text = "";

  moveTo(x: number, y: number): void {
    this.text += `M${short(x)} ${short(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.text += `L${short(x)} ${short(y)}`;
  }

  bezierCurveTo(...numbers: number[]): void {
    this.text += `C${numbers.map(short).join(" ")}`;
  }

  quadraticCurveTo(...numbers: number[]): void {
    this.text += `Q${numbers.map(short).join(" ")}`;
  }
}

function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function escape(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;").replace(/'/g, "&#39;");
}
