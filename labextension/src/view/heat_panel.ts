/** Shares of a step on the boxes of the graph: a switch and a legend over the stage, and the bars that the stage draws. */
import { HeatBoxes, HEATS, untakenBoxes, type Heat, type HeatKind } from "../model/heat.js";
import { plural } from "../model/figures.js";
import type { BoxId } from "../model/ids.js";
import { heatMarks } from "../render/heat.js";
import { rampColor } from "../render/ramp.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

const WORDS: Readonly<Record<HeatKind, string>> = { off: "off", time: "time", memory: "bytes made" };
const STOPS = [0, 0.04, 0.16, 0.36, 0.64, 1] as const;

class HeatPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #choice = make("select", { "aria-label": "Share of the step", "data-testid": "fs-heat", ...OWN_KEYS }, ...HEATS.map((heat) => make("option", { value: heat }, WORDS[heat])));
  readonly #scale = make("span", { class: "fs-ramp", role: "img", "aria-label": "pale: next to nothing; dark: all of the step" });
  readonly #note = make("span", { class: "fs-note", "data-testid": "fs-heat-note" });
  #boxes: HeatBoxes | null = null;
  #ops: Heat["ops"] | null = null;
  #version = -1;
  #untaken: ReadonlySet<BoxId> = new Set();

  constructor(view: ViewContext) {
    this.#view = view;
    const { store, trace, model, until, root, shown } = view;
    this.element = make("div", { class: "fs-heat" }, make("label", {}, "share of a step: ", this.#choice), this.#scale, this.#note);
    this.#choice.addEventListener("change", () => {
      store.setHeat(HEATS.find((heat) => heat === this.#choice.value) ?? "off", root);
      view.stage.element.focus({ preventScroll: true });
    }, { signal: until });
    trace.changed.connect((what) => what === "state" && this.#update(), until);
    store.changed.connect(({ what }) => what === "heat" && this.#update(), until);
    model.changed.connect(({ graph }) => graph && this.#update(), until);
    shown.connect(() => this.#update(), until);
    this.#update();
  }

  #update(): void {
    const { store, trace, stage, commands, navigation } = this.#view;
    const { heat: kind } = store;
    this.element.hidden = kind === "off";
    this.#choice.value = kind;
    commands.refresh();
    const { heat } = trace;
    if (kind === "off" || !heat) {
      setText(this.#note, kind === "off" ? "" : trace.isRecording ? "recording: run a step" : "nothing is recorded: press R");
      this.#scale.hidden = true;
      stage.element.dataset.heat = "";
      return stage.setOverlay(null);
    }
    this.#join(heat);
    this.#boxes?.take(kind === "time" ? heat.time : heat.memory);
    this.#showScale();
    setText(this.#note, `mean of ${plural(trace.traced, "step")}`);
    const { graph } = navigation;
    const [boxes, untaken] = [this.#boxes, this.#untaken];
    stage.element.dataset.heat = kind;
    stage.setOverlay((positions, theme, zoom) => heatMarks({
      share: (box) => boxes?.of(box) ?? null, untaken, isOpen: (box) => graph?.boxes.get(box)?.isOpen ?? false,
    }, positions, theme, zoom));
  }

  /** Which boxes show a node changes with the graph, and when other nodes run. */
  #join(heat: Heat): void {
    const { model } = this.#view;
    const isSame = this.#version === model.version && this.#ops !== null && sameOps(this.#ops, heat.ops);
    if (isSame) return;
    [this.#version, this.#ops] = [model.version, heat.ops];
    this.#boxes = new HeatBoxes(model, heat.ops);
    this.#untaken = untakenBoxes(model, heat);
  }

  #showScale(): void {
    this.#scale.hidden = false;
    const { theme } = this.#view.stage;
    const stops = STOPS.map((share, i) => `${rampColor(share, theme)} ${(100 * i) / (STOPS.length - 1)}%`);
    this.#scale.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  }
}

function sameOps(one: Heat["ops"], other: Heat["ops"]): boolean {
  return one === other || (one.length === other.length && one.every((ops, i) => ops.length === other[i]?.length && ops[0] === other[i]?.[0]));
}

export const heatPanel: Panel = { id: "heat", title: "Share of a step", region: "stage", order: 36, make: (view) => new HeatPanel(view).element };
