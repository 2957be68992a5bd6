/** The JupyterLab plugins: what shows outputs, the docked panel, the commands, what the status bar says, shares beside lines of code, and files of models. */
import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { commandsPlugin } from "./commands.js";
import { documentsPlugin } from "./documents.js";
import { linesPlugin } from "./lines.js";
import { outputsPlugin } from "./outputs.js";
import { panelPlugin } from "./panel.js";
import { statusPlugin } from "./status.js";

/** The browser's performance panel, and the tests, see how long each takes to activate. */
function measured<T>(plugin: JupyterFrontEndPlugin<T>): JupyterFrontEndPlugin<T> {
  return {
    ...plugin,
    activate: (...given: Parameters<typeof plugin.activate>) => {
      const start = performance.now();
      const made = plugin.activate(...given);
      performance.measure(`activate ${plugin.id}`, { start });
      return made;
    },
  };
}

export default [measured(outputsPlugin), measured(panelPlugin), measured(commandsPlugin), measured(statusPlugin), measured(linesPlugin), measured(documentsPlugin)];
