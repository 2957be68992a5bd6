/** What is fetched and fed, over the picture: notes of operations on the boxes that show them. */
import type { Positions } from "../layout/types.js";
import type { EdgePaths } from "../model/edge_paths.js";
import { opBox, type BoxId } from "../model/ids.js";
import type { Badge, Note } from "../model/run_setup.js";
import type { Mark } from "../render/marks.js";
import { noteMarks, type BoxNote } from "../render/notes.js";
import type { Theme } from "../render/theme.js";

/** Of several notes on one box this decides which are shown. */
const ORDER: readonly Badge[] = ["failed", "missing", "value", "fetch", "feed", "live"];

export class NoteLayer {
  notes: readonly Note[] = [];

  marks(edgePaths: EdgePaths | null, positions: Positions, theme: Theme, zoom: number): Mark[] {
    if (!edgePaths || this.notes.length === 0) return [];
    const shown = [...this.#byBox(edgePaths)].flatMap(([box, notes]): BoxNote[] => {
      const rect = positions.boxes.get(box);
      const badge = ORDER.find((one) => notes.some((note) => note.badge === one)) ?? "fetch";
      return rect ? [{ rect, badge, ...said(notes.filter((note) => note.badge === badge), box) }] : [];
    });
    return noteMarks(shown, theme, zoom);
  }

  #byBox(edgePaths: EdgePaths): Map<BoxId, Note[]> {
    const found = new Map<BoxId, Note[]>();
    for (const note of this.notes) {
      const box = edgePaths.boxOf(note.op);
      if (box) found.set(box, [...(found.get(box) ?? []), note]);
    }
    return found;
  }
}

function said([first, ...more]: readonly Note[], box: BoxId): Omit<BoxNote, "rect" | "badge"> {
  if (!first) return { text: "" };
  if (first.badge !== "live" && more.length > 0) return { text: `${first.text}, ${more.length} more` };
  const { name, figures, curve, fill, least } = first;
  const text = name !== undefined && box !== opBox(first.op) ? `${name} ${first.text}` : first.text;
  return { text, ...(figures ? { figures } : {}), ...(curve && !isStill() ? { curve } : {}), ...(fill === undefined ? {} : { fill }), ...(least === undefined ? {} : { least }) };
}

/** Curves that move are for those who want motion. */
function isStill(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
