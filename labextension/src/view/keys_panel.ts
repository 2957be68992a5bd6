/** The help over the stage: all commands that have a key. */
import { COMMANDS, keysText } from "./commands.js";
import { make } from "./dom.js";
import type { Panel } from "./panel.js";

export const keysPanel: Panel = {
  id: "keys", title: "Keys", region: "stage", order: 40,
  make({ drawers, until }) {
    const list = make("dl");
    for (const command of COMMANDS) {
      const { keys, label } = command;
      if (keys.length > 0) list.append(make("dt", {}, make("kbd", {}, keysText(command))), make("dd", {}, label));
    }
    const element = make("section", { class: "fs-keys", "data-testid": "fs-keys", "aria-label": "Keys" }, list);
    element.hidden = true;
    drawers.changed.connect(() => (element.hidden = !drawers.isOpen("keys")), until);
    return element;
  },
};
