/** What the session of the view that was heard of last is doing, in the status bar. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { IStatusBar } from "@jupyterlab/statusbar";
import { Widget } from "@lumino/widgets";
import { make, setText } from "../view/dom.js";
import { STATE_EVENT, type ToldState } from "../view/host.js";
import { isGone } from "./comm_model.js";
import { OPEN } from "./panel.js";

export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: "flowscope:status",
  description: "What flowscope's session is doing, in the status bar.",
  autoStart: true,
  optional: [IStatusBar, INotebookTracker],
  activate: (app: JupyterFrontEnd, bar: IStatusBar | null, notebooks: INotebookTracker | null) => {
    if (!bar) return;
    const element = make("button", { type: "button", class: "fs-status", title: "Show the Flowscope panel" });
    element.addEventListener("click", () => void app.commands.execute(OPEN));
    const show = (text: string): void => {
      setText(element, `flowscope: ${text}`);
      element.hidden = text === "";
    };
    document.addEventListener(STATE_EVENT, (event) => show((event as CustomEvent<ToldState>).detail.text));
    // A kernel that goes says nothing more of its session.
    const watch = ({ sessionContext }: NotebookPanel): void =>
      void sessionContext.statusChanged.connect((_, status) => isGone(status) && show(""));
    notebooks?.forEach(watch);
    notebooks?.widgetAdded.connect((_, notebook) => watch(notebook));
    show("");
    bar.registerStatusItem("flowscope:status", { item: new Widget({ node: element }), align: "left", rank: 20 });
  },
};
