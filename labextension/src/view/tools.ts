/** The buttons at the stage's edge. */
import { make } from "./dom.js";
import type { Panel } from "./panel.js";

const TOOLS = [
  "zoom-in", "zoom-out", "fit", "outline", "run-panel", "lowered", "partitions", "record", "heat", "devices", "timeline", "costs", "variables", "debug", "past", "summaries", "cluster", "save", "keys",
] as const;

export const toolsPanel: Panel = {
  id: "tools", title: "Picture", region: "stage", order: 30,
  make: ({ commands }) => make(
    "div", { class: "fs-tools", role: "toolbar", "aria-label": "Picture" }, ...TOOLS.map((id) => commands.button(id)),
  ),
};
