/** The JupyterLab plugins: what shows outputs, the docked panel, the commands, and what the status bar says. */
import { commandsPlugin } from "./commands.js";
import { outputsPlugin } from "./outputs.js";
import { panelPlugin } from "./panel.js";
import { statusPlugin } from "./status.js";

export default [outputsPlugin, panelPlugin, commandsPlugin, statusPlugin];
