/** Bundles the edges between visible boxes: one per pair and kind, with a count and a label. */
import type { Output } from "../wire/messages.js";
import { withStubs } from "../rules/stubs.js";
import { leastBytes, typeText } from "./figures.js";
import type { BoxId } from "./ids.js";

/**
 * "decides": from what decides in a frame to the body that runs then or not; "return": from a result
 * of a loop's body to where it enters in the next iteration.
 */
export type EdgeKind = "data" | "control" | "decides" | "return";

export interface Edge {
  readonly from: BoxId;
  readonly to: BoxId;
  readonly kind: EdgeKind;
  /** How many edges of the graph this one stands for. */
  readonly count: number;
  /** Bytes of all that it carries, as far as shapes are known. */
  readonly bytes: number;
  /** dtype[shape] where all are equal, else "". */
  readonly label: string;
  /** Of a return: the frame in which it runs around the body; else null. */
  readonly frame: BoxId | null;
  /** Shown by its name at both ends, without a line: control edges, and fans over `MOST_LINES`. */
  readonly isStub: boolean;
}

interface Bundle {
  from: BoxId;
  to: BoxId;
  kind: EdgeKind;
  frame: BoxId | null;
  count: number;
  bytes: number;
  /** null as soon as two differ. */
  label: string | null;
}

export class Bundles {
  readonly #byKey = new Map<string, Bundle>();

  add(from: BoxId, to: BoxId, kind: EdgeKind, carries: Output | null, frame: BoxId | null = null): void {
    if (from === to && kind !== "return") return;
    const label = carries ? typeText(carries) : "";
    const bytes = carries ? leastBytes(carries) : 0;
    const key = `${from}>${to}>${kind}`;
    const known = this.#byKey.get(key);
    if (!known) {
      this.#byKey.set(key, { from, to, kind, frame, count: 1, bytes, label });
      return;
    }
    known.count += 1;
    known.bytes += bytes;
    if (known.label !== label) known.label = null;
  }

  /** @param scopeOf the open scope that a box stands in */
  edges(scopeOf: (box: BoxId) => BoxId | null): Edge[] {
    return withStubs([...this.#byKey.values()].map((bundle) => ({ ...bundle, label: bundle.label ?? "" })), scopeOf);
  }
}
