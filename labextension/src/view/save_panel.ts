/** The ways to save the picture, and the steps that were traced, over the stage. */
import { make } from "./dom.js";
import type { Panel } from "./panel.js";

export const savePanel: Panel = {
  id: "save", title: "Save the picture", region: "stage", order: 45,
  make({ commands, drawers, until }) {
    const element = make(
      "div", { class: "fs-save", role: "group", "aria-label": "Save", "data-testid": "fs-save" },
      commands.button("export-svg", true), commands.button("export-png", true), commands.button("export-dot", true),
      ...["export-chrome", "export-recording", "export-html"].map((id) => commands.button(id, true)),
    );
    const show = (): void => void (element.hidden = !drawers.isOpen("save"));
    element.addEventListener("click", () => drawers.setOpen("save", false), { signal: until });
    drawers.changed.connect((id) => id === "save" && show(), until);
    show();
    return element;
  },
};
