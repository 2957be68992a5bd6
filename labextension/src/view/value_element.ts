/** A tensor's value as an element. */
import { significant } from "../model/figures.js";
import { shortFetch } from "../model/run_setup.js";
import { numpyCode, stateText, valueFacts } from "../model/value_facts.js";
import { heatColor } from "../render/heat_map.js";
import type { Theme } from "../render/theme.js";
import type { ValueState } from "../wire/messages.js";
import { column } from "../wire/tables.js";
import { make, OWN_KEYS } from "./dom.js";
import { histogram } from "./histogram.js";

/** A heat map's room, and the largest side of a cell. */
const [ROOM_W, ROOM_H, MOST_CELL] = [240, 110, 14] as const;

/** What is told of a value: figures, histogram and heat map, and what else stands with it. */
export function valueElement(value: ValueState, theme: Theme, more: readonly HTMLElement[] = [], slices: Slices | null = null): HTMLElement {
  const said = stateText(value);
  const list = make("dl");
  if (value.state === "alive") for (const { name, value: text } of valueFacts(value)) list.append(make("dt", {}, name), make("dd", {}, text));
  const counts = Array.from(column(value.histogram, "count"));
  const isSpread = counts.length > 0 && value.min !== value.max;
  return make(
    "article", { "data-tensor": value.name, "data-state": value.state }, make("h4", {}, shortFetch(value.name)),
    ...(value.state === "alive" ? [list] : []), ...(isSpread ? [spread(value, counts)] : []), ...(value.height > 1 ? [heatMap(value, theme)] : value.width > 1 && value.shape.length === 1 ? [plot(value)] : []),
    ...(slices && value.state === "alive" && value.shape.length > 2 && value.height > 0 ? [places(value, slices)] : []),
    ...(slices && value.state === "alive" ? [copying(value, slices)] : []),
    ...(said === "" ? [] : [make("p", { class: "fs-note" }, said)]), ...more,
  );
}

/** Which slice of a tensor of more than two axes is seen, and how its value is had in Python. */
export interface Slices {
  readonly at: readonly number[];
  /** Null where slices cannot be asked for. */
  readonly choose: ((at: readonly number[]) => void) | null;
  /** The recorded step; null of a held one. */
  readonly step: number | null;
}

/** A field for each axis before the last two. */
function places({ name, shape }: ValueState, { at, choose }: Slices): HTMLElement {
  const axes = shape.slice(0, -2).map((size, axis) => {
    const field = make("input", { type: "number", min: "0", max: String(size - 1), step: "1", value: String(Math.min(at[axis] ?? 0, size - 1)), "aria-label": `Place along axis ${axis} of ${name}`, title: `of ${size}`, ...OWN_KEYS });
    field.disabled = choose === null;
    field.addEventListener("change", () => choose?.(shape.slice(0, -2).map((_, k) => Math.trunc(k === axis ? Number(field.value) || 0 : (at[k] ?? 0)))));
    return field;
  });
  return make("div", { class: "fs-places" }, "slice [", ...axes.flatMap((field) => [field, ", "]), ":, :]");
}

function copying({ name, shape }: ValueState, { at, step }: Slices): HTMLElement {
  const code = numpyCode(name, shape, at, step);
  const button = make("button", { type: "button", class: "fs-text-button", title: `Copy the code: ${code}`, "data-code": code, ...OWN_KEYS }, "Copy as NumPy");
  button.addEventListener("click", () => void navigator.clipboard?.writeText(code));
  return button;
}

/** A vector as a line, with gaps where it is not finite. */
function plot({ picture, width, low, high, shape }: ValueState): HTMLElement {
  const levels = column(picture, "level");
  let path = "";
  for (let k = 0; k < width; k++) {
    const level = levels[k] ?? 255;
    if (level < 255) path += `${k === 0 || (levels[k - 1] ?? 255) === 255 ? "M" : "L"}${(k / (width - 1)).toFixed(4)} ${(1 - level / 254).toFixed(4)}`;
  }
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const said = `Plot of ${shape[0]} elements, from ${significant(low)} to ${significant(high)}`;
  for (const [key, value] of Object.entries({ class: "fs-plot", viewBox: "0 0 1 1", preserveAspectRatio: "none", role: "img", "aria-label": said })) svg.setAttribute(key, value);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  svg.append(line);
  return make("figure", {}, svg, make("figcaption", {}, make("span", {}, "0"), make("span", {}, String((shape[0] ?? 1) - 1))));
}

function spread({ min, max }: ValueState, counts: readonly number[]): HTMLElement {
  const ends = make("figcaption", {}, make("span", {}, significant(min ?? 0)), make("span", {}, significant(max ?? 0)));
  return make("figure", {}, histogram({ histogram: counts, minimum: min, maximum: max }), ends);
}

/** The last two axes: one cell for each element, or for evenly chosen ones. */
function heatMap({ picture, width, height, low, high, shape }: ValueState, theme: Theme): HTMLElement {
  const size = `${shape.slice(-2).join(" \u00d7 ")}${shape.length > 2 ? `, of a value with ${shape.length} axes` : ""}`;
  const canvas = make("canvas", {
    class: "fs-heat-map", width: String(width), height: String(height), role: "img", "data-testid": "fs-heat-map",
    "aria-label": `Heat map, ${size}, from ${significant(low)} to ${significant(high)}`, title: `${size}, from ${significant(low)} to ${significant(high)}; blue is not finite`,
  });
  const cell = Math.min(MOST_CELL, ROOM_W / width, ROOM_H / height);
  canvas.style.width = `${cell * width}px`;
  canvas.style.height = `${cell * height}px`;
  const ctx = canvas.getContext("2d");
  column(picture, "level").forEach((level, k) => {
    if (!ctx) return;
    ctx.fillStyle = heatColor(level, theme);
    ctx.fillRect(k % width, Math.floor(k / width), 1, 1);
  });
  return make("figure", {}, canvas, make("figcaption", {}, make("span", {}, size)));
}
