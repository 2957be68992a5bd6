/** A small histogram of a value's elements. */
import { significant } from "../model/figures.js";
import type { Fetched } from "../wire/messages.js";

const NS = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [72, 18] as const;

export function histogram({ histogram: counts, minimum, maximum }: Pick<Fetched, "histogram" | "minimum" | "maximum">): SVGElement {
  const svg = document.createElementNS(NS, "svg");
  const said = `from ${significant(minimum ?? 0)} to ${significant(maximum ?? 0)}`;
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "fs-histogram", role: "img", "aria-label": `Histogram ${said}` })) svg.setAttribute(name, value);
  const most = Math.max(1, ...counts);
  const step = WIDTH / counts.length;
  const path = counts.map((count, k) => {
    // What is there is seen.
    const h = count === 0 ? 0 : Math.max(1, (HEIGHT - 1) * count / most);
    return `M${(k * step).toFixed(1)} ${HEIGHT}v${(-h).toFixed(1)}h${(step - 0.5).toFixed(1)}V${HEIGHT}z`;
  });
  const bars = document.createElementNS(NS, "path");
  bars.setAttribute("d", path.join(""));
  svg.append(bars);
  return svg;
}
