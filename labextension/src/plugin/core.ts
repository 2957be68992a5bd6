/** What shows graphs, as one chunk that is loaded when something is to be shown. */
export { render } from "../view/mount.js";
export { App } from "../view/app.js";
export { COMMANDS } from "../view/commands.js";
