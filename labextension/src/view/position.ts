/** Says on the stage where a step is held; pressed, the picture follows it. */
import type { GraphModel } from "../model/graph.js";
import { opBox, type BoxId } from "../model/ids.js";
import { isOver } from "../model/running.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Navigation } from "./navigation.js";
import type { Panel } from "./panel.js";

class Position {
  readonly element = make("button", {
    type: "button", class: "fs-link fs-position", "data-testid": "fs-position", "aria-pressed": "false",
    title: "Show where the step is, and follow it", ...OWN_KEYS,
  });
  readonly #navigation: Navigation;
  #held: BoxId | null = null;
  #isFollowing = false;

  constructor(navigation: Navigation, until: AbortSignal) {
    this.#navigation = navigation;
    this.element.addEventListener("click", () => {
      this.#follow(!this.#isFollowing);
      if (!this.#isFollowing || this.#held === null) return;
      navigation.select(this.#held);
      navigation.follow(this.#held);
    }, { signal: until });
  }

  update({ run }: GraphModel): void {
    const position = run?.position ?? null;
    const before = this.#held;
    this.#held = position === null || position.op === null ? null : opBox(position.op);
    if (isOver(run)) this.#follow(false);
    if (this.#held !== null && this.#held !== before) {
      if (this.#isFollowing) this.#navigation.follow(this.#held);
      else this.#navigation.keepInSight(this.#held);
    }
    setText(this.element, position?.what ?? "");
    this.element.hidden = position === null;
    this.element.disabled = this.#held === null;
  }

  #follow(isOn: boolean): void {
    this.#isFollowing = isOn;
    this.element.setAttribute("aria-pressed", String(isOn));
  }
}

export const positionPanel: Panel = {
  id: "position", title: "Where a step is held", region: "stage", order: 10,
  make({ model, navigation, until }) {
    const position = new Position(navigation, until);
    model.changed.connect(() => position.update(model), until);
    position.update(model);
    return position.element;
  },
};
