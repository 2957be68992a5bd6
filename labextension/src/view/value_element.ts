/** A tensor's value as an element. */
import { significant } from "../model/figures.js";
import { shortFetch } from "../model/run_setup.js";
import { stateText, valueFacts } from "../model/value_facts.js";
import { heatColor } from "../render/heat_map.js";
import type { Theme } from "../render/theme.js";
import type { ValueState } from "../wire/messages.js";
import { column } from "../wire/tables.js";
import { make } from "./dom.js";
import { histogram } from "./histogram.js";

/** A heat map's room, and the largest side of a cell. */
const [ROOM_W, ROOM_H, MOST_CELL] = [240, 110, 14] as const;

/** What is told of a value: figures, histogram and heat map, and what else stands with it. */
export function valueElement(value: ValueState, theme: Theme, more: readonly HTMLElement[] = []): HTMLElement {
  const said = stateText(value);
  const list = make("dl");
  if (value.state === "alive") for (const { name, value: text } of valueFacts(value)) list.append(make("dt", {}, name), make("dd", {}, text));
  const counts = Array.from(column(value.histogram, "count"));
  const isSpread = counts.length > 0 && value.min !== value.max;
  return make(
    "article", { "data-tensor": value.name, "data-state": value.state }, make("h4", {}, shortFetch(value.name)),
    ...(value.state === "alive" ? [list] : []), ...(isSpread ? [spread(value, counts)] : []), ...(value.height > 1 ? [heatMap(value, theme)] : []),
    ...(said === "" ? [] : [make("p", { class: "fs-note" }, said)]), ...more,
  );
}

function spread({ min, max }: ValueState, counts: readonly number[]): HTMLElement {
  const ends = make("figcaption", {}, make("span", {}, significant(min ?? 0)), make("span", {}, significant(max ?? 0)));
  return make("figure", {}, histogram({ histogram: counts, minimum: min, maximum: max }), ends);
}

/** The last two axes: one cell for each element, or for evenly chosen ones. */
function heatMap({ picture, width, height, low, high, shape }: ValueState, theme: Theme): HTMLElement {
  const size = `${shape.slice(-2).join(" \u00d7 ")}${shape.length > 2 ? ", the first of all others" : ""}`;
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
