/**
 * How a view and the page around it speak: by events of the document, because the view may be of another bundle than the
 * plugin. A page that has a docked panel says so on its root.
 */
import type { CommandTable } from "./command_table.js";
import type { Drawers } from "./drawers.js";

/** A view asks for the docked panel to show its graph. */
export const PANEL_EVENT = "flowscope-panel";
/** A view tells what its session is doing. */
export const STATE_EVENT = "flowscope-state";
/** The page asks a view about a command, or to run it. */
export const COMMAND_EVENT = "flowscope-command";
/** A view tells what share of a step lines of cells have. */
export const LINES_EVENT = "flowscope-lines";
/** The page asks the views of a graph to show what a line has made. */
export const LINE_EVENT = "flowscope-line";
/** A view tells which panels beside its stage are open, and the page has it open those of before. */
export const OPEN_EVENT = "flowscope-open";
export const REOPEN_EVENT = "flowscope-reopen";
const PANEL_MARK = "flowscopePanel";

export interface PanelWish {
  readonly graph: string;
}

export interface ToldState {
  readonly state: string;
  /** One line for people, "" for nothing. */
  readonly text: string;
}

/** A line of a cell, by the number that the cell was run under. */
export interface ToldLine {
  /** The graph's key. */
  readonly graph: string;
  readonly cell: number;
  readonly line: number;
}

export interface ToldLines {
  readonly graph: string;
  /** All lines that made an operation; none where nothing was recorded. */
  readonly lines: readonly (Pick<ToldLine, "cell" | "line"> & { readonly share: number; readonly ops: number })[];
  /** The line that made what is selected. */
  readonly selected: ToldLine | null;
}

export interface CommandQuestion {
  readonly id: string;
  readonly isToRun: boolean;
  /** Filled in by the view. */
  answer?: { readonly isEnabled: boolean; readonly isPressed: boolean; readonly label: string };
}

/** Says that this page has a docked panel. */
export function offerPanel(): void {
  document.documentElement.dataset[PANEL_MARK] = "true";
}

export function hasPanel(): boolean {
  return document.documentElement.dataset[PANEL_MARK] === "true";
}

export function tellPage<T>(element: HTMLElement, name: string, detail: T): void {
  element.dispatchEvent(new CustomEvent<T>(name, { bubbles: true, detail }));
}

/** Lets the page run a view's commands. */
export function obeyPage(root: HTMLElement, commands: CommandTable, until: AbortSignal): void {
  root.addEventListener(COMMAND_EVENT, (event) => {
    const question = (event as CustomEvent<CommandQuestion>).detail;
    if (question.isToRun) commands.run(question.id);
    question.answer = commands.describe(question.id);
  }, { signal: until });
}

/** Tells the page which of these panels are open, and lets it open others. */
export function shareOpen(root: HTMLElement, drawers: Drawers, ids: readonly string[], until: AbortSignal): void {
  drawers.changed.connect((id) => {
    if (ids.includes(id)) tellPage<readonly string[]>(root, OPEN_EVENT, ids.filter((one) => drawers.isOpen(one)));
  }, until);
  root.addEventListener(REOPEN_EVENT, (event) => {
    const wanted = (event as CustomEvent<readonly string[]>).detail;
    for (const id of ids) drawers.setOpen(id, wanted.includes(id));
  }, { signal: until });
}
