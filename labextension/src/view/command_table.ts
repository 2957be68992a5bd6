/** The commands of one view: runs them by id and by key, and keeps their buttons true. */
import { COMMANDS, keysText, type KeyPlace, type ViewCommand } from "./commands.js";
import type { ViewContext } from "./context.js";
import { button, icon, make, setText } from "./dom.js";

interface Shown {
  readonly command: ViewCommand;
  readonly element: HTMLButtonElement;
  /** What a wide button says. */
  readonly text: HTMLElement | null;
  icon: string | undefined;
}

export class CommandTable {
  readonly #view: () => ViewContext;
  readonly #until: AbortSignal;
  readonly #buttons: Shown[] = [];

  /** The view is asked for when a command is used: it is made with the table. */
  constructor(view: () => ViewContext, until: AbortSignal) {
    this.#view = view;
    this.#until = until;
  }

  isEnabled(id: string): boolean {
    return commandOf(id).isEnabled(this.#view());
  }

  /** Runs a command if it can be run now. */
  run(id: string): void {
    if (this.isEnabled(id)) commandOf(id).run(this.#view());
  }

  /** What a command would do now, for menus elsewhere. */
  describe(id: string): { isEnabled: boolean; isPressed: boolean; label: string } {
    const command = commandOf(id);
    const view = this.#view();
    const { label } = command.look?.(view) ?? command;
    return { isEnabled: command.isEnabled(view), isPressed: command.isPressed?.(view) ?? false, label };
  }

  /** A button that runs a command; `isWide` for one that also says what it does. */
  button(id: string, isWide = false): HTMLButtonElement {
    const command = commandOf(id);
    if (!command.icon) throw new Error(`commands: ${id} has no icon`);
    const element = button(command.label, command.icon, () => this.run(id), this.#until);
    const text = isWide ? make("span", {}, command.label) : null;
    if (text) element.append(text);
    element.classList.toggle("fs-wide", isWide);
    this.#buttons.push({ command, element, text, icon: command.icon });
    return element;
  }

  /** Shows on the buttons what the commands would do now. */
  refresh(): void {
    for (const shown of this.#buttons) {
      const { command, element, text } = shown;
      const view = this.#view();
      const { label, icon: shape } = command.look?.(view) ?? command;
      const keys = keysText(command);
      element.setAttribute("aria-label", label);
      element.disabled = !command.isEnabled(view);
      const why = element.disabled ? (command.why?.(view) ?? "") : "";
      element.title = `${command.hint ?? label}${keys && ` (${keys})`}${why && `: ${why}`}`;
      if (text) setText(text, label);
      element.hidden = command.isHidden?.(view) ?? false;
      if (command.isPressed) element.setAttribute("aria-pressed", String(command.isPressed(view)));
      if (shape && shape !== shown.icon) element.replaceChildren(icon(shape), ...(text ? [text] : []));
      shown.icon = shape;
    }
  }

  /** Takes the keys of an element, with those of the place that it is. */
  listenToKeys(element: HTMLElement, where: KeyPlace = "stage"): void {
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const command = commandOfKey(event.key, where);
      if (!command) return;
      event.preventDefault();
      event.stopPropagation();
      this.run(command.id);
    }, { signal: this.#until });
  }
}

export function commandOfKey(key: string, where: KeyPlace = "stage"): ViewCommand | undefined {
  const found = COMMANDS.filter(({ keys, where: own }) => keys.includes(key) && (own === undefined || own === where));
  return found.find(({ where: own }) => own === where) ?? found[0];
}

function commandOf(id: string): ViewCommand {
  const command = COMMANDS.find((one) => one.id === id);
  if (!command) throw new Error(`commands: there is no ${id}`);
  return command;
}
