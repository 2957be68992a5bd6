/** The docked panel: opened by a command, a view's button or the kernel, one per window, and brought back with the layout. */
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from "@jupyterlab/application";
import { MainAreaWidget, WidgetTracker } from "@jupyterlab/apputils";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStateDB } from "@jupyterlab/statedb";
import type { DockLayout } from "@lumino/widgets";
import { offerPanel, PANEL_EVENT, type PanelWish } from "../view/host.js";
import type { Instrument } from "./instrument.js";
import type { Kept } from "../view/division.js";
import { IPanel, type LayoutMemory, type PanelHandle } from "./tokens.js";

const ID = "flowscope:panel";
export const OPEN = "flowscope:open";
/** The comm of the panel, by which a kernel speaks to the page too: see flowscope_widgets/panel.py. */
const TARGET = "flowscope.panel";

export const panelPlugin: JupyterFrontEndPlugin<PanelHandle> = {
  id: ID,
  description: "A docked panel that shows the graph of the notebook that is worked with.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ILayoutRestorer, ISettingRegistry, IStateDB],
  provides: IPanel,
  activate: (
    app: JupyterFrontEnd, notebooks: INotebookTracker, restorer: ILayoutRestorer | null, settings: ISettingRegistry | null, states: IStateDB | null,
  ) => {
    const panel = new Panel(app, notebooks, settings, new Memory(states));
    app.commands.addCommand(OPEN, {
      label: "Show the Flowscope Panel",
      caption: "The graph of this notebook: what was built, what runs and where",
      iconClass: "fs-icon",
      execute: ({ graph }) => panel.open(typeof graph === "string" ? graph : null),
    });
    void restorer?.restore(panel.tracker, { command: OPEN, name: () => "panel" });
    notebooks.forEach((notebook) => panel.listen(notebook));
    notebooks.widgetAdded.connect((_, notebook) => panel.listen(notebook));
    document.addEventListener(PANEL_EVENT, (event) => void panel.open((event as CustomEvent<PanelWish>).detail.graph || null));
    offerPanel();
    void app.restored.then(() => panel.openBeside());
    return panel;
  },
};

class Panel implements PanelHandle {
  readonly tracker = new WidgetTracker<MainAreaWidget<Instrument>>({ namespace: "flowscope" });
  readonly #app: JupyterFrontEnd;
  readonly #notebooks: INotebookTracker;
  readonly #settings: ISettingRegistry | null;
  readonly #memory: Memory;
  #opening: Promise<MainAreaWidget<Instrument>> | null = null;

  constructor(app: JupyterFrontEnd, notebooks: INotebookTracker, settings: ISettingRegistry | null, memory: Memory) {
    this.#app = app;
    this.#notebooks = notebooks;
    this.#settings = settings;
    this.#memory = memory;
  }

  async open(graph: string | null): Promise<void> {
    this.#opening ??= this.#make();
    const widget = await this.#opening;
    if (graph !== null) widget.content.showGraph(graph);
    this.#app.shell.activateById(widget.id);
  }

  /** Opens beside the first notebook of the window, where the settings say so; the notebook stays the one that is worked with. */
  async openBeside(): Promise<void> {
    const told = await this.#settings?.get(ID, "opens").catch(() => null);
    if (told?.composite !== true || this.tracker.currentWidget) return;
    const notebook = this.#notebooks.currentWidget;
    if (!notebook) {
      const later = (): void => {
        this.#notebooks.currentChanged.disconnect(later);
        void this.openBeside();
      };
      return void this.#notebooks.currentChanged.connect(later);
    }
    await this.open(null);
    this.#app.shell.activateById(notebook.id);
  }

  /** A kernel says that there is something to be shown, or asks for the panel. */
  listen(notebook: NotebookPanel): void {
    const { sessionContext } = notebook;
    const register = (): void => {
      const kernel = sessionContext.session?.kernel;
      kernel?.registerCommTarget(TARGET, (_comm, { content }) => {
        this.tracker.currentWidget?.content.heard(kernel);
        if (content.data["is_wanted"] === true) void this.open(null);
      });
    };
    sessionContext.kernelChanged.connect(register);
    register();
  }

  async #make(): Promise<MainAreaWidget<Instrument>> {
    const [{ Instrument }, mode] = await Promise.all([import("./instrument.js"), this.#mode(), this.#memory.load()]);
    const content = new Instrument(this.#notebooks, this.#memory);
    const widget = new MainAreaWidget({ content });
    widget.id = "flowscope-panel";
    widget.toolbar.hide();
    widget.disposed.connect(() => (this.#opening = null));
    await this.tracker.add(widget);
    const ref = this.#notebooks.currentWidget?.id ?? null;
    // Notebook 7 has one document in its main area.
    const area = this.#app.name === "JupyterLab" ? "main" : "right";
    this.#app.shell.add(widget, area, { mode, ref, activate: false });
    return widget;
  }

  async #mode(): Promise<DockLayout.InsertMode> {
    const told = await this.#settings?.get(ID, "place").catch(() => null);
    return (told?.composite ?? "split-right") as DockLayout.InsertMode;
  }
}

/** How the panels in the panel were left. */
class Memory implements LayoutMemory {
  readonly #states: IStateDB | null;
  #kept: unknown = null;

  constructor(states: IStateDB | null) {
    this.#states = states;
  }

  async load(): Promise<void> {
    this.#kept = (await this.#states?.fetch(`${ID}:layout`)) ?? null;
  }

  read(): unknown {
    return this.#kept;
  }

  write(kept: Kept): void {
    this.#kept = kept;
    void this.#states?.save(`${ID}:layout`, kept as unknown as Parameters<IStateDB["save"]>[1]);
  }
}
