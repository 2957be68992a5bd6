/** Rows of boxes: for boxes that stand aside, and for scopes with too many to draw in ranks. */

interface Sized {
  readonly w: number;
  readonly h: number;
  x: number;
  y: number;
}

/** Places boxes in rows of about the given width, from (left, top); returns the extent. */
export function placeRows(
  boxes: readonly Sized[], left: number, top: number, width: number, gap: number,
): { w: number; h: number } {
  let x = left;
  let y = top;
  let high = 0;
  let right = left;
  for (const box of boxes) {
    if (x > left && x + box.w > left + width) {
      x = left;
      y += high + gap;
      high = 0;
    }
    box.x = x + box.w / 2;
    box.y = y;
    x += box.w + gap;
    right = Math.max(right, x - gap);
    high = Math.max(high, box.h);
  }
  return { w: right - left, h: boxes.length > 0 ? y + high - top : 0 };
}

/** A width at which the rows make about a 3:2 picture. */
export function rowWidth(boxes: readonly Sized[], gap: number): number {
  const area = boxes.reduce((sum, box) => sum + (box.w + gap) * (box.h + gap), 0);
  const widest = boxes.reduce((most, box) => Math.max(most, box.w), 0);
  return Math.max(widest, Math.sqrt(area * 1.6));
}
