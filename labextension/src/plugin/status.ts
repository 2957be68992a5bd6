/** What the session of the view that was heard of last is doing, in the status bar. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { IStatusBar } from "@jupyterlab/statusbar";
import { Widget } from "@lumino/widgets";
import { make, setText } from "../view/dom.js";
import { STATE_EVENT, type ToldState } from "../view/host.js";
import { OPEN } from "./panel.js";

export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: "flowscope:status",
  description: "What flowscope's session is doing, in the status bar.",
  autoStart: true,
  optional: [IStatusBar],
  activate: (app: JupyterFrontEnd, bar: IStatusBar | null) => {
    if (!bar) return;
    const element = make("button", { type: "button", class: "fs-status", title: "Show the Flowscope panel" });
    element.addEventListener("click", () => void app.commands.execute(OPEN));
    let isActive = false;
    document.addEventListener(STATE_EVENT, (event) => {
      const { text } = (event as CustomEvent<ToldState>).detail;
      isActive = text !== "";
      setText(element, `flowscope: ${text}`);
      element.hidden = !isActive;
    });
    element.hidden = true;
    bar.registerStatusItem("flowscope:status", { item: new Widget({ node: element }), align: "left", rank: 20 });
  },
};
