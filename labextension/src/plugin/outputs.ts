/** In every notebook, views are shown live or, without a kernel, as saved. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { LiveModels } from "./live_models.js";
import { ViewOutput } from "./output.js";
import { MIME_TYPE } from "./saved_view.js";

/** Before the widget renderer, which has -10. */
const RANK = -20;

export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: "flowscope:outputs",
  description: "Shows flowscope's views in notebooks.",
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_app: JupyterFrontEnd, notebooks: INotebookTracker) => {
    notebooks.forEach(addRenderer);
    notebooks.widgetAdded.connect((_, panel) => addRenderer(panel));
  },
};

function addRenderer(panel: NotebookPanel): void {
  const { rendermime } = panel.content;
  const live = new LiveModels(panel.sessionContext);
  rendermime.addFactory({
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: ({ mimeType }) => new ViewOutput(mimeType, live, (type) => rendermime.createRenderer(type)),
  }, RANK);
}
