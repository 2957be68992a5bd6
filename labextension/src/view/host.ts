/**
 * How a view and the page around it speak: by events of the document, because the view may be of another bundle than the
 * plugin. A page that has a docked panel says so on its root.
 */
import type { CommandTable } from "./command_table.js";

/** A view asks for the docked panel to show its graph. */
export const PANEL_EVENT = "flowscope-panel";
/** A view tells what its session is doing. */
export const STATE_EVENT = "flowscope-state";
/** The page asks a view about a command, or to run it. */
export const COMMAND_EVENT = "flowscope-command";
const PANEL_MARK = "flowscopePanel";

export interface PanelWish {
  readonly graph: string;
}

export interface ToldState {
  readonly state: string;
  /** One line for people, "" for nothing. */
  readonly text: string;
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
