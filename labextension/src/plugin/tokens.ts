/** What the plugins give each other. */
import { Token } from "@lumino/coreutils";
import type { Arrangement } from "../view/arrangement.js";

/** How the docked panel was left. */
export type LayoutMemory = NonNullable<Arrangement["memory"]>;

/** The docked panel. */
export interface PanelHandle {
  /** Shows the panel, beside the notebook where it is not there yet; with a graph of its kernel, or what runs. */
  open(graph: string | null): Promise<void>;
}

export const IPanel = new Token<PanelHandle>("flowscope:IPanel", "Shows flowscope's docked panel.");
