/** Shares of a step on the boxes of the graph: a switch and a legend above the stage, and the bars that the stage draws. */
import { HeatBoxes, HEATS, untakenBoxes, type Heat, type HeatKind } from "../model/heat.js";
import { shareText, whole } from "../model/figures.js";
import { opBox, ROOT, type BoxId } from "../model/ids.js";
import { shortName } from "../model/scopes.js";
import { sizeLine, sizeParts, type Size } from "../model/sizes.js";
import type { StepHeat } from "../model/heat_step.js";
import { StepDifference } from "../model/step_difference.js";
import { DIFFERENCE, differenceMarks } from "../render/difference.js";
import { heatMarks } from "../render/heat.js";
import { rampColor } from "../render/ramp.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { ProgramChoice } from "./program_choice.js";

const WORDS: Readonly<Record<HeatKind, string>> = { off: "nothing", time: "share of time", memory: "share of bytes made", device: "device", weights: "parameters", flops: "FLOPs" };
const NONE: ReadonlySet<BoxId> = new Set();
const STOPS = [0, 0.04, 0.16, 0.36, 0.64, 1] as const;

class HeatPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #choice = make("select", { "aria-label": "Boxes show", "data-testid": "fs-heat", ...OWN_KEYS }, ...HEATS.map((heat) => make("option", { value: heat }, WORDS[heat])));
  readonly #scale = make("span", { class: "fs-ramp", role: "img", "aria-label": "pale: next to nothing; dark: all of the step" });
  readonly #note = make("span", { class: "fs-note", "data-testid": "fs-heat-note" });
  /** Leads to the operation with the greatest share. */
  readonly #most = make("button", { type: "button", class: "fs-link", "data-testid": "fs-hottest", ...OWN_KEYS });
  readonly #program: ProgramChoice;
  readonly #legend = make("span", { class: "fs-differs" }, swatch(DIFFERENCE.shorter), "less time", swatch(DIFFERENCE.longer), "more time");
  #hottest: BoxId | null = null;
  #boxes: HeatBoxes | null = null;
  #ops: Heat["ops"] | null = null;
  #version = -1;
  #untaken: ReadonlySet<BoxId> = new Set();

  constructor(view: ViewContext) {
    this.#view = view;
    const { store, trace, model, until, root, shown } = view;
    this.#program = new ProgramChoice(view);
    this.element = make("div", { class: "fs-heat" }, make("label", {}, "boxes show: ", this.#choice), this.#scale, this.#legend, this.#most, this.#program.element, this.#note);
    this.#most.addEventListener("click", () => this.#hottest !== null && view.navigation.goNear(this.#hottest), { signal: until });
    this.#choice.addEventListener("change", () => {
      store.setHeat(HEATS.find((heat) => heat === this.#choice.value) ?? "off", root);
      view.stage.element.focus({ preventScroll: true });
    }, { signal: until });
    trace.changed.connect((what) => what === "state" && this.#update(), until);
    store.changed.connect(({ what }) => what === "heat" && this.#update(), until);
    model.changed.connect(({ graph }) => graph && this.#update(), until);
    shown.connect(() => this.#update(), until);
    view.rewind.changed.connect(() => this.#update(), until);
    this.#update();
  }

  #update(): void {
    const { store, trace, stage, commands, navigation, rewind } = this.#view;
    this.#legend.hidden = true;
    const { heat: kind } = store;
    this.element.hidden = kind === "off";
    this.#choice.value = kind;
    commands.refresh();
    const { heat } = trace;
    if (kind === "weights" || kind === "flops") return this.#showSizes(kind);
    const isShare = kind === "time" || kind === "memory";
    if (!isShare || !heat) {
      setText(this.#note, !isShare ? "" : trace.isRecording ? "recording: run a step" : "nothing is recorded: press R");
      this.#scale.hidden = this.#most.hidden = this.#program.element.hidden = true;
      stage.element.dataset.heat = "";
      return kind === "device" ? undefined : stage.setOverlay(null);
    }
    const base = kind === "time" ? (rewind.base?.heat ?? null) : null;
    this.#legend.hidden = base === null;
    if (base) return this.#showDifference(base, heat);
    this.#join(heat);
    this.#boxes?.take(kind === "time" ? heat.time : heat.memory);
    this.#showScale();
    this.#showMost(heat, kind === "time" ? heat.time : heat.memory);
    this.#program.update();
    const { stepHeat } = trace;
    if (stepHeat) this.#program.element.hidden = true;
    const missing = store.step === null ? "" : `step ${whole(store.step)} was not traced; these are of others`;
    setText(this.#note, !stepHeat ? missing : `of step ${whole(stepHeat.step)}${stepHeat.isPart ? ", without its shortest operations" : ""}`);
    const { graph } = navigation;
    const [boxes, untaken] = [this.#boxes, this.#untaken];
    stage.element.dataset.heat = kind;
    stage.setOverlay((positions, theme, zoom) => heatMarks({
      share: (box) => boxes?.of(box) ?? null, untaken, isOpen: (box) => graph?.boxes.get(box)?.isOpen ?? false,
    }, positions, theme, zoom));
  }

  /** How large the model is: parameters and flops, and what share of them each box has. */
  #showSizes(kind: "weights" | "flops"): void {
    const { model, stage, navigation: { graph } } = this.#view;
    const { sizes } = model;
    const value = ({ parameters, flops }: Size): number => (kind === "weights" ? parameters : flops);
    const all = value(sizes.all);
    this.#program.element.hidden = true;
    this.#showScale();
    this.#showMost(sizes, sizes.each.map((size) => (all > 0 ? value(size) / all : 0)));
    setText(this.#note, all > 0 ? sizeLine(sizes.all) : kind === "weights" ? "no variables, no constants that are weights" : "no products, no convolutions");
    stage.element.dataset.heat = kind;
    const share = (box: BoxId): number | null => {
      const size = box === ROOT ? null : sizes.of(box);
      return size === null || all === 0 ? null : value(size) / all;
    };
    stage.setOverlay((positions, theme, zoom) => heatMarks({
      share, untaken: NONE, isOpen: (box) => graph?.boxes.get(box)?.isOpen ?? false, told: (box) => sizeParts(sizes.of(box), kind),
    }, positions, theme, zoom));
  }

  /** What took longer, and what less, than in the step that is compared with. */
  #showDifference(base: StepHeat, heat: Heat): void {
    const { stage, trace, navigation: { graph }, model } = this.#view;
    const difference = new StepDifference(model, base, heat);
    this.#scale.hidden = this.#most.hidden = this.#program.element.hidden = true;
    const step = trace.stepHeat?.step ?? null;
    setText(this.#note, step === base.step ? `step ${whole(base.step)} is kept: go to another one` : `step ${whole(base.step)} \u2192 ${step === null ? "a usual step" : `step ${whole(step)}`}`);
    stage.element.dataset.heat = "difference";
    stage.setOverlay((positions, theme, zoom) => differenceMarks({ of: (box) => difference.of(box), isOpen: (box) => graph?.boxes.get(box)?.isOpen ?? false }, positions, theme, zoom));
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

  #showMost({ ops }: Pick<Heat, "ops">, shares: ArrayLike<number>): void {
    const { model } = this.#view;
    let best = -1;
    for (let i = 0; i < ops.length; i++) if (best < 0 || (shares[i] ?? 0) > (shares[best] ?? 0)) best = i;
    const node = model.nodes.get(ops[best]?.[0] ?? -1);
    this.#most.hidden = !node;
    if (!node) return;
    this.#hottest = opBox(node.id);
    setText(this.#most, `most: ${shortName(node.name)}, ${shareText(shares[best] ?? 0)}`);
    this.#most.title = `${node.name}: show it`;
  }

  #showScale(): void {
    this.#scale.hidden = false;
    const { theme } = this.#view.stage;
    const stops = STOPS.map((share, i) => `${rampColor(share, theme)} ${(100 * i) / (STOPS.length - 1)}%`);
    this.#scale.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  }
}

function swatch(colour: string): HTMLElement {
  return make("span", { class: "fs-swatch", style: `background: ${colour}`, "aria-hidden": "true" });
}

function sameOps(one: Heat["ops"], other: Heat["ops"]): boolean {
  return one === other || (one.length === other.length && one.every((ops, i) => ops.length === other[i]?.length && ops[0] === other[i]?.[0]));
}

export const heatPanel: Panel = { id: "heat", title: "Share of a step", region: "strip", order: 10, make: (view) => new HeatPanel(view).element };
