/** The commands of views in JupyterLab's palette and menu, with their keys: from the one table of view/commands.ts. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { COMMAND_EVENT, type CommandQuestion } from "../view/host.js";
import { core } from "./output.js";
import { OPEN } from "./panel.js";

export const CATEGORY = "Flowscope";
const REVEAL = "flowscope:reveal";
/** Where the keys of views are heard; the views themselves listen there. */
const SELECTORS = { stage: ".fs-view .fs-stage", timeline: ".fs-view .fs-timeline-canvas" } as const;

export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: "flowscope:commands",
  description: "The commands of flowscope's views.",
  autoStart: true,
  optional: [ICommandPalette],
  activate: (app: JupyterFrontEnd, palette: ICommandPalette | null) => {
    const views = new CurrentView();
    app.commands.addCommand(REVEAL, {
      label: "Scroll to the Running View",
      isEnabled: () => views.running() !== null,
      execute: () => views.running()?.scrollIntoView({ block: "nearest" }),
    });
    for (const command of [OPEN, REVEAL]) palette?.addItem({ command, category: CATEGORY });
    void app.restored.then(() => core()).then(({ COMMANDS }) => {
      for (const { id, label, keys, where } of COMMANDS) {
        const command = `flowscope:view-${id}`;
        const ask = (isToRun: boolean): CommandQuestion["answer"] => views.ask({ id, isToRun });
        app.commands.addCommand(command, {
          label: () => ask(false)?.label ?? label,
          isEnabled: () => ask(false)?.isEnabled ?? false,
          isToggled: () => ask(false)?.isPressed ?? false,
          execute: () => void ask(true),
        });
        const [key] = keys;
        if (key !== undefined) app.commands.addKeyBinding({ command, keys: [luminoKey(key)], selector: SELECTORS[where ?? "stage"] });
        palette?.addItem({ command, category: CATEGORY });
      }
    });
  },
};

const NAMES: Readonly<Record<string, string>> = { " ": "Space", "?": "Shift /", ">": "Shift .", "+": "Shift =" };

/** A key of `KeyboardEvent.key` as Lumino writes it. */
export function luminoKey(key: string): string {
  if (NAMES[key]) return NAMES[key];
  return /^[a-z]$/.test(key) ? key.toUpperCase() : /^[A-Z]$/.test(key) ? `Shift ${key}` : key;
}

/** The view that commands are for: the one used last, else one that is seen. */
class CurrentView {
  #used: Element | null = null;

  constructor() {
    const note = ({ target }: Event): void => {
      const view = target instanceof Element ? target.closest(".fs-view") : null;
      if (view) this.#used = view;
    };
    document.addEventListener("focusin", note);
    document.addEventListener("pointerdown", note, true);
  }

  ask(question: CommandQuestion): CommandQuestion["answer"] {
    this.#current()?.dispatchEvent(new CustomEvent<CommandQuestion>(COMMAND_EVENT, { detail: question }));
    return question.answer;
  }

  /** The view in the notebook that is seen whose session runs. */
  running(): Element | null {
    const [first] = [...document.querySelectorAll(".jp-NotebookPanel .fs-view:is([data-run=running],[data-run=paused],[data-run=held],[data-run=past])")].filter(isSeen);
    return first ?? null;
  }

  #current(): Element | null {
    const used = this.#used && isSeen(this.#used) ? this.#used : null;
    return used ?? [...document.querySelectorAll(".fs-view")].find(isSeen) ?? null;
  }
}

function isSeen(element: Element): boolean {
  return element.isConnected && element.clientWidth > 0;
}
