/** What stands beside operations that are fetched or fed: a value, or a word, on a label at the lower edge of the box. Pure. */
import { FONT_PX } from "../layout/measure.js";
import { textWidth } from "../layout/text.js";
import type { Rect } from "../layout/types.js";
import { curvePoints } from "../model/live_notes.js";
import type { Badge, Note } from "../model/run_setup.js";
import { fitText } from "./fit.js";
import type { Mark, ShapeMark, TextMark } from "./marks.js";
import type { Theme } from "./theme.js";

/** A note on a box, as it is shown. */
export interface BoxNote extends Pick<Note, "text" | "badge" | "figures" | "curve" | "fill" | "least"> {
  readonly rect: Rect;
}

const LINE_PX = 16;
const BARS_PX = 14;
const MOST_PX = 210;
const CURVE_PX = 44;
const GAP_PX = 3;
/** From afar labels are drawn larger against the picture, up to so many times. */
const MOST_GROWN = 2.4;
/** Below this zoom a label has one line. */
const NEAR = 0.5;

export function noteMarks(notes: readonly BoxNote[], theme: Theme, zoom: number): Mark[] {
  const pen = new NotePen(theme, Math.min(MOST_GROWN, Math.max(1, 1 / zoom)), zoom >= NEAR);
  return notes.flatMap((note) => (note.badge === "live" ? pen.live(note) : [pen.outline(note), ...pen.label(note)]));
}

/** Draws in one theme, and at one size. */
class NotePen {
  readonly #theme: Theme;
  readonly #size: number;
  readonly #isNear: boolean;

  constructor(theme: Theme, size: number, isNear: boolean) {
    this.#theme = theme;
    this.#size = size;
    this.#isNear = isNear;
  }

  outline({ rect, badge }: BoxNote): Mark {
    const gap = GAP_PX * this.#size;
    const around = { x: rect.x - gap, y: rect.y - gap, w: rect.w + 2 * gap, h: rect.h + 2 * gap };
    return this.#box(around, 7, "", this.#colorOf(badge), 2, badge === "missing");
  }

  /** Below the box, over its lower edge: a line, and for an array a second one and bars. */
  label({ rect, text, badge, figures }: BoxNote): Mark[] {
    const size = this.#size;
    const lines = [text, ...(this.#isNear && figures?.text ? [figures.text] : [])].map((line, k) => this.#fit(line, k === 0));
    const bars = this.#isNear ? (figures?.histogram ?? []) : [];
    const w = Math.max(...lines.map((line, k) => this.#widthOf(line, k === 0)), bars.length > 0 ? 90 * size : 0) + 14 * size;
    const h = (LINE_PX * lines.length + (bars.length > 0 ? BARS_PX + 4 : 1)) * size;
    const [x, y] = [rect.x + rect.w / 2 - w / 2, rect.y + rect.h - 2 * size];
    const isFilled = badge !== "value";
    const color = this.#colorOf(badge);
    return [
      this.#box({ x, y, w, h }, 5, isFilled ? color : this.#theme.background, color, 1.5),
      ...lines.map((line, k) => this.#text(line, x + w / 2, y + (k + 0.5) * LINE_PX * size + size, w, isFilled, k === 0)),
      ...this.#bars(bars, { x: x + 7 * size, y: y + (lines.length * LINE_PX + 1) * size, w: w - 14 * size, h: BARS_PX * size }),
    ];
  }

  /** A number with its curve, or a queue's fill, on the lower edge: small, and without an outline around the box. */
  live({ rect, text, curve = [], fill, least }: BoxNote): Mark[] {
    const size = this.#size;
    const line = this.#fit(text, true);
    const isDrawn = this.#isNear && (curve.length > 1 || fill !== undefined);
    const room = isDrawn ? CURVE_PX * size : 0;
    const w = this.#widthOf(line, true) + room + 12 * size;
    const [x, y, h] = [rect.x + rect.w / 2 - w / 2, rect.y + rect.h - 5 * size, LINE_PX * size];
    const inside = { x: x + 5 * size, y: y + 3 * size, w: room - 4 * size, h: h - 6 * size };
    const { accent, background } = this.#theme;
    return [
      this.#box({ x, y, w, h }, 4, background, accent, 1),
      ...(!isDrawn ? [] : fill === undefined ? this.#curve(curve, inside) : [this.#box(inside, 1, "", accent, 1), this.#box({ ...inside, w: inside.w * fill }, 1, accent, "", 0)]),
      ...(isDrawn && least !== undefined ? [this.#box({ ...inside, x: inside.x + inside.w * least, w: 1.5 * this.#size }, 0, this.#theme.text, "", 0)] : []),
      this.#text(line, x + room + (w - room) / 2, y + h / 2 + 0.5, w - room, false, true),
    ];
  }

  #curve(curve: readonly number[], { x, y, w, h }: Rect): Mark[] {
    const route = curvePoints(curve).flatMap(([a, b]) => [x + a * w, y + b * h]);
    return route.length < 4 ? [] : [{ kind: "path", id: "", route, stroke: this.#theme.accent, width: 1.2 * this.#size, opacity: 1, isDashed: false, hasArrow: false }];
  }

  #bars(counts: readonly number[], { x, y, w, h }: Rect): Mark[] {
    const most = Math.max(1, ...counts);
    const step = w / counts.length;
    return counts.flatMap((count, k) => {
      const high = Math.max(this.#size, (h * count) / most);
      return count === 0 ? [] : [this.#box({ x: x + k * step, y: y + h - high, w: step * 0.86, h: high }, 0, this.#theme.accent, "", 0)];
    });
  }

  #fit(text: string, isBold: boolean): string {
    return fitText(text, MOST_PX * this.#size, (part) => this.#widthOf(part, isBold));
  }

  #widthOf(text: string, isBold: boolean): number {
    return textWidth(text, FONT_PX.type * this.#size, isBold);
  }

  #box(rect: Rect, r: number, fill: string, stroke: string, width: number, isDashed = false): ShapeMark {
    return { kind: "shape", id: "", shape: "box", ...rect, r, fill, stroke, width: width * this.#size, isDashed };
  }

  #text(text: string, x: number, y: number, room: number, isFilled: boolean, isBold: boolean): TextMark {
    const fill = isFilled ? this.#theme.background : isBold ? this.#theme.text : this.#theme.muted;
    return {
      kind: "text", id: "", text, x, y, size: FONT_PX.type * this.#size, weight: isBold ? 600 : 400, fill, anchor: "middle", room, halo: "", from: 0,
    };
  }

  #colorOf(badge: Badge): string {
    const { alert, held, feed, accent } = this.#theme;
    if (badge === "failed") return alert;
    return badge === "missing" ? held : badge === "feed" ? feed : accent;
  }
}
