/** How the panels of the docked panel stand: as it is remembered, and at first. Pure. */

/** An area of a layout, with the ids of panels in place of widgets; as it is remembered. */
export type Area =
  | { readonly type: "tab-area"; readonly widgets: readonly string[]; readonly currentIndex: number }
  | { readonly type: "split-area"; readonly orientation: "horizontal" | "vertical"; readonly children: readonly Area[]; readonly sizes: readonly number[] };

export const STAGE = "stage";
/** From this width on the inspector stands beside the graph. */
const WIDE_PX = 760;

const tabs = (...widgets: string[]): Area => ({ type: "tab-area", widgets, currentIndex: 0 });

/** What stands where until the user has moved something. */
export function firstLayout(width_px: number): Area {
  if (width_px < WIDE_PX) {
    return { type: "split-area", orientation: "vertical", sizes: [0.66, 0.34], children: [tabs(STAGE), tabs("inspector", "frames")] };
  }
  const right: Area = { type: "split-area", orientation: "vertical", sizes: [0.6, 0.4], children: [tabs("inspector"), tabs("frames")] };
  return { type: "split-area", orientation: "horizontal", sizes: [0.74, 0.26], children: [tabs(STAGE), right] };
}

/** A layout as far as it names panels that there are, each once; null where nothing is left. */
export function known(area: unknown, ids: Set<string>): Area | null {
  const { type, widgets, children, sizes, orientation } = (area ?? {}) as Record<string, unknown>;
  if (type === "tab-area" && Array.isArray(widgets)) {
    const found = (widgets as unknown[]).filter((id): id is string => typeof id === "string" && ids.delete(id));
    return found.length > 0 ? tabs(...found) : null;
  }
  if (type !== "split-area" || !Array.isArray(children) || !Array.isArray(sizes)) return null;
  const parts = children.flatMap((child: unknown, i) => {
    const one = known(child, ids);
    return one ? [{ one, size: typeof sizes[i] === "number" ? sizes[i] : 1 }] : [];
  });
  if (parts.length < 2) return parts[0]?.one ?? null;
  return {
    type: "split-area", orientation: orientation === "vertical" ? "vertical" : "horizontal",
    children: parts.map(({ one }) => one), sizes: parts.map(({ size }) => size),
  };
}

export function idsOf(area: Area): readonly string[] {
  return area.type === "split-area" ? area.children.flatMap(idsOf) : area.widgets;
}
