/**
 * How the room of a view is divided between the picture and what is open beside it: one rule for a cell's output, a docked
 * panel and a page. Pure; lengths are CSS pixels. See docs/decisions/70-layout.md.
 */

/** The column of tabs at the right edge. */
export const RAIL_PX = 58;
/** The title of a section, which is all that is seen of a folded one; graph_view.css has it too. */
export const TITLE_PX = 26;
/** The picture has at least this. */
export const PICTURE_LEAST = { w: 300, h: 200 } as const;
/** From this height on what has no room beside the picture stands under it, if it can be read there. */
const UNDER_FROM_PX = 400;
/** What a column takes until somebody has dragged its edge. */
const ABOUT_PX = 270;
const MOST_PX = 560;
const PANELS_SHARE = 0.46;
const UNDER_SHARE = { panels: 0.5, about: 0.34 } as const;

/** Something that is open, and the least that it can be read in. */
export interface Wish {
  readonly id: string;
  readonly least: { readonly w: number; readonly h: number };
  /** Whether it tells about the picture, as the inspector does: it makes room for what was opened to work with. */
  readonly isAbout: boolean;
}

/** What the user has dragged an edge to; null for nothing. */
export interface Wanted {
  readonly w: number | null;
  readonly h: number | null;
}

export type Mode =
  /** Nothing is open. */
  | "alone"
  /** Panels in a column, what is about the picture in another. */
  | "columns"
  /** One column beside the picture. */
  | "beside"
  /** Below the picture, which is fitted to the rest. */
  | "under"
  /** In the place of the picture. */
  | "over";

export interface Division {
  readonly mode: Mode;
  /** Width of the column, in "columns" of that of the panels; of what stands under the picture the height. */
  readonly size_px: number;
  /** Width of the second column in "columns", else 0. */
  readonly about_px: number;
}

const between = (low: number, value: number, high: number): number => Math.max(low, Math.min(value, Math.max(low, high)));
const widest = (wishes: readonly Wish[]): number => Math.max(0, ...wishes.map(({ least }) => least.w));
const tallest = (wishes: readonly Wish[]): number => Math.max(0, ...wishes.map(({ least }) => least.h));

/** Divides `w` x `h`, which has the column of tabs in it, between the picture and what is open. */
export function divide(w: number, h: number, open: readonly Wish[], wanted: Wanted = { w: null, h: null }): Division {
  if (open.length === 0) return { mode: "alone", size_px: 0, about_px: 0 };
  const free = w - RAIL_PX;
  const [about, panels] = [open.filter(({ isAbout }) => isAbout), open.filter(({ isAbout }) => !isAbout)];
  const [forAbout, forPanels] = [widest(about), widest(panels)];
  const rest = free - PICTURE_LEAST.w;
  if (panels.length > 0 && about.length > 0 && rest >= forPanels + forAbout) {
    const about_px = between(forAbout, ABOUT_PX, rest - forPanels);
    return { mode: "columns", size_px: between(forPanels, wanted.w ?? Math.min(MOST_PX, PANELS_SHARE * (free - about_px)), rest - about_px), about_px };
  }
  const least = Math.max(forAbout, forPanels);
  if (rest >= least) {
    const usual = panels.length > 0 ? Math.min(MOST_PX, PANELS_SHARE * free) : ABOUT_PX;
    return { mode: "beside", size_px: between(least, wanted.w ?? usual, rest), about_px: 0 };
  }
  if (h >= UNDER_FROM_PX && free >= least) {
    const usual = h * (panels.length > 0 ? UNDER_SHARE.panels : UNDER_SHARE.about);
    const lowest = Math.min(tallest(open) + TITLE_PX * open.length, h - PICTURE_LEAST.h);
    return { mode: "under", size_px: between(lowest, wanted.h ?? usual, h - PICTURE_LEAST.h), about_px: 0 };
  }
  return { mode: "over", size_px: 0, about_px: 0 };
}

/**
 * Which of the sections of a column of this height stand unfolded: the first ones, which were opened or asked for last, as
 * long as all titles and their least heights have room. The first one always does, and scrolls.
 */
export function unfolded(h: number, newestFirst: readonly Wish[]): ReadonlySet<string> {
  let left = h - TITLE_PX * newestFirst.length;
  const found = new Set<string>();
  for (const { id, least } of newestFirst) {
    if (found.size > 0 && left < least.h) continue;
    found.add(id);
    left -= least.h;
  }
  return found;
}

/** Heights between which a view in a page stands, and its share of the window's. */
const HEIGHT = { least: 360, most: 640, share: 0.64 } as const;

/** Height of a view in a page: as it is made, whatever is opened in it later. */
export function heightIn(window_px: number): number {
  return Math.round(between(HEIGHT.least, HEIGHT.share * window_px, HEIGHT.most));
}

/** What is kept of how a view was left. */
export interface Kept {
  readonly open: readonly string[];
  readonly wanted: Wanted;
}

/** What was kept, read with care; null where it is something else. */
export function keptIn(value: unknown, ids: ReadonlySet<string>): Kept | null {
  const { open, wanted } = (value ?? {}) as { open?: unknown; wanted?: { w?: unknown; h?: unknown } };
  if (!Array.isArray(open)) return null;
  const size = (told: unknown): number | null => (typeof told === "number" && Number.isFinite(told) && told > 0 ? told : null);
  const known = open.filter((id): id is string => typeof id === "string" && ids.has(id));
  return { open: [...new Set(known)], wanted: { w: size(wanted?.w), h: size(wanted?.h) } };
}
