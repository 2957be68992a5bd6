/** Breakpoints over the picture: at the boxes that show their operations. */
import type { Positions } from "../layout/types.js";
import type { EdgePaths } from "../model/edge_paths.js";
import type { BoxId } from "../model/ids.js";
import { breakpointMarks } from "../render/breakpoints.js";
import type { Mark } from "../render/marks.js";
import type { Theme } from "../render/theme.js";

export class BreakpointLayer {
  /** Operations with breakpoints, and whether one of these is on. */
  ops: ReadonlyMap<number, boolean> = new Map();

  /** The boxes that have a mark. */
  boxes(edgePaths: EdgePaths | null): ReadonlyMap<BoxId, boolean> {
    const found = new Map<BoxId, boolean>();
    for (const [op, isOn] of this.ops) {
      const box = edgePaths?.boxOf(op) ?? null;
      if (box !== null) found.set(box, (found.get(box) ?? false) || isOn);
    }
    return found;
  }

  marks(edgePaths: EdgePaths | null, positions: Positions, theme: Theme, zoom: number): Mark[] {
    if (this.ops.size === 0) return [];
    const points = [...this.boxes(edgePaths)].flatMap(([box, isOn]) => {
      const rect = positions.boxes.get(box);
      return rect ? [{ rect, isOn }] : [];
    });
    return breakpointMarks(points, theme, zoom);
  }
}
