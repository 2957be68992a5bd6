/** The help over the stage: all commands that have a key, by what they are for, and what the picture's colours and shapes mean. */
import { COMMANDS, keysText } from "./commands.js";
import { make } from "./dom.js";
import { legend } from "./legend.js";
import type { Panel } from "./panel.js";
import { taskOf } from "./tabs.js";

export const keysPanel: Panel = {
  id: "keys", title: "Keys", region: "stage", order: 40,
  make({ model, stage, drawers, until }) {
    const tasks = [...new Set(COMMANDS.map(({ id }) => taskOf(id)))];
    const lists = tasks.map((task) => {
      const list = make("dl");
      for (const command of COMMANDS) {
        const { id, keys, label } = command;
        if (keys.length > 0 && taskOf(id) === task) list.append(make("dt", {}, make("kbd", {}, keysText(command))), make("dd", {}, label));
      }
      return make("div", { class: "fs-task" }, make("h4", {}, task), list);
    });
    const meaning = make("div");
    const element = make("section", { class: "fs-keys", "data-testid": "fs-keys", "aria-label": "Keys", tabindex: "-1" }, ...lists, meaning);
    element.hidden = true;
    drawers.changed.connect((id) => {
      if (id !== "keys") return;
      element.hidden = !drawers.isOpen("keys");
      if (!element.hidden) meaning.replaceChildren(legend(model, stage.theme));
    }, until);
    return element;
  },
};
