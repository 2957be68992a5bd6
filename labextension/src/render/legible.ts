/** How large texts are seen, and which are left out because nobody could read them. Pure. */
import { fitText } from "./fit.js";
import type { TextMark } from "./marks.js";

/** Texts of a fitted picture are seen at this size at least, in CSS pixels: smaller ones grow against the picture, or are left out. */
export const LEAST_TEXT_PX = 9;
/** Of what the user looks at from afar, names are shown down to this size. */
const LEAST_NAME_PX = 5;
/** Texts grow up to so many times their size. */
const MOST_GROWN = 2;
/** A name grows only in so much room. */
const LEAST_NAME_ROOM_PX = 14;
/** A text that has grown may come nearer to the walls of its box. */
const GROWN_ROOM_PX = 10;
/** What begins at the left wall takes this much of that there: on the right stands the box's button. */
const GROWN_LEFT_PX = 6;

export interface SeenText {
  readonly text: string;
  /** In the picture's pixels. */
  readonly size: number;
  /** How far it stands from its mark's place. */
  readonly dx: number;
}

export type TextWidth = (text: string, size: number, weight: number) => number;

/** The text and the size in which a mark is drawn at a zoom; null where it is left out. Names are cut, second lines are whole where they have grown. */
export function seenText(mark: TextMark, zoom: number, widthOf: TextWidth): SeenText | null {
  if (isTooSmall(mark, zoom)) return null;
  const isName = mark.weight === 600;
  const size = sizeAt(zoom, mark);
  const room = size > mark.size ? mark.room + GROWN_ROOM_PX : mark.room;
  const text = fitText(mark.text, room, (part) => widthOf(part, size, mark.weight));
  return !isName && size > mark.size && text !== mark.text ? null : { text, size, dx: size > mark.size && mark.anchor === "start" ? -GROWN_LEFT_PX : 0 };
}

/** Whether a text would not be read at a zoom, or is not meant to be. */
export function isTooSmall(mark: TextMark, zoom: number): boolean {
  // Rounding must not hide what is just large enough.
  const least = mark.weight === 600 ? LEAST_NAME_PX : LEAST_TEXT_PX - 0.01;
  return zoom < mark.from || sizeAt(zoom, mark) * zoom < least;
}

/** From afar texts grow against the picture: what a box is can still be read. */
export function sizeAt(zoom: number, mark: TextMark): number {
  if (mark.id === "" || mark.room * zoom < LEAST_NAME_ROOM_PX) return mark.size;
  const wished = Math.ceil((4 * LEAST_TEXT_PX) / zoom) / 4;
  return Math.min(Math.max(mark.size, wished), MOST_GROWN * mark.size);
}
