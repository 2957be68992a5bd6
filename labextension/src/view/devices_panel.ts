/** Which device each operation stands on: a legend above the stage that counts and filters, and the colours that the stage draws. */
import { byNumber, deviceQuestion, DeviceMix, devicesOf, shortDevice } from "../model/devices.js";
import { plural, whole } from "../model/figures.js";
import type { BoxId } from "../model/ids.js";
import { movable } from "../model/placement.js";
import { deviceMarks } from "../render/devices.js";
import type { ViewContext } from "./context.js";
import { icon, make, OWN_KEYS, placeChildren, setText } from "./dom.js";
import { deviceSample } from "./legend.js";
import { MoveCard } from "./move_card.js";
import type { Panel } from "./panel.js";
import type { Carried } from "./pointer.js";

interface Row {
  readonly element: HTMLElement;
  readonly filter: HTMLButtonElement;
  /** Moves the selection there. */
  readonly here: HTMLButtonElement;
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
  readonly #card: MoveCard;
  #mix: DeviceMix | null = null;
  #version = -1;
  #placedIn: ReadonlyMap<number, string> | null = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { store, model, until, shown, placement, session, carrier, trace } = view;
    this.#card = new MoveCard(view, () => view.stage.element.focus({ preventScroll: true }));
    this.element = make("div", { class: "fs-devices", "data-testid": "fs-devices" }, this.#list, this.#note, this.#card.element);
    this.#list.addEventListener("click", ({ target }) => {
      const row = target instanceof Element ? target.closest<HTMLElement>("[data-device]") : null;
      const device = row?.dataset.device ?? "";
      if (target instanceof Element && target.closest(".fs-move-here")) this.#propose(view.selection.subject, device);
      else if (row) this.#filter(device);
    }, { signal: until });
    store.changed.connect(({ what }) => {
      if (what === "heat" || what === "find" || what === "selection") this.#update();
    }, until);
    model.changed.connect(({ graph }) => (graph ? this.#update() : this.#card.update()), until);
    placement.changed.connect(() => this.#update(), until);
    session.changed.connect(() => this.#update(), until);
    trace.changed.connect((what) => what === "state" && store.heat === "device" && (trace.stepHeat?.devices ?? null) !== this.#placedIn && this.#update(), until);
    carrier.carry = (box) => this.#carry(box);
    shown.connect(() => this.#update(), until);
    this.#update();
  }

  #update(): void {
    const { store, stage, model, navigation, trace } = this.#view;
    this.element.hidden = store.heat !== "device";
    if (this.element.hidden) return;
    this.#card.update();
    const all = devicesOf(model);
    const placedIn = trace.stepHeat?.devices ?? null;
    if (this.#mix === null || this.#version !== model.version || this.#mix.devices.size !== all.size || this.#placedIn !== placedIn) {
      this.#version = model.version;
      this.#placedIn = placedIn;
      this.#mix = new DeviceMix(model, all, placedIn);
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
    const { store, stage, model, selection, session } = this.#view;
    const name = session.isHeard ? (movable(model, selection.subject)?.name ?? null) : null;
    placeChildren(this.#list, [...devices].sort(([a], [b]) => byNumber(a, b)).map(([device, number]) => {
      const row = this.#row(device);
      const short = shortDevice(device, devices.keys());
      const count = all[number] ?? 0;
      setText(row.name, short);
      setText(row.count, String(count));
      row.sample.replaceChildren(deviceSample(number, stage.theme));
      row.filter.title = `${device}: ${plural(count, "op")}; click to see these alone${session.isHeard ? ", drop an operation or a scope here to move it" : ""}`;
      row.filter.setAttribute("aria-label", `${short}, ${plural(count, "op")}`);
      row.filter.setAttribute("aria-pressed", String(store.find === deviceQuestion(device, devices.keys())));
      row.here.hidden = name === null;
      row.here.title = `Move ${name ?? ""} to ${short}\u2026`;
      row.here.setAttribute("aria-label", row.here.title);
      return row.element;
    }));
    const unplaced = all[devices.size] ?? 0;
    if (model.level !== "graph") setText(this.#note, "what stands here is moved in the graph as written");
    else if (this.#view.trace.stepHeat) setText(this.#note, `in step ${whole(this.#view.trace.stepHeat.step)}; ${plural(unplaced, "op")} did not run`);
    else setText(this.#note, devices.size === 0 ? "nothing has run yet" : unplaced > 0 ? `${plural(unplaced, "op")} in no step yet` : "");
  }

  #row(device: string): Row {
    const known = this.#rows.get(device);
    if (known) return known;
    const [sample, name, count] = [make("span", { class: "fs-sample" }), make("span"), make("b")];
    const filter = make("button", { type: "button", class: "fs-device", ...OWN_KEYS }, sample, name, count);
    const here = make("button", { type: "button", class: "fs-button fs-move-here", ...OWN_KEYS });
    here.append(icon("move"));
    const row = { element: make("div", { class: "fs-device-row", "data-device": device }, filter, here), filter, here, sample, name, count };
    this.#rows.set(device, row);
    return row;
  }

  /** What stands elsewhere is faint; again, and all is seen. */
  #filter(device: string): void {
    const { store, root } = this.#view;
    const question = deviceQuestion(device, this.#mix?.devices.keys() ?? []);
    store.setFind(store.find === question ? "" : question, root);
    // The search opens with it, and would take the focus.
    this.#rows.get(device)?.filter.focus({ preventScroll: true });
  }

  /** Asks what moving a box to a device would change. */
  #propose(box: BoxId | null, device: string): void {
    const { model, session, placement } = this.#view;
    const what = movable(model, box);
    if (what && device !== "") session.ask("ask_placement", placement.propose(what, device), (told) => placement.take(told));
  }

  /** While colours tell devices, a box goes with the pointer, to be dropped on one. */
  #carry(box: BoxId): Carried | null {
    const { store, session, model, root, navigation } = this.#view;
    const what = store.heat === "device" && session.isHeard ? movable(model, box) : null;
    if (!what) return null;
    navigation.select(box);
    const ghost = make("div", { class: "fs-ghost", "aria-hidden": "true" }, what.name);
    root.append(ghost);
    let over: HTMLElement | null = null;
    const take = (row: HTMLElement | null): void => {
      over?.classList.remove("fs-over");
      row?.classList.add("fs-over");
      over = row;
    };
    const end = (): void => {
      take(null);
      ghost.remove();
    };
    return {
      move: (x, y) => {
        const { left, top } = root.getBoundingClientRect();
        ghost.style.transform = `translate(${x - left + 10}px, ${y - top + 10}px)`;
        take(this.#rowAt(x, y));
      },
      drop: (x, y) => {
        const device = this.#rowAt(x, y)?.dataset.device ?? "";
        end();
        this.#propose(box, device);
      },
      cancel: end,
    };
  }

  #rowAt(x: number, y: number): HTMLElement | null {
    const rows = [...this.#rows.values()].map(({ element }) => element);
    return rows.find((row) => {
      const { left, right, top, bottom } = row.getBoundingClientRect();
      return x >= left && x <= right && y >= top && y <= bottom;
    }) ?? null;
  }
}

export const devicesPanel: Panel = { id: "devices", title: "Devices", region: "strip", order: 20, make: (view) => new DevicesPanel(view).element };
