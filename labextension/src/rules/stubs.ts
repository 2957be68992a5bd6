/** Which edges are shown by names at their ends instead of a line. Pure. */
import { MOST_LINES } from "./types.js";

/** Says of each edge whether it is a stub: control edges are, and fans to more than `MOST_LINES` boxes. */
export function withStubs<E extends { readonly from: string; readonly kind: string }>(edges: readonly E[]): (E & { readonly isStub: boolean })[] {
  const out = new Map<string, number>();
  for (const { from, kind } of edges) if (kind === "data") out.set(from, (out.get(from) ?? 0) + 1);
  const isFan = ({ from, kind }: E): boolean => kind === "data" && (out.get(from) ?? 0) > MOST_LINES;
  return edges.map((edge) => ({ ...edge, isStub: edge.kind === "control" || isFan(edge) }));
}
