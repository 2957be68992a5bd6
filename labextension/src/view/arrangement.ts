/** What is around a view: a cell's output or a page, or a docked panel, which it fills. */
import type { Kept } from "./division.js";

export interface Arrangement {
  /** Whether the view fills what is around it; else it has a height of its own. */
  readonly isDocked: boolean;
  /** How the view was left, and is left now. */
  readonly memory?: { read(): unknown; write(kept: Kept): void };
}

/** As in a cell's output. */
export const inPage: Arrangement = { isDocked: false };
