/** The colours that the picture has now, each with its word, in the line below the stage; a press opens the whole legend. */
import { shortDevice } from "../model/devices.js";
import { devicesIn, meaningsIn } from "../render/meanings.js";
import { plain } from "../render/theme.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS } from "./dom.js";
import { deviceSample, meaningSample } from "./legend.js";
import type { Panel } from "./panel.js";

/** Devices beyond this are counted. */
const MOST_DEVICES = 4;

class LegendPanel {
  readonly element = make("button", { type: "button", class: "fs-colours", "data-testid": "fs-colours", "aria-label": "Colours: open the legend", ...OWN_KEYS });
  readonly #view: ViewContext;
  #shown = "";

  constructor(view: ViewContext) {
    this.#view = view;
    const { until, drawers, shown, store, model, trace } = view;
    this.element.addEventListener("click", () => drawers.setOpen("keys", !drawers.isOpen("keys")), { signal: until });
    shown.connect(() => this.#update(), until);
    store.changed.connect(({ what }) => (what === "selection" || what === "heat") && this.#update(), until);
    model.changed.connect(() => this.#update(), until);
    trace.changed.connect(() => this.#update(), until);
  }

  #update(): void {
    const { stage, store } = this.#view;
    const { picture, running, theme } = stage;
    if (!picture) return;
    const isPlain = store.heat === "device" || stage.isPlain;
    const meanings = meaningsIn(picture, { isPlain, isHeld: running.held !== null, hasFailed: running.failedBox !== null, hasTokens: running.tokens > 0 });
    const devices = isPlain ? [] : devicesIn(picture);
    const key = JSON.stringify([meanings, devices, isPlain, theme.isDark, theme.accent]);
    if (key === this.#shown) return;
    this.#shown = key;
    const told = devices.slice(0, MOST_DEVICES).map(([name, number]) => make("span", { title: name, "data-device": name }, deviceSample(number, theme), shortDevice(name, picture.devices.keys())));
    const more = devices.length > MOST_DEVICES ? [make("span", {}, `and ${devices.length - MOST_DEVICES} more devices`)] : [];
    this.element.hidden = meanings.length + devices.length === 0;
    this.element.replaceChildren(...meanings.map((meaning) => meaningSample(meaning, isPlain ? plain(theme) : theme)), ...told, ...more);
  }
}

export const legendPanel: Panel = { id: "legend", title: "Colours", region: "foot", order: 30, make: (view) => new LegendPanel(view).element };
