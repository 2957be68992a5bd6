/** The search above the stage: what is typed is sought at once, what is not found is faint. */
import { boxOf } from "../model/selection.js";
import { button, make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

/** What is typed is sought when no key has come for so long. */
const PAUSE_MS = 120;
const HINT = "name, type:MatMul, device:GPU, dtype:int64, line:12, /regex/, is:changed, from:x to:loss";

export const findPanel: Panel = {
  id: "find", title: "Search", region: "strip", order: 5,
  make(view) {
    const { store, model, selection, finder, drawers, commands, stage, root, until } = view;
    const input = make("input", { type: "search", "aria-label": "Search", placeholder: HINT, title: HINT, spellcheck: "false", ...OWN_KEYS });
    const count = make("span", { class: "fs-found", role: "status", "data-testid": "fs-found" });
    const element = make(
      "div", { class: "fs-find", role: "search", "data-testid": "fs-find" }, input, count,
      commands.button("find-previous"), commands.button("find-next"), button("Close search", "close", () => close(), until),
    );
    let timer: ReturnType<typeof setTimeout> | undefined;
    const seek = (): void => {
      clearTimeout(timer);
      store.setFind(input.value, root);
    };
    const close = (): void => {
      clearTimeout(timer);
      store.setFind("", root);
      drawers.setOpen("find", false);
      stage.element.focus({ preventScroll: true });
    };
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(seek, PAUSE_MS);
    }, { signal: until });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter") {
        seek();
        commands.run(event.shiftKey ? "find-previous" : "find-next");
      } else return;
      event.preventDefault();
    }, { signal: until });
    const show = (): void => {
      const { find } = store;
      if (document.activeElement !== input) input.value = find;
      if (find !== "") drawers.setOpen("find", true);
      element.hidden = !drawers.isOpen("find");
      setText(count, finder.text(boxOf(model, store.selection)));
      commands.refresh();
    };
    finder.changed.connect(show, until);
    store.changed.connect(({ what }) => what === "selection" && setText(count, finder.text(selection.box)), until);
    drawers.changed.connect((id) => {
      if (id !== "find") return;
      show();
      if (drawers.isOpen("find") && root.contains(document.activeElement)) input.focus({ preventScroll: true });
    }, until);
    until.addEventListener("abort", () => clearTimeout(timer), { once: true });
    show();
    return element;
  },
};
