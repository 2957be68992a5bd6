/** Says below the stage where a step is held - pressed, picture and selection follow it -, or where the latest one failed. */
import type { GraphModel } from "../model/graph.js";
import { opBox, type BoxId } from "../model/ids.js";
import { isOver } from "../model/running.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Navigation } from "./navigation.js";
import type { Panel } from "./panel.js";

class Position {
  readonly element = make("button", {
    type: "button", class: "fs-link fs-position", "data-testid": "fs-position", "aria-pressed": "false",
    ...OWN_KEYS,
  });
  readonly #navigation: Navigation;
  #held: BoxId | null = null;
  #isFollowing = false;

  constructor(navigation: Navigation, until: AbortSignal) {
    this.#navigation = navigation;
    this.element.addEventListener("click", () => {
      this.#follow(!this.#isFollowing);
      if (this.#isFollowing && this.#held !== null) this.#show(this.#held);
    }, { signal: until });
  }

  update({ run, session }: GraphModel): void {
    const failure = isOver(run) ? (session?.failure ?? null) : null;
    const told = run?.position ?? failure;
    const before = this.#held;
    this.#held = typeof told?.op === "number" ? opBox(told.op) : null;
    if (isOver(run)) this.#follow(false);
    if (this.#held !== null && this.#held !== before) this.#show(this.#held);
    setText(this.element, told === null ? "" : "what" in told ? told.what : told.message);
    this.element.title = failure ? failure.message : "Show where the step is, and follow it";
    this.element.dataset.kind = failure ? "failure" : "position";
    this.element.hidden = told === null;
    this.element.disabled = this.#held === null;
  }

  #show(held: BoxId): void {
    if (!this.#isFollowing) return this.#navigation.keepInSight(held);
    this.#navigation.select(held);
    this.#navigation.follow(held);
  }

  #follow(isOn: boolean): void {
    this.#isFollowing = isOn;
    this.element.setAttribute("aria-pressed", String(isOn));
  }
}

export const positionPanel: Panel = {
  id: "position", title: "Where a step is held", region: "foot", order: 10,
  make({ model, navigation, until }) {
    const position = new Position(navigation, until);
    model.changed.connect(() => position.update(model), until);
    position.update(model);
    return position.element;
  },
};
