/** Bundles the edges between visible boxes: one per pair and kind, with a count and a label. */
import type { Output } from "../wire/messages.js";
import { typeText } from "./figures.js";
import type { BoxId } from "./ids.js";

export interface Edge {
  readonly from: BoxId;
  readonly to: BoxId;
  readonly kind: "data" | "control";
  /** How many edges of the graph this one stands for. */
  readonly count: number;
  /** dtype[shape] where all are equal, else "". */
  readonly label: string;
}

interface Bundle {
  from: BoxId;
  to: BoxId;
  kind: "data" | "control";
  count: number;
  /** null as soon as two differ. */
  label: string | null;
}

export class Bundles {
  readonly #byKey = new Map<string, Bundle>();

  add(from: BoxId, to: BoxId, kind: "data" | "control", carries: Output | null): void {
    if (from === to) return;
    const label = carries ? typeText(carries) : "";
    const key = `${from}>${to}>${kind}`;
    const known = this.#byKey.get(key);
    if (!known) {
      this.#byKey.set(key, { from, to, kind, count: 1, label });
      return;
    }
    known.count += 1;
    if (known.label !== label) known.label = null;
  }

  edges(): Edge[] {
    return [...this.#byKey.values()].map((bundle) => ({ ...bundle, label: bundle.label ?? "" }));
  }
}
