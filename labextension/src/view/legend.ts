/** What each colour, shape and dot of the picture means: part of the help. */
import { devicesOf, shortDevice } from "../model/devices.js";
import type { GraphModel } from "../model/graph.js";
import { outlinePath } from "../render/svg.js";
import { barMarks } from "../render/devices.js";
import type { Meaning } from "../render/meanings.js";
import { tint, type Theme } from "../render/theme.js";
import type { ShapeKind } from "../render/marks.js";
import { make } from "./dom.js";

interface Sample {
  readonly shape: ShapeKind | "line" | "dot" | "ring";
  readonly fill?: string;
  readonly stroke?: string;
  readonly isDashed?: boolean;
  readonly isDouble?: boolean;
  readonly text: string;
  /** Of a colour that is told beside the picture as well, in a word. */
  readonly meaning?: Meaning;
  readonly word?: string;
}

const [W, H] = [26, 14] as const;

/** The samples for a theme. */
export function samplesOf(theme: Theme): Sample[] {
  const { paper, border, line, accent, body, mark, token, held, alert, folder, muted } = theme;
  return [
    { shape: "box", fill: paper, stroke: border, text: "operation" },
    { shape: "slant", fill: theme.feedFill, stroke: theme.feed, text: "placeholder, parameter", meaning: "fed", word: "fed" },
    { shape: "cylinder", fill: theme.stateFill, stroke: theme.state, text: "variable", meaning: "state", word: "variable" },
    { shape: "pill", fill: paper, stroke: border, text: "constant" },
    { shape: "box", fill: folder, stroke: border, text: "scope or group" },
    { shape: "box", fill: tint(0, theme), stroke: border, text: "scopes of one colour are built alike", meaning: "alike", word: "built alike" },
    { shape: "box", fill: paper, stroke: body, isDouble: true, text: "loop or branch", meaning: "body", word: "loop, branch, function" },
    { shape: "call", fill: paper, stroke: body, text: "function call" },
    { shape: "line", stroke: line, text: "data; wider is more bytes" },
    { shape: "line", stroke: line, isDashed: true, text: "runs after (control)" },
    { shape: "line", stroke: body, text: "to the next iteration" },
    { shape: "box", fill: paper, stroke: accent, text: "selected, and what belongs to it", meaning: "selected", word: "selected" },
    { shape: "dot", fill: mark, text: "new, or changed, by the latest cell", meaning: "changed", word: "new or changed" },
    { shape: "ring", stroke: mark, text: "stale", meaning: "stale", word: "stale" },
    { shape: "dot", fill: token, text: "value on its way, with its iteration", meaning: "token", word: "value on its way" },
    { shape: "box", fill: paper, stroke: held, text: "a step is held before it", meaning: "held", word: "held here" },
    { shape: "box", fill: paper, stroke: alert, text: "the latest step failed at it", meaning: "failed", word: "failed here" },
    { shape: "dot", fill: "#009e73", text: "the session runs; a running iteration, and how far it is" },
    { shape: "dot", fill: "#e69f00", text: "it is held" },
    { shape: "dot", fill: "#d55e00", text: "the latest step was stopped" },
    { shape: "box", fill: paper, stroke: muted, isDashed: true, text: "an iteration that waits" },
    { shape: "box", fill: muted, stroke: muted, text: "an iteration that is done" },
  ];
}

export function legend(model: GraphModel, theme: Theme): HTMLElement {
  const list = make("ul", { class: "fs-legend", "aria-label": "Legend" });
  for (const sample of samplesOf(theme)) list.append(make("li", {}, picture(sample), sample.text));
  const devices = devicesOf(model);
  for (const [device, number] of devices) list.append(make("li", { title: device }, deviceSample(number, theme), shortDevice(device, devices.keys())));
  return list;
}

/** One colour of the picture, with its word. */
export function meaningSample(meaning: Meaning, theme: Theme): HTMLElement {
  const sample = samplesOf(theme).find((one) => one.meaning === meaning);
  return make("span", { "data-meaning": meaning, title: sample?.text ?? "" }, ...(sample ? [picture(sample), sample.word ?? ""] : []));
}

/** A device's colour, and its pattern where several share the colour. */
export function deviceSample(number: number, theme: Theme): SVGElement {
  const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, width: String(W), height: String(H), "aria-hidden": "true" });
  for (const mark of barMarks({ x: 1, y: 2, w: W - 2, h: H - 4 }, number, theme)) svg.append(element("path", { d: outlinePath(mark), fill: mark.fill }));
  return svg;
}

function picture({ shape, fill = "none", stroke = "none", isDashed, isDouble }: Sample): SVGElement {
  const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, width: String(W), height: String(H), "aria-hidden": "true" });
  const style = { fill, stroke, "stroke-width": "1.5", ...(isDashed ? { "stroke-dasharray": "4 3" } : {}) };
  if (shape === "line") svg.append(element("path", { d: `M1 ${H / 2}H${W - 1}`, ...style }));
  else if (shape === "dot" || shape === "ring") svg.append(element("circle", { cx: String(W / 2), cy: String(H / 2), r: "4.5", ...style, "stroke-width": "2.5" }));
  else {
    const mark = { kind: "shape", id: "", shape, x: 1, y: 1, w: W - 2, h: H - 2, r: shape === "pill" ? 6 : 3, fill, stroke, width: 1 } as const;
    svg.append(element("path", { d: outlinePath(mark), ...style }));
  }
  if (isDouble) svg.append(element("rect", { x: "4", y: "4", width: String(W - 8), height: String(H - 8), ...style, "stroke-width": "0.75" }));
  return svg;
}

function element(tag: string, attributes: Readonly<Record<string, string>>): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
