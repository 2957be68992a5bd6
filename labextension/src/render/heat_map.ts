/** The colours of a value's heat map. Pure. */
import { rampColor } from "./ramp.js";
import type { Theme } from "./theme.js";

/** The level of what is not finite. */
const NOT_FINITE = 255;

/** The colour of a level, 0 to 254, or of what is not finite. */
export function heatColor(level: number, theme: Pick<Theme, "isDark">): string {
  if (level === NOT_FINITE) return theme.isDark ? "#74c0fc" : "#1864ab";
  // The ramp spreads small shares; levels are spread evenly.
  return rampColor((level / (NOT_FINITE - 1)) ** 2, theme);
}
