/** What moving something to a device would change, before it is done, and what it did. */
import { devicesOf, shortDevice } from "../model/devices.js";
import { measuredText, predictionText, type Proposal } from "../model/placement.js";
import { bytesText } from "../model/running.js";
import type { MoveState } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS } from "./dom.js";

export class MoveCard {
  readonly element = make("div", { class: "fs-move", role: "status", "data-testid": "fs-move", ...OWN_KEYS });
  readonly #view: ViewContext;
  /** Where the focus goes when the card closes. */
  readonly #back: () => void;
  #shown = "";

  constructor(view: ViewContext, back: () => void) {
    [this.#view, this.#back] = [view, back];
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.#leave();
    }, { signal: view.until });
  }

  update(): void {
    const { placement, model } = this.#view;
    const [proposal, moved] = [placement.proposal, model.session?.moved ?? null];
    const text = JSON.stringify([proposal, moved]);
    if (text === this.#shown) return;
    this.#shown = text;
    this.element.hidden = proposal === null && moved === null;
    this.element.classList.toggle("fs-asks", proposal !== null);
    this.element.replaceChildren(...(proposal ? this.#proposed(proposal) : moved ? this.#done(moved) : []));
    if (proposal?.told) this.element.querySelector("button")?.focus({ preventScroll: true });
  }

  #proposed({ what, device, told }: Proposal): Node[] {
    const title = make("strong", {}, `Move ${what.name} to ${this.#short(device)}?`);
    if (told === null) return [title, line("asking what it would change \u2026")];
    if (told.refused) return [title, line(`It cannot be: ${told.refused}`, "fs-refused"), this.#button("Close", () => this.#leave())];
    const bytes = told.moved_bytes > 0 ? `${bytesText(told.moved_bytes)} of variables go along` : "no variable goes along";
    const act = (): void => {
      this.#view.session.send("move", { ...what, device });
      this.#leave();
    };
    return [title, line(predictionText(told)), line(bytes), make("div", { class: "fs-move-acts" }, this.#button("Move", act), this.#button("Cancel", () => this.#leave()))];
  }

  #done(moved: MoveState): Node[] {
    return [make("strong", {}, `${moved.name} moved to ${this.#short(moved.device)}`), line(predictionText(moved)), line(measuredText(moved))];
  }

  #leave(): void {
    this.#view.placement.forget();
    this.#back();
  }

  #short(device: string): string {
    return shortDevice(device, devicesOf(this.#view.model).keys());
  }

  #button(text: string, act: () => void): HTMLButtonElement {
    const made = make("button", { type: "button", class: "fs-text-button", ...OWN_KEYS }, text);
    made.addEventListener("click", act, { signal: this.#view.until });
    return made;
  }
}

function line(text: string, name = ""): HTMLElement {
  return make("p", name ? { class: name } : {}, text);
}
