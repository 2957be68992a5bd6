/** Measures texts with a canvas, each text once. */
import { FONT_PX, roughMeasure, type Measure } from "../layout/measure.js";

export function canvasMeasure(font: string): Measure {
  const ctx = document.createElement("canvas").getContext("2d");
  if (!ctx) return roughMeasure;
  const known = new Map<string, number>();
  return (text, style) => {
    const key = `${style}|${text}`;
    let width = known.get(key);
    if (width === undefined) {
      ctx.font = `${style === "type" ? 400 : 600} ${FONT_PX[style]}px ${font}`;
      width = ctx.measureText(text).width;
      known.set(key, width);
    }
    return width;
  };
}
