/**
 * What is drawn over the picture while steps run: chips on the frames of running loops, the operation
 * that a step is held before, and values on their way. Pure.
 */
import { FONT_PX } from "../layout/measure.js";
import type { Positions, Rect } from "../layout/types.js";
import type { BoxId } from "../model/ids.js";
import type { Chip } from "../model/running.js";
import type { Mark, ShapeMark, TextMark } from "./marks.js";
import type { Theme } from "./theme.js";
import { pointAt, sampled } from "./trace.js";

/** A value on its way. */
export interface MovingToken {
  /** The lines that it takes; [] where none join the boxes. */
  readonly links: readonly string[];
  readonly from: BoxId;
  readonly to: BoxId;
  /** The innermost iteration that it belongs to; "" outside loops. */
  readonly text: string;
  readonly isDead: boolean;
  /** Whether it belongs to another iteration than the one that was chosen. */
  readonly isFaint: boolean;
  /** How far it has come, 0 to 1. */
  readonly share: number;
}

/** What runs, as far as it can be seen. */
export interface Running {
  readonly chips: readonly Chip[];
  /** The box before which a step is held. */
  readonly held: BoxId | null;
  readonly tokens: readonly MovingToken[];
}

export const STILL: Running = { chips: [], held: null, tokens: [] };

const CHIP_PX = 18;
const DOT_PX = 16;
const HELD_PX = 5;
const FLAG_PX = 15;
/** From afar what runs is drawn larger against the picture, up to so many times. */
const MOST_GROWN = 2.4;

export function runningMarks({ chips, held, tokens }: Running, positions: Positions, theme: Theme, zoom = 1): Mark[] {
  const pen = new RunningPen(theme, Math.min(MOST_GROWN, Math.max(1, 1 / zoom)));
  const at = held === null ? undefined : positions.boxes.get(held);
  return [
    ...(at ? pen.held(at) : []),
    ...chips.flatMap(({ box, text }) => {
      const rect = positions.boxes.get(box);
      return rect ? pen.chip(rect, text) : [];
    }),
    ...tokens.flatMap((token) => {
      const way = wayOf(token, positions);
      return way ? pen.token(pointAt(way, token.share), token) : [];
    }),
  ];
}

/** Draws in one theme, and at one size. */
class RunningPen {
  readonly #theme: Theme;
  readonly #size: number;

  constructor(theme: Theme, size: number) {
    this.#theme = theme;
    this.#size = size;
  }

  /** On the upper wall of a frame. */
  chip(rect: Rect, content: string): Mark[] {
    const { body, background } = this.#theme;
    const [w, h] = [this.#widthOf(content) + 16 * this.#size, CHIP_PX * this.#size];
    const [x, y] = [rect.x + 10, rect.y + 4 - h];
    return [
      pill({ x, y, w, h }, h / 2, body, background, 1.5 * this.#size),
      this.#text(content, x + w / 2, y + h / 2 + 0.5, w, background),
    ];
  }

  /** A thick line around the box, and the word "next" at its corner. */
  held(rect: Rect): Mark[] {
    const { held, background } = this.#theme;
    const around = { x: rect.x - HELD_PX, y: rect.y - HELD_PX, w: rect.w + 2 * HELD_PX, h: rect.h + 2 * HELD_PX };
    const [w, h] = [this.#widthOf("next") + 14 * this.#size, FLAG_PX * this.#size];
    const flag = { x: around.x + around.w - w, y: around.y + around.h - 4, w, h };
    return [
      pill(around, 9, "", held, 3 * this.#size), pill(flag, 4, held, "", 0),
      this.#text("next", flag.x + w / 2, flag.y + h / 2 + 0.5, w, background),
    ];
  }

  /** A dot with its iteration's number; a dead one is grey and hollow. */
  token({ x, y }: { readonly x: number; readonly y: number }, { text, isDead, isFaint }: MovingToken): Mark[] {
    const { token, muted, background } = this.#theme;
    const isFilled = !isDead && !isFaint;
    const h = DOT_PX * this.#size;
    const w = Math.max(h, this.#widthOf(text) + 9 * this.#size);
    const [fill, stroke] = isFilled ? [token, background] : [background, muted];
    const dot = pill({ x: x - w / 2, y: y - h / 2, w, h }, h / 2, fill, stroke, 1.5 * this.#size);
    return text ? [dot, this.#text(text, x, y + 0.5, w, stroke)] : [dot];
  }

  #widthOf(content: string): number {
    return content.length * FONT_PX.type * 0.58 * this.#size;
  }

  #text(content: string, x: number, y: number, room: number, fill: string): TextMark {
    const size = (FONT_PX.type - 0.5) * this.#size;
    return { kind: "text", id: "", text: content, x, y, size, weight: 600, fill, anchor: "middle", room, halo: "", from: 0 };
  }
}

function pill(rect: Rect, r: number, fill: string, stroke: string, width: number): ShapeMark {
  return { kind: "shape", id: "", shape: "box", ...rect, r, fill, stroke, width };
}

/** The lines one after the other; straight from box to box where there are none. */
function wayOf({ links, from, to }: MovingToken, positions: Positions): readonly number[] | null {
  const routes = links.map((id) => positions.routes.get(id) ?? []);
  if (routes.length > 0 && routes.every((route) => route.length >= 4)) return routes.flatMap(sampled);
  const [start, end] = [positions.boxes.get(from), positions.boxes.get(to)];
  if (!start || !end || from === to) return null;
  return [start.x + start.w / 2, start.y + start.h, end.x + end.w / 2, end.y];
}
