/** Which edges are shown by names at their ends instead of a line. Pure. */
import { MOST_LINES } from "./types.js";

/**
 * Says of each edge whether it is a stub: control edges are, and fans to more than `MOST_LINES` boxes of one scope. What leads
 * into an open scope passes its wall as one line, so it does not count for those outside.
 */
export function withStubs<E extends { readonly from: string; readonly to: string; readonly kind: string }>(
  edges: readonly E[], scopeOf: (box: string) => string | null,
): (E & { readonly isStub: boolean })[] {
  const out = new Map<string, number>();
  const fan = ({ from, to }: E): string => `${from}>${scopeOf(to) ?? ""}`;
  for (const edge of edges) if (edge.kind === "data") out.set(fan(edge), (out.get(fan(edge)) ?? 0) + 1);
  const isFan = (edge: E): boolean => edge.kind === "data" && (out.get(fan(edge)) ?? 0) > MOST_LINES;
  return edges.map((edge) => ({ ...edge, isStub: edge.kind === "control" || isFan(edge) }));
}
