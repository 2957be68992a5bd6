/** The draw list as an SVG document. Digits are rounded; all that is text is escaped. */
import { textWidth } from "../layout/text.js";
import { fitText } from "./fit.js";
import type { Mark, PathMark, Scene, ShapeMark, TextMark } from "./marks.js";
import { traceOutline } from "./outline.js";
import { NO_SURROUND, surroundMarks, type Surround } from "./surround.js";
import { arrowHead, trace, type Pen } from "./trace.js";

const MARGIN_PX = 12;
const DASH = ` stroke-dasharray="5 4"`;

/** With a dark scene of the same marks, readers whose system is dark see that one. */
export function toSvg(scene: Scene, around: Surround = NO_SURROUND, dark: Scene = scene): string {
  const [above, below] = [scene, dark].map((one) => surroundMarks(one, around));
  const marks = [...scene.marks, ...(above?.marks ?? [])];
  const darkMarks = [...dark.marks, ...(below?.marks ?? [])];
  const [top, bottom] = [-(above?.top ?? 0) - MARGIN_PX, scene.h + (above?.bottom ?? 0) + MARGIN_PX];
  const [w, h] = [Math.ceil(Math.max(scene.w, above?.w ?? 0)) + 2 * MARGIN_PX, Math.ceil(bottom - top)];
  const colors = new Colors();
  const ground = `<rect x="${-MARGIN_PX}" y="${top}" width="${w}" height="${h}" ${colors.of("fill", scene.background, dark.background)}/>`;
  const lines = marks.map((mark, k) => markSvg(mark, darkMarks[k] ?? mark, colors));
  const name = escape(around.title || "Dataflow graph");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="fs-picture" role="img" aria-label="${name}" width="${w}" height="${h}"`
      + ` viewBox="${-MARGIN_PX} ${top} ${w} ${h}" style="max-width:100%;height:auto" font-family="${escape(scene.font)}">`,
    `<title>${name}</title>`, ...(around.description ? [`<desc>${escape(around.description)}</desc>`] : []),
    ...colors.sheet(), ground, ...lines, "</svg>", "",
  ].join("\n");
}

/** The colours as attributes, which every reader shows, and a style sheet with those for a dark page. */
class Colors {
  readonly #rules = new Map<string, string>();

  of(attribute: "fill" | "stroke", light: string, dark: string): string {
    return this.both([[attribute, light, dark]]);
  }

  both(pairs: readonly (readonly ["fill" | "stroke", string, string])[]): string {
    const classes = pairs.filter(([, light, dark]) => light !== dark).map(([attribute, light, dark]) => {
      const name = `fs-${attribute}-${word(light)}-${word(dark)}`;
      this.#rules.set(name, `.${name}{${attribute}:${dark || "none"}}`);
      return name;
    });
    const plain = pairs.map(([attribute, light]) => `${attribute}="${escape(light || "none")}"`).join(" ");
    return classes.length > 0 ? `${plain} class="${classes.join(" ")}"` : plain;
  }

  sheet(): string[] {
    const rules = [...this.#rules.values()];
    return rules.length > 0 ? [`<style>@media (prefers-color-scheme:dark){${rules.join("")}}</style>`] : [];
  }
}

const word = (color: string): string => color.replace(/[^\w]/g, "") || "none";

function markSvg(mark: Mark, dark: Mark, colors: Colors): string {
  if (mark.kind === "shape") return shapeSvg(mark, dark as ShapeMark, colors);
  return mark.kind === "path" ? pathSvg(mark, dark as PathMark, colors) : textSvg(mark, dark as TextMark, colors);
}

/** The outline of a shape as an SVG path. */
export function outlinePath(mark: ShapeMark): string {
  const pen = new PathText();
  traceOutline(pen, mark);
  return pen.text;
}

function shapeSvg(mark: ShapeMark, dark: ShapeMark, colors: Colors): string {
  const outline = outlinePath(mark);
  const fill = ["fill", mark.fill, dark.fill] as const;
  if (!mark.stroke) return `<path d="${outline}" ${colors.both([fill])}/>`;
  return `<path d="${outline}" ${colors.both([fill, ["stroke", mark.stroke, dark.stroke]])} stroke-width="${mark.width}"${mark.isDashed ? DASH : ""}/>`;
}

function pathSvg(mark: PathMark, dark: PathMark, colors: Colors): string {
  const pen = new PathText();
  trace(pen, mark.route);
  const dash = mark.isDashed ? DASH : "";
  const line = `<path d="${pen.text}" fill="none" ${colors.of("stroke", mark.stroke, dark.stroke)} stroke-width="${short(mark.width)}"`
    + ` opacity="${mark.opacity}"${dash}/>`;
  if (!mark.hasArrow) return line;
  const head = arrowHead(mark.route, 6 + mark.width).map(short).join(" ");
  return `${line}<polygon points="${head}" ${colors.of("fill", mark.stroke, dark.stroke)} opacity="${mark.opacity}"/>`;
}

function textSvg(mark: TextMark, dark: TextMark, colors: Colors): string {
  const text = fitText(mark.text, mark.room, (part) => textWidth(part, mark.size, mark.weight === 600));
  const body = `<text x="${short(mark.x)}" y="${short(mark.y)}" font-size="${mark.size}" font-weight="${mark.weight}"`
    + ` text-anchor="${mark.anchor}" dominant-baseline="central"`;
  if (!mark.halo) return `${body} ${colors.of("fill", mark.fill, dark.fill)}>${escape(text)}</text>`;
  const both = colors.both([["fill", mark.fill, dark.fill], ["stroke", mark.halo, dark.halo]]);
  return `${body} ${both} stroke-width="3" paint-order="stroke">${escape(text)}</text>`;
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
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;").replace(/'/g, "&#39;");
}
