/** Cuts a text to a width: in the middle, for names that begin alike differ at their ends. */

/** The text, or as much of its beginning and end as has room around an ellipsis. */
export function fitText(text: string, room: number, widthOf: (part: string) => number): string {
  if (widthOf(text) <= room) return text;
  let low = 1;
  let high = text.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(cut(text, middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return cut(text, low);
}

/** `kept` characters, a third of them from the end. */
function cut(text: string, kept: number): string {
  const tail = kept < 4 ? 0 : Math.floor(kept / 3);
  return `${text.slice(0, kept - tail)}\u2026${text.slice(text.length - tail)}`;
}
