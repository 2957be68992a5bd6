/** The docked panel: shows a graph of the kernel of the notebook that is worked with. */
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { UUID } from "@lumino/coreutils";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import { make } from "../view/dom.js";
import { CommModel, isGone, type Kernel } from "./comm_model.js";
import type { LayoutMemory } from "./tokens.js";
import { core } from "./output.js";

/** The comm of the panel: see flowscope_widgets/panel.py. */
export const TARGET = "flowscope.panel";
/** A kernel that has not answered by then is busy, or hangs. */
const PATIENCE_MS = 2000;
/** A cell that runs for so long may run another graph than the one that is shown. */
const SETTLED_MS = 300;
const NOTHING = "No graph yet: flowscope is not loaded in this notebook's kernel. Run %load_ext flowscope.";
const BUSY = "The kernel is running a cell, and answers when that ends: then the graph is shown. With the kernel \"Python 3 (flowscope)\" (Kernel menu, Change Kernel) it is shown while cells run.";
const SILENT = "The kernel does not answer. If that lasts, restart it (Kernel menu) and run the notebook's cells again.";
const RESTARTED = "The kernel was restarted, and its graphs are gone: run the notebook's cells again.";
const ENDED = "The kernel has ended: choose another one, and run the notebook's cells again.";

interface Told {
  readonly key: string;
  readonly title: string;
}

export class Instrument extends Widget {
  readonly #memory: LayoutMemory;
  readonly #chooser = make("select", { "aria-label": "Graph" });
  readonly #graphs = make("label", { class: "fs-graphs" }, "Graph", this.#chooser);
  readonly #waiting = make("p", { class: "fs-waiting", role: "status", "data-testid": "fs-waiting" });
  readonly #host = make("div", { class: "fs-instrument-host" });
  readonly #life = new AbortController();
  /** Ends the link to a kernel. */
  #link = new AbortController();
  /** Ends the view that is shown. */
  #showing = new AbortController();
  #panel: NotebookPanel | null = null;
  #kernel: Kernel | null = null;
  #model: CommModel | null = null;
  #shown: string | null = null;
  #wanted: string | null = null;

  constructor(notebooks: INotebookTracker, memory: LayoutMemory) {
    super();
    this.#memory = memory;
    this.id = "flowscope-panel";
    this.addClass("fs-instrument");
    this.title.label = "Flowscope";
    this.title.closable = true;
    this.node.tabIndex = -1;
    this.node.append(this.#graphs, this.#waiting, this.#host);
    this.#graphs.hidden = true;
    this.#chooser.addEventListener("change", () => this.showGraph(this.#chooser.value || null));
    const follow = (): void => this.#follow(notebooks.currentWidget);
    notebooks.currentChanged.connect(follow);
    this.#life.signal.addEventListener("abort", () => notebooks.currentChanged.disconnect(follow), { once: true });
    addEventListener("pagehide", () => this.#model?.dispose(), { signal: this.#life.signal });
    follow();
  }

  /** Shows a graph of the kernel; null follows what runs. */
  showGraph(graph: string | null): void {
    this.#wanted = graph;
    this.#model?.send({ kind: "graph", key: graph });
  }

  /** A kernel has said that there is something to be shown. */
  heard(kernel: { readonly id: string }): void {
    if (kernel.id === this.#kernel?.id && this.#shown === null) this.#connect();
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.#life.abort();
    this.#leave();
    super.dispose();
  }

  protected override onActivateRequest(_: Message): void {
    const stage = this.node.querySelector<HTMLElement>(".fs-stage");
    (stage ?? this.node).focus();
  }

  /** Goes over to another notebook; where none is worked with, the last one is shown further. */
  #follow(panel: NotebookPanel | null): void {
    if (!panel || panel === this.#panel) return;
    this.#panel = panel;
    const { sessionContext } = panel;
    const take = (): void => {
      if (panel === this.#panel) this.#take(sessionContext.session?.kernel ?? null);
    };
    this.title.caption = `The graphs of ${panel.title.label}`;
    sessionContext.kernelChanged.connect(take);
    this.#life.signal.addEventListener("abort", () => sessionContext.kernelChanged.disconnect(take), { once: true });
    take();
  }

  #take(kernel: Kernel | null): void {
    if (kernel !== null && kernel === this.#kernel) return;
    this.#leave();
    this.#wanted = null;
    this.#kernel = kernel;
    if (kernel) this.#connect();
    else this.#wait(NOTHING);
  }

  /** Opens the comm, which answers in a subshell while a cell is busy. */
  #connect(): void {
    const kernel = this.#kernel;
    if (!kernel) return;
    this.#leave();
    const link = this.#link = new AbortController();
    this.#wait("Connecting \u2026");
    const model = this.#model = new CommModel(kernel, UUID.uuid4(), { target: TARGET, data: { graph: this.#wanted } });
    model.on("change:graphs", () => this.#list(model.get("graphs") as readonly Told[], model.get("is_followed") === true));
    model.on("change:graph_key", () => void this.#show(model));
    model.on("close", () => {
      if (model !== this.#model) return;
      this.#leave();
      this.#wait(NOTHING);
    });
    this.#watch(kernel, model, link.signal);
    const waiting = setTimeout(() => this.#shown === null && model.get("graphs") === null && this.#wait(kernel.status === "busy" ? BUSY : SILENT), PATIENCE_MS);
    link.signal.addEventListener("abort", () => clearTimeout(waiting), { once: true });
  }

  /** Another graph may run, or there may be others, when a cell has begun and when it has ended. */
  #watch(kernel: Kernel, model: CommModel, until: AbortSignal): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen = (_: unknown, status: string): void => {
      clearTimeout(timer);
      if (isGone(status)) {
        this.#leave();
        this.#wait(status.endsWith("restarting") ? RESTARTED : ENDED);
      } else timer = setTimeout(() => model.send({ kind: "look" }), SETTLED_MS);
    };
    kernel.statusChanged.connect(listen);
    until.addEventListener("abort", () => {
      clearTimeout(timer);
      kernel.statusChanged.disconnect(listen);
    }, { once: true });
  }

  #list(graphs: readonly Told[], isFollowed: boolean): void {
    const shown = this.#model?.get("graph_key");
    this.#graphs.hidden = graphs.length < 2;
    this.#chooser.replaceChildren(
      make("option", { value: "" }, "what runs"), ...graphs.map(({ key, title }) => make("option", { value: key }, title)),
    );
    this.#chooser.value = isFollowed || typeof shown !== "string" ? "" : shown;
  }

  async #show(model: CommModel): Promise<void> {
    const key = model.get("graph_key");
    if (typeof key !== "string" || key === this.#shown) return;
    this.#shown = key;
    const { render } = await core();
    if (model !== this.#model || key !== this.#shown || !this.isAttached) return;
    this.#showing.abort();
    this.#showing = new AbortController();
    this.#waiting.hidden = true;
    render({ model, el: this.#host, signal: this.#showing.signal, arrangement: { isDocked: true, memory: this.#memory } });
  }

  #wait(text: string): void {
    this.#waiting.hidden = false;
    this.#waiting.textContent = text;
    this.#graphs.hidden = true;
  }

  #leave(): void {
    this.#showing.abort();
    this.#link.abort();
    this.#shown = null;
    const model = this.#model;
    this.#model = null;
    setTimeout(() => model?.dispose()); // the view has yet to say that it leaves
  }
}
