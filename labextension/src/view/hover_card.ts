/** A card beside the box under the pointer: dtype and shape, device and why, line. */
import { cardOf } from "../model/card.js";
import { boxOf } from "../model/selection.js";
import { make } from "./dom.js";
import type { Panel } from "./panel.js";

/** A pointer that rests so long asks. */
const REST_MS = 250;
const GAP_PX = 8;

export const hoverCardPanel: Panel = {
  id: "card", title: "What is under the pointer", region: "stage", order: 60,
  make({ model, store, stage, until }) {
    const element = make("div", { class: "fs-card", role: "tooltip", "data-testid": "fs-card" });
    element.hidden = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Only the view that the pointer is in shows it: this is known before the stage hears of the pointer.
    let isHere = false;
    stage.element.addEventListener("pointermove", () => (isHere = true), { signal: until, capture: true });
    stage.element.addEventListener("pointerleave", () => (isHere = false), { signal: until });
    const hide = (): void => {
      clearTimeout(timer);
      element.hidden = true;
    };
    const show = (): void => {
      const box = boxOf(model, store.hover);
      const rect = box === null ? null : stage.seenRect(box);
      const card = box === null ? null : cardOf(model, box);
      // A frame as large as the stage needs no card.
      if (!rect || !card || rect.h > stage.element.clientHeight * 0.6) return hide();
      element.replaceChildren(make("strong", {}, card.title), ...card.lines.map((line) => make("div", {}, line)));
      element.hidden = false;
      const { clientWidth, clientHeight } = stage.element;
      const below = rect.y + rect.h + GAP_PX;
      const isBelow = below + element.offsetHeight < clientHeight;
      element.style.left = `${Math.max(4, Math.min(rect.x, clientWidth - element.offsetWidth - 4))}px`;
      element.style.top = `${Math.max(4, isBelow ? below : rect.y - GAP_PX - element.offsetHeight)}px`;
    };
    store.changed.connect(({ what }) => {
      if (what !== "hover") return;
      hide();
      if (store.hover && isHere) timer = setTimeout(show, REST_MS);
    }, until);
    stage.moved.connect(() => (element.hidden = true), until);
    until.addEventListener("abort", hide, { once: true });
    return element;
  },
};
