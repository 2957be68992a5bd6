/** Boxes without lines stand aside in rows: on the right of the main drawing or below it, where the room is. Pure. */
import { placeRows, rowWidth, rowsSize } from "./grid.js";
import { SEARCH, SPACE, type Room } from "./types.js";

const GAP = 16;
/** From the main drawing. */
const MARGIN = 2 * SPACE.sibling;

export interface Sized {
  readonly w: number;
  readonly h: number;
  x: number;
  y: number;
}

export interface Block {
  readonly isBelow: boolean;
  /** Width at which its rows end. */
  readonly width: number;
  /** Size of the main drawing with the block. */
  readonly w: number;
  readonly h: number;
}

/** Where the block makes the whole fit its room best; null where there is none. */
export function blockOf(boxes: readonly Sized[], main: Room, room: Room): Block | null {
  if (boxes.length === 0) return null;
  if (main.w <= 0) {
    const width = bestWidth(boxes, room);
    return { isBelow: false, width, ...rowsSize(boxes, width, GAP) };
  }
  const right = rowsSize(boxes, widthFor(boxes, main.h), GAP);
  const below = rowsSize(boxes, main.w, GAP);
  const choices: Block[] = [
    { isBelow: false, width: widthFor(boxes, main.h), w: main.w + MARGIN + right.w, h: Math.max(main.h, right.h) },
    { isBelow: true, width: main.w, w: Math.max(main.w, below.w), h: main.h + SPACE.rank + below.h },
  ];
  return choices.reduce((best, one) => (fitZoom(one, room) > fitZoom(best, room) ? one : best));
}

/** Zoom at which a drawing fits its room. */
export function fitZoom({ w, h }: Room, room: Room): number {
  return Math.min(room.w / Math.max(1, w), room.h / Math.max(1, h));
}

/** The narrowest rows that are no higher than `h`. */
function widthFor(boxes: readonly Sized[], h: number): number {
  const widest = boxes.reduce((most, box) => Math.max(most, box.w), 0);
  let width = widest;
  for (let tries = 0; tries < SEARCH.widenings && rowsSize(boxes, width, GAP).h > h; tries++) width *= SEARCH.wider;
  return width;
}

function bestWidth(boxes: readonly Sized[], room: Room): number {
  const widths = SEARCH.rowShares.map((share) => share * rowWidth(boxes, GAP, room.w / room.h));
  const zoom = (width: number): number => fitZoom(rowsSize(boxes, width, GAP), room);
  return widths.reduce((best, width) => (zoom(width) > zoom(best) ? width : best));
}

/** Puts the boxes into their block, beside or below what reaches from (left, top) to (right, bottom). */
export function placeAside(
  boxes: readonly Sized[], block: Block | null, main: { left: number; top: number; right: number; bottom: number } | null,
): void {
  if (!block) return;
  if (!main) placeRows(boxes, 0, 0, block.width, GAP);
  else if (block.isBelow) placeRows(boxes, main.left, main.bottom + SPACE.rank, block.width, GAP);
  else placeRows(boxes, main.right + MARGIN, main.top, block.width, GAP);
}
