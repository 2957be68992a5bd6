/** The one ramp of all that is told by shares: the graph's bars, the table's, the timeline's slices and the lines of code. */
import type { Theme } from "./theme.js";

type Rgb = readonly [number, number, number];

/** From next to nothing to all: lightness alone tells them apart, too. Against dark paper the ramp runs the other way. */
const ON_LIGHT: readonly Rgb[] = [[253, 244, 220], [254, 217, 142], [254, 153, 41], [204, 76, 2], [127, 29, 6]];
const ON_DARK: readonly Rgb[] = [[58, 50, 38], [110, 68, 20], [190, 98, 14], [250, 152, 45], [255, 226, 160]];

/** The colour of a share, 0 to 1. Small shares differ more: 1, 4, 25 and 64 % are 0.1, 0.2, 0.5 and 0.8 of the ramp. */
export function rampColor(share: number, { isDark }: Pick<Theme, "isDark">): string {
  return `rgb(${rampAt(share, isDark).join(", ")})`;
}

/** Ink that can be read on the colour of a share. */
export function rampInk(share: number, { isDark }: Pick<Theme, "isDark">): string {
  const [r, g, b] = rampAt(share, isDark);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#1a1206" : "#ffffff";
}

function rampAt(share: number, isDark: boolean): Rgb {
  const ramp = isDark ? ON_DARK : ON_LIGHT;
  const at = Math.sqrt(Math.min(1, Math.max(0, share))) * (ramp.length - 1);
  const low = ramp[Math.floor(at)] ?? [0, 0, 0];
  const high = ramp[Math.ceil(at)] ?? low;
  const mix = (k: 0 | 1 | 2): number => Math.round(low[k] + (high[k] - low[k]) * (at % 1));
  return [mix(0), mix(1), mix(2)];
}
