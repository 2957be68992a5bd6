/** A curve of a few values in a line of text. */
import { curvePoints } from "../model/live_notes.js";

const NS = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [48, 14] as const;

/** Draws a curve into an SVG element that `sparkline` has made. */
export function drawCurve(svg: SVGElement, curve: readonly number[]): void {
  const points = curvePoints(curve).map(([x, y]) => `${(1 + x * (WIDTH - 2)).toFixed(1)} ${(1 + y * (HEIGHT - 2)).toFixed(1)}`);
  const path = points.length > 1 ? `M${points.join("L")}` : "";
  const line = svg.firstElementChild;
  if (line?.getAttribute("d") !== path) line?.setAttribute("d", path);
}

export function sparkline(): SVGElement {
  const svg = document.createElementNS(NS, "svg");
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "fs-sparkline", "aria-hidden": "true" })) svg.setAttribute(name, value);
  svg.append(document.createElementNS(NS, "path"));
  return svg;
}
