/** Rows of boxes: for boxes that stand aside, and for scopes with too many to draw in ranks. */

interface Sized {
  readonly w: number;
  readonly h: number;
}

interface Placed extends Sized {
  /** Middle. */
  x: number;
  /** Upper edge. */
  y: number;
}

/** Places boxes in rows of about the given width, from (left, top); returns the extent. */
export function placeRows(
  boxes: readonly Placed[], left: number, top: number, width: number, gap: number,
): { w: number; h: number } {
  return rows(boxes, width, gap, (box, x, y) => {
    box.x = Math.round(left + x + box.w / 2);
    box.y = Math.round(top + y);
  });
}

/** The extent of such rows. */
export function rowsSize(boxes: readonly Sized[], width: number, gap: number): { w: number; h: number } {
  return rows(boxes, width, gap, () => undefined);
}

function rows<T extends Sized>(
  boxes: readonly T[], width: number, gap: number, place: (box: T, x: number, y: number) => void,
): { w: number; h: number } {
  let [x, y, high, right] = [0, 0, 0, 0];
  for (const box of boxes) {
    if (x > 0 && x + box.w > width) {
      x = 0;
      y += high + gap;
      high = 0;
    }
    place(box, x, y);
    x += box.w + gap;
    right = Math.max(right, x - gap);
    high = Math.max(high, box.h);
  }
  return { w: right, h: boxes.length > 0 ? y + high : 0 };
}

/** A width at which the rows make about a picture of this shape. */
export function rowWidth(boxes: readonly Sized[], gap: number, aspect = 1.6): number {
  const area = boxes.reduce((sum, box) => sum + (box.w + gap) * (box.h + gap), 0);
  const widest = boxes.reduce((most, box) => Math.max(most, box.w), 0);
  return Math.max(widest, Math.sqrt(area * aspect));
}
