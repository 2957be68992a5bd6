/** What changes is said to screen readers: what is selected, and where a step is held. */
import { cardOf } from "../model/card.js";
import { make, setText } from "./dom.js";
import type { Panel } from "./panel.js";

export const speechPanel: Panel = {
  id: "speech", title: "What is said", region: "stage", order: 80,
  make({ model, store, selection, until }) {
    const element = make("div", { class: "fs-speech", role: "log", "aria-live": "polite", "aria-atomic": "true", "data-testid": "fs-speech" });
    let held = "";
    store.changed.connect(({ what }) => {
      if (what === "isolated") setText(element, store.isolated === "" ? "the whole graph" : `${store.isolated} alone`);
      if (what !== "selection") return;
      const card = selection.box === null ? null : cardOf(model, selection.box);
      setText(element, card ? [card.title, ...card.lines].join(", ") : "nothing selected");
    }, until);
    model.changed.connect(() => {
      const told = model.run?.position?.what ?? "";
      if (told !== held && told !== "") setText(element, told);
      held = told;
    }, until);
    return element;
  },
};
