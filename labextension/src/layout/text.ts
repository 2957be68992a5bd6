/** How wide texts are where there is no font to ask: estimates, rather more than less. Pure. */

/** Widths in units of the font's size; others are `PLAIN` or, of capitals, `CAPITAL`. */
const NARROW = new Set("ijlt.,:;'|!fr()[]/ I1");
const WIDE = new Set("mwMW@%");
const PLAIN = 0.59;
const CAPITAL = 0.69;
/** Bold glyphs are wider by this factor. */
const BOLD = 1.14;

/** About how wide a text is in a system font of `px` pixels. */
export function textWidth(text: string, px: number, isBold = false): number {
  let units = 0;
  for (const c of text) units += unitsOf(c);
  return units * px * (isBold ? BOLD : 1);
}

function unitsOf(c: string): number {
  if (NARROW.has(c)) return 0.34;
  if (WIDE.has(c)) return 0.88;
  // East Asian characters and most pictures fill a square.
  if ((c.codePointAt(0) ?? 0) >= 0x1100) return c < "\u2e80" ? PLAIN : 1.05;
  return c >= "A" && c <= "Z" ? CAPITAL : PLAIN;
}
