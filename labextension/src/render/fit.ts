/** Cuts a text to a width. */

/** The text, or as much of it as has room before an ellipsis. */
export function fitText(text: string, room: number, widthOf: (part: string) => number): string {
  if (widthOf(text) <= room) return text;
  let low = 1;
  let high = text.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(`${text.slice(0, middle)}\u2026`) <= room) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}\u2026`;
}
