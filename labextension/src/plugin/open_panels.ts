/** Which panels of the views in outputs are open: kept in this tab of the browser, over reloads of the page. */

const KEY = "flowscope:open-panels";
/** Views that were seen last. */
const MOST = 50;

type Entry = readonly [view: string, panels: readonly string[]];

/** The panels of a view that were open, by the view's model; null where nothing is known. */
export function openPanels(view: string): readonly string[] | null {
  return entries().find(([name]) => name === view)?.[1] ?? null;
}

export function rememberOpen(view: string, panels: readonly string[]): void {
  if (view === "") return;
  const others = entries().filter(([name]) => name !== view);
  const kept: readonly Entry[] = [[view, panels], ...others.slice(0, MOST - 1)];
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // The browser keeps nothing: then the panels are closed after a reload.
  }
}

function entries(): readonly Entry[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is Entry {
  if (!Array.isArray(value)) return false;
  const [view, panels]: unknown[] = value;
  return typeof view === "string" && Array.isArray(panels) && panels.every((id) => typeof id === "string");
}
