/** Which device each operation stands on: a legend over the stage that counts and filters, and the colours that the stage draws. */
import { deviceQuestion, DeviceMix, devicesOf, shortDevice } from "../model/devices.js";
import { plural } from "../model/figures.js";
import { deviceMarks } from "../render/devices.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, placeChildren, setText } from "./dom.js";
import { deviceSample } from "./legend.js";
import type { Panel } from "./panel.js";

interface Row {
  readonly element: HTMLButtonElement;
  readonly sample: HTMLElement;
  readonly name: HTMLElement;
  readonly count: HTMLElement;
}

class DevicesPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #list = make("div", { class: "fs-device-list", role: "group", "aria-label": "Devices" });
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-devices-note" });
  readonly #rows = new Map<string, Row>();
  #mix: DeviceMix | null = null;
  #version = -1;

  constructor(view: ViewContext) {
    this.#view = view;
    const { store, model, until, shown } = view;
    this.element = make("div", { class: "fs-devices", "data-testid": "fs-devices" }, this.#list, this.#note);
    this.#list.addEventListener("click", ({ target }) => {
      const row = target instanceof Element ? target.closest<HTMLElement>("[data-device]") : null;
      if (row) this.#filter(row.dataset.device ?? "");
    }, { signal: until });
    store.changed.connect(({ what }) => (what === "heat" || what === "find") && this.#update(), until);
    model.changed.connect(({ graph }) => graph && this.#update(), until);
    shown.connect(() => this.#update(), until);
    this.#update();
  }

  #update(): void {
    const { store, stage, model, navigation } = this.#view;
    this.element.hidden = store.heat !== "device";
    if (this.element.hidden) return;
    if (this.#mix === null || this.#version !== model.version) {
      [this.#mix, this.#version] = [new DeviceMix(model, devicesOf(model)), model.version];
    }
    const mix = this.#mix;
    this.#showRows(mix);
    const { graph } = navigation;
    stage.element.dataset.heat = "device";
    stage.setOverlay((positions, theme, zoom) => deviceMarks(
      { counts: (box) => mix.of(box), isOpen: (box) => graph?.boxes.get(box)?.isOpen ?? false }, positions, theme, zoom,
    ));
  }

  #showRows({ devices, all }: DeviceMix): void {
    const { store, stage } = this.#view;
    placeChildren(this.#list, [...devices].map(([device, number]) => {
      const row = this.#row(device);
      const short = shortDevice(device, devices.keys());
      const count = all[number] ?? 0;
      setText(row.name, short);
      setText(row.count, String(count));
      row.sample.replaceChildren(deviceSample(number, stage.theme));
      row.element.title = `${device}: ${plural(count, "op")}; click to see these alone`;
      row.element.setAttribute("aria-label", `${short}, ${plural(count, "op")}`);
      row.element.setAttribute("aria-pressed", String(store.find === deviceQuestion(device, devices.keys())));
      return row.element;
    }));
    const unplaced = all[devices.size] ?? 0;
    setText(this.#note, devices.size === 0 ? "nothing has run yet" : unplaced > 0 ? `${plural(unplaced, "op")} in no step yet` : "");
  }

  #row(device: string): Row {
    const known = this.#rows.get(device);
    if (known) return known;
    const [sample, name, count] = [make("span", { class: "fs-sample" }), make("span"), make("b")];
    const element = make("button", { type: "button", class: "fs-device", "data-device": device, ...OWN_KEYS }, sample, name, count);
    const row = { element, sample, name, count };
    this.#rows.set(device, row);
    return row;
  }

  /** What stands elsewhere is faint; again, and all is seen. */
  #filter(device: string): void {
    const { store, root } = this.#view;
    const question = deviceQuestion(device, this.#mix?.devices.keys() ?? []);
    store.setFind(store.find === question ? "" : question, root);
    // The search opens with it, and would take the focus.
    this.#rows.get(device)?.element.focus({ preventScroll: true });
  }
}

export const devicesPanel: Panel = { id: "devices", title: "Devices", region: "stage", order: 37, make: (view) => new DevicesPanel(view).element };
