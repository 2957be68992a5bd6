/** Which colours a picture has, so that each has its meaning beside it. Pure. */
import { shapeOf } from "../layout/measure.js";
import { runsBodies } from "../model/bodies.js";
import { ROOT } from "../model/ids.js";
import type { Picture } from "./scene.js";

/** What a colour of the picture means. */
export type Meaning = "fed" | "state" | "alike" | "body" | "selected" | "changed" | "stale" | "held" | "failed" | "token";

/** What is drawn over the picture now. */
export interface Over {
  /** Whether an overlay's colours stand in the place of those of kinds and likeness. */
  readonly isPlain: boolean;
  readonly isHeld: boolean;
  readonly hasFailed: boolean;
  readonly hasTokens: boolean;
}

/** The meanings of the colours that are drawn, the rarest first: where room is short, these stay. */
export function meaningsIn({ graph, selection, related, marked, stale }: Picture, { isPlain, isHeld, hasFailed, hasTokens }: Over): Meaning[] {
  const found = new Set<Meaning>();
  for (const { id, node, frame, body, isVariable, isOpen, likeness } of isPlain ? [] : graph.boxes.values()) {
    if (id === ROOT) continue;
    const shape = node === null ? null : shapeOf(node);
    if (shape === "slant" && node?.type !== "Parameter") found.add("fed");
    else if (shape === "cylinder" || (isVariable && !isOpen)) found.add("state");
    else if (body || frame || (node !== null && runsBodies(node))) found.add("body");
    if (likeness > 0 && !body && !(isVariable && !isOpen)) found.add("alike");
  }
  const isSeen = (ids: ReadonlySet<string>): boolean => [...ids].some((id) => graph.boxes.has(id));
  return [
    ...(hasFailed ? ["failed"] as const : []), ...(isHeld ? ["held"] as const : []), ...(hasTokens ? ["token"] as const : []),
    ...(isSeen(stale) ? ["stale"] as const : []), ...(isSeen(marked) ? ["changed"] as const : []),
    ...(["body", "state", "fed", "alike"] as const).filter((one) => found.has(one)),
    ...((selection !== null && graph.boxes.has(selection)) || related.size > 0 ? ["selected"] as const : []),
  ];
}

/** The devices whose colours stand at the edges of operations that are seen. */
export function devicesIn({ graph, devices }: Picture): (readonly [string, number])[] {
  const seen = new Set([...graph.boxes.values()].map(({ node, isOpen }) => (isOpen ? null : (node?.placed ?? null))));
  return [...devices].filter(([name]) => seen.has(name));
}
