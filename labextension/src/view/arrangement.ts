/** How the parts of a view stand in what is around it: a cell's output, or a docked panel with panels of its own. */
import { make } from "./dom.js";
import type { Drawers } from "./drawers.js";
import type { Region } from "./panel.js";

/** A panel that was made for a view. */
export interface Part {
  readonly id: string;
  readonly title: string;
  readonly region: Region;
  /** Whether it is in the page while it is closed too. */
  readonly isAlwaysInPage: boolean;
  readonly element: HTMLElement;
}

export interface Arrangement {
  /** Whether the view fills what is around it; else it grows with what is shown. */
  readonly isDocked: boolean;
  /** Puts stage and parts into the view's root, until the signal fires. */
  place(root: HTMLElement, stage: HTMLElement, parts: readonly Part[], drawers: Drawers, until: AbortSignal): void;
}

export function elementsIn(parts: readonly Part[], region: Region): HTMLElement[] {
  return parts.filter((part) => part.region === region).map(({ element }) => element);
}

/** As in a cell's output: beside, above and below the stage. */
export const besideStage: Arrangement = {
  isDocked: false,
  place(root, stage, parts) {
    root.append(
      ...elementsIn(parts, "top"),
      make(
        "div", { class: "fs-main" }, ...elementsIn(parts, "left"),
        make("div", { class: "fs-center" }, stage, ...elementsIn(parts, "below")), ...elementsIn(parts, "right"),
      ),
    );
  },
};
