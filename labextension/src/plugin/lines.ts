/** Lines of cells tell their share of a step, and lead to what they made in the graph. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import type { EditorView } from "@codemirror/view";
import { LINE_EVENT, LINES_EVENT, type ToldLine, type ToldLines } from "../view/host.js";
import { shareGutter, showShares } from "./gutter.js";

type Cell = NotebookPanel["content"]["widgets"][number];

export const linesPlugin: JupyterFrontEndPlugin<void> = {
  id: "flowscope:lines",
  description: "The share of a step beside lines of code.",
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_app: JupyterFrontEnd, notebooks: INotebookTracker) => {
    const gutters = new Gutters();
    document.addEventListener(LINES_EVENT, (event) => {
      const { target } = event;
      const holds = (panel: NotebookPanel): boolean => target instanceof Node && panel.node.contains(target);
      const panel = notebooks.find(holds) ?? notebooks.currentWidget;
      if (panel) gutters.show(panel, (event as CustomEvent<ToldLines>).detail);
    });
  },
};

class Gutters {
  /** What was told last of each cell; a cell that got no gutter yet has none. */
  readonly #told = new WeakMap<Cell, string>();
  /** The graph whose lines a gutter shows. */
  readonly #graphs = new WeakMap<Cell, string>();

  show(panel: NotebookPanel, { graph, lines, selected }: ToldLines): void {
    const isDark = document.body.dataset.jpThemeLight === "false";
    for (const cell of panel.content.widgets) {
      const count = countOf(cell);
      const own = count === null ? [] : lines.filter(({ cell: number }) => number === count);
      const isShown = this.#graphs.get(cell) === graph;
      if (own.length === 0 && !isShown) continue;
      const shares = own.map(({ line, share, ops }) => ({ line, share, ops, isSelected: selected?.cell === count && selected.line === line }));
      const text = JSON.stringify([shares, isDark]);
      const view = text === this.#told.get(cell) ? null : this.#viewOf(cell);
      if (!view) continue;
      this.#told.set(cell, text);
      this.#graphs.set(cell, graph);
      showShares(view, { lines: shares, isDark });
    }
  }

  /** The cell's editor, with a gutter; null while it has none. */
  #viewOf(cell: Cell): EditorView | null {
    const { editor } = cell;
    const view = (editor as unknown as { readonly editor?: EditorView } | null)?.editor;
    if (!editor || !view) return null;
    if (!this.#told.has(cell)) editor.injectExtension(shareGutter((line) => this.#go(cell, line)));
    return view;
  }

  #go(cell: Cell, line: number): void {
    const [graph, number] = [this.#graphs.get(cell), countOf(cell)];
    if (graph !== undefined && number !== null) document.dispatchEvent(new CustomEvent<ToldLine>(LINE_EVENT, { detail: { graph, cell: number, line } }));
  }
}

/** The number that a code cell was run under. */
function countOf({ model }: Cell): number | null {
  const { executionCount } = model as unknown as { readonly executionCount?: number | null };
  return executionCount ?? null;
}
