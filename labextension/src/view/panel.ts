/** What a panel is. */
import type { ViewContext } from "./context.js";

/** Where a panel stands: above, beside, on or below the stage; what is in the strip between the top and the stage belongs to the picture. */
export type Region = "top" | "left" | "strip" | "stage" | "below" | "right";

export interface Panel {
  readonly id: string;
  /** What it shows, for people. */
  readonly title: string;
  readonly region: Region;
  /** Panels of a region stand in this order. */
  readonly order: number;
  /** Whether it is in the page while it is closed too, unseen: what is said of the stage refers to it. */
  readonly isAlwaysInPage?: boolean;
  /** Makes the panel for a view. It listens to the model and the store itself, until `view.until` fires. */
  make(view: ViewContext): HTMLElement;
}
