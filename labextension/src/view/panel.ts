/** What a panel is. */
import type { ViewContext } from "./context.js";

/**
 * Where a panel stands: at the top or the bottom of the view; on the stage, or in the lines above and below it; in the column of tabs; beside
 * the picture, as a section, to work with ("panels") or about what is selected ("about").
 */
export type Region = "top" | "bottom" | "strip" | "stage" | "foot" | "rail" | "panels" | "about";

export interface Panel {
  readonly id: string;
  /** What it shows, for people. */
  readonly title: string;
  readonly region: Region;
  /** Panels of a region stand in this order. */
  readonly order: number;
  /** The least width and height, in CSS pixels, in which a section can be read. */
  readonly least?: { readonly w: number; readonly h: number };
  /** What the button that closes it is called, where that is not "Close" and its title. */
  readonly shuts?: string;
  /** Whether it is in the page while it is closed too, unseen: what is said of the stage refers to it. */
  readonly isAlwaysInPage?: boolean;
  /** Makes the panel for a view. It listens to the model and the store itself, until `view.until` fires. */
  make(view: ViewContext): HTMLElement;
}
