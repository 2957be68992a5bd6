/** The app: run bar, stage, inspector and outline around one graph and one selection. */
import { walk } from "../layout/walk.js";
import { calledBox } from "../model/bodies.js";
import { Choices } from "../model/choices.js";
import { counterpart } from "../model/counterpart.js";
import { GraphModel, type Change } from "../model/graph.js";
import { isFrame } from "../model/frames.js";
import { levelText } from "../model/level_facts.js";
import { opBox, opOf, pathOf, ROOT, scopeBox, type BoxId } from "../model/ids.js";
import { framePath } from "../model/scopes.js";
import type { VisibleGraph } from "../model/visible.js";
import type { Node } from "../wire/messages.js";
import { toSvg } from "../render/svg.js";
import { readTheme, watchTheme } from "./colors.js";
import { Composer, type ShowPicture } from "./composer.js";
import { Crumbs } from "./crumbs.js";
import { button, make } from "./dom.js";
import { Inspector } from "./inspector.js";
import { FramesPanel } from "./frames_panel.js";
import { listenToKeys } from "./keys.js";
import { LevelSwitch } from "./level.js";
import { Outline } from "./outline.js";
import { listenToPointer } from "./pointer.js";
import { keepPresses } from "./presses.js";
import { RunBar, type SendCommand } from "./run_bar.js";
import { Room } from "./room.js";
import { saveText } from "./save.js";
import { SharedChoices, type WidgetState } from "./shared.js";
import { LEGIBLE, Stage, TEXT_PX } from "./stage.js";
import { canvasMeasure } from "./text_width.js";

const ZOOM_STEP = 1.25;

export class App {
  readonly model = new GraphModel();
  readonly runBar: RunBar;
  readonly #choices = new Choices();
  readonly #stage: Stage;
  readonly #frames: FramesPanel;
  readonly #inspector: Inspector;
  readonly #level: LevelSwitch;
  readonly #crumbs: Crumbs;
  readonly #outline: Outline;
  readonly #composer: Composer;
  readonly #root = make("div", { class: "fs-view" });
  readonly #room: Room;
  readonly #until: AbortSignal;
  readonly #shared: SharedChoices | null;
  #graph: VisibleGraph | null = null;
  /** The operation that is selected, as it was told last. */
  #selected: Node | null = null;
  #hold: BoxId | null = null;
  /** To be brought into sight by the next picture. */
  #sought: BoxId | null = null;
  #isFirst = true;
  #wasRunning = false;

  /**
   * Puts the app into `host` until the signal fires. Without `send` it only shows; with a `state` what is
   * chosen is shared.
   */
  constructor(host: HTMLElement, send: SendCommand | null, until: AbortSignal, state: WidgetState | null = null) {
    this.#until = until;
    host.append(this.#root);
    this.runBar = new RunBar(send, {
      select: (box) => {
        this.#select(box);
        this.#follow(box);
      },
      follow: (box) => this.#follow(box),
      keepInSight: (op) => this.#keepInSight(op),
      letGo: () => this.#stage.letGo(),
    }, until);
    this.#frames = new FramesPanel({
      choose: (loop, iteration) => {
        const path = this.model.scopeOfLoop(loop);
        this.#go(path === null ? opBox(loop) : scopeBox(path));
        this.#choices.chooseIteration(iteration);
      },
      forget: () => this.#choices.chooseIteration(null),
    }, until);
    this.#stage = new Stage(until);
    this.#level = new LevelSwitch(send, (box) => this.#goAfresh(box), until);
    this.#inspector = new Inspector(
      (box, level) => (level ? this.#level.showWritten(box) : this.#go(box)), () => this.#select(null), until);
    this.#crumbs = new Crumbs((box) => this.#go(box), until);
    this.#outline = new Outline({
      select: (box) => this.#select(box, true),
      toggle: (path, open) => this.#setOpen(path, open),
    }, until);
    this.#assemble();
    this.#room = new Room(this.#root, this.#stage.element, this.#frames.element, TEXT_PX, until);
    this.#composer = new Composer(this.model, this.#choices, this.#show, until);
    this.#listen();
    this.#shared = state && new SharedChoices(state, this.model, this.#choices, {
      select: (box, bringIn) => (box !== null && (bringIn || this.#isHidden(box)) ? this.#go(box) : this.#select(box)),
    }, until);
    until.addEventListener("abort", () => this.#root.remove(), { once: true });
  }

  #assemble(): void {
    const tools = make("div", { class: "fs-tools", role: "toolbar", "aria-label": "Picture" },
      button("Zoom in", "plus", () => this.#stage.zoomBy(ZOOM_STEP), this.#until),
      button("Zoom out", "minus", () => this.#stage.zoomBy(1 / ZOOM_STEP), this.#until),
      button("Fit", "fit", () => this.#stage.fit(), this.#until),
      button("Outline", "outline", () => this.#root.classList.toggle("fs-with-outline"), this.#until),
      this.#level.button,
      button("Export SVG", "save", () => this.#export(), this.#until));
    const main = make("div", { class: "fs-main" },
      this.#outline.element,
      make("div", { class: "fs-center" },
        make("div", { class: "fs-stage-wrap" }, this.#stage.element, this.runBar.position, this.#crumbs.element, tools),
        this.#frames.element),
      this.#inspector.element);
    this.#root.append(this.runBar.element, main);
  }

  #listen(): void {
    const until = this.#until;
    this.model.changed.connect((change) => this.#onModel(change), until);
    this.#choices.changed.connect((what) => {
      if (what === "open") this.#refresh();
      else if (what === "selection") this.#onSelection();
      else this.#onIteration();
    }, until);
    listenToPointer(this.#stage, {
      select: (box) => this.#select(box),
      toggle: (box) => this.#toggle(box),
      boxOf: (id) => this.#graph?.boxes.get(id),
    }, until);
    listenToKeys(this.#stage.element, {
      walk: (direction) => this.#graph && this.#select(
        walk(this.#graph, this.#stage.positions, this.#choices.selection, direction) ?? this.#choices.selection, true),
      toggle: () => this.#choices.selection !== null && this.#toggle(this.#choices.selection),
      up: () => this.#leave(),
      pause: () => this.runBar.togglePause(),
      step: (what) => this.runBar.step(what),
      fit: () => this.#stage.fit(),
      zoom: (factor) => this.#stage.zoomBy(factor),
    }, until);
    const retheme = (): void => this.#stage.setTheme(readTheme(this.#root));
    // The notebook would take the focus back to the cell, and keys would act on cells.
    this.#root.addEventListener("mousedown", (event) => event.stopPropagation(), { signal: until });
    this.#root.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
    }, { signal: until });
    keepPresses(this.#root, until);
    watchTheme(retheme, until);
    this.#stage.onShown = () => {
      retheme();
      this.#composer.measure = canvasMeasure(getComputedStyle(this.#root).fontFamily);
      this.#refresh();
    };
    this.runBar.update(this.model);
  }

  #onModel({ fresh, graph }: Change): void {
    this.runBar.update(this.model);
    this.#stage.setRun(this.model.session);
    this.#showRun();
    if (!graph) return;
    this.#choices.begin(this.model.tree, this.model.bodies);
    this.#forgetLost();
    this.#shared?.onGraph();
    const what = this.model.level === "graph" ? "Graph " : "Lowered ";
    this.#stage.element.setAttribute("aria-label", `${what}${levelText(this.model)}`);
    this.#onSelection();
    this.#refresh();
    if (fresh && this.#level.update(this.model)) this.#stage.fit();
  }

  #showRun(): void {
    const { run } = this.model;
    // What is chosen before a loop runs waits for it.
    const isRunning = (run?.frames.length ?? 0) > 0;
    if (this.#wasRunning && !isRunning) this.#choices.chooseIteration(null);
    this.#wasRunning = isRunning;
    this.#frames.update(this.model, this.#choices.iteration);
    this.#inspector.updateRun(this.model, this.#choices.selection, this.#choices.iteration);
    if (this.#stage.running.take(run, performance.now())) this.#stage.renewRunning();
  }

  #onIteration(): void {
    this.#frames.mark(this.#choices.iteration);
    this.#inspector.updateRun(this.model, this.#choices.selection, this.#choices.iteration);
    this.#stage.running.chosen = this.#choices.iteration;
    this.#stage.renewRunning();
  }

  /** A selection of something that is no longer there goes over to what has become of it, or is given up. */
  #forgetLost(): void {
    const selection = this.#choices.selection;
    const lost = this.#selected;
    if (selection === null) return;
    if (!this.#isThere(selection)) this.#choices.select(lost && counterpart(this.model, lost));
    this.#selected = this.model.nodes.get(opOf(this.#choices.selection ?? "") ?? -1) ?? null;
  }

  /** Whether the graph has what a box stands for, seen or not. */
  #isThere(box: BoxId): boolean {
    const op = opOf(box);
    return (op === null ? this.model.tree.get(pathOf(box) ?? "") : this.model.nodes.get(op)) !== undefined;
  }

  #refresh(): void {
    if (!this.#stage.isShown) return;
    const hold = this.#hold;
    this.#hold = null;
    this.#composer.refresh(hold);
  }

  readonly #show: ShowPicture = (picture, positions, hold) => {
    // A layout of the empty graph may still have been under way when the snapshot came.
    const isFirst = this.#isFirst && picture.graph.boxes.size > 1;
    // What cannot be read is shown with closed scopes; then, and for what the user opens, the stage grows.
    const isSmall = isFirst && this.#stage.zoomFor(positions) < LEGIBLE;
    if (isSmall && this.#choices.retreat()) return this.#refresh();
    const mayGrow = isSmall || this.#choices.hasChosen;
    const height = this.#room.growFor(mayGrow ? positions : { w: 0, h: 0 });
    if (isFirst) this.#isFirst = false;
    this.#graph = picture.graph;
    this.#stage.running.edgePaths = this.#composer.edgePaths;
    this.#stage.show({ ...picture, ...this.#composer.selected() }, positions, hold, height, this.#sought);
    this.#stage.renewRunning();
    if (positions.boxes.has(this.#sought ?? "")) this.#sought = null;
    this.#outline.update(picture);
    if (picture.graph.boxes.size > 1) this.#root.dataset.ready = "true";
  };

  #onSelection(): void {
    const selection = this.#choices.selection;
    this.#selected = this.model.nodes.get(opOf(selection ?? "") ?? -1) ?? null;
    this.#root.classList.toggle("fs-with-selection", selection !== null);
    this.#stage.setSelection(this.#composer.selected());
    this.#outline.mark(selection);
    this.#inspector.update(this.model, selection);
    this.#inspector.updateRun(this.model, selection, this.#choices.iteration);
    this.#crumbs.update(this.model, selection);
  }

  #select(box: BoxId | null, bringIn = false): void {
    this.#choices.select(box === ROOT ? null : box);
    if (box !== null && bringIn) this.#stage.reveal(box);
  }

  /** Takes the choice of an iteration back; where there is none, selects what is around the selection. */
  #leave(): void {
    if (this.#choices.iteration !== null) return this.#choices.chooseIteration(null);
    this.#select(this.#graph?.boxes.get(this.#choices.selection ?? "")?.parent ?? null, true);
  }

  /** Selects a box that may lie in closed scopes, and opens them; a function's body is opened too. */
  #go(to: BoxId): void {
    const frame = this.model.nodes.get(opOf(to) ?? -1);
    const box = frame && isFrame(frame) ? scopeBox(framePath(frame)) : to;
    if (this.#isThere(box)) this.#select(box, this.#reveal(box));
  }

  /** Shows where a step is, with what is around it. */
  #follow(box: BoxId): void {
    this.#stage.letGo();
    if (this.#reveal(box)) this.#stage.revealNear(box);
  }

  /** An operation that is seen as such, not hidden in a closed scope, stays in sight. */
  #keepInSight(op: BoxId): void {
    if (this.#stage.positions.boxes.has(op)) this.#stage.keepInSight(op);
  }

  /** The same in a graph of which no picture is there yet. */
  #goAfresh(to: BoxId): void {
    this.#go(to);
    this.#sought = this.#choices.selection;
  }

  /** The scopes that are to be open for a box to be seen, from the outermost. */
  #ancestry(box: BoxId): readonly string[] {
    const path = pathOf(box) ?? "";
    const op = opOf(box);
    const home = op === null ? (this.model.tree.get(path)?.parent?.path ?? "") : this.model.tree.homeOf(op).path;
    return this.model.tree.ancestry(this.model.bodies.has(path) ? path : home);
  }

  /** Whether a box lies in a scope that is closed. */
  #isHidden(box: BoxId): boolean {
    return this.#ancestry(box).some((one) => !this.#choices.isOpen(one));
  }

  /** Brings a box into sight and opens the scopes that it lies in; whether it is seen already. */
  #reveal(box: BoxId): boolean {
    if (!this.#isThere(box)) return false;
    const wanted = this.#ancestry(box);
    const closed = wanted.find((one) => !this.#choices.isOpen(one));
    if (closed !== undefined) [this.#hold, this.#sought] = [scopeBox(closed), box];
    this.#choices.reveal(wanted);
    if (closed === undefined) this.#stage.reveal(box);
    return closed === undefined;
  }

  /** Opens or closes a scope; a call leads to the body that it calls. */
  #toggle(box: BoxId): void {
    const path = pathOf(box);
    if (path !== null && path !== "") return this.#setOpen(path, !this.#choices.isOpen(path));
    const body = calledBox(this.model, box);
    if (body !== null) this.#go(body);
  }

  #setOpen(path: string, open: boolean): void {
    this.#hold = scopeBox(path);
    this.#choices.setOpen(path, open);
  }

  #export(): void {
    const picture = this.#stage.currentScene();
    const name = (this.model.name || "graph").replace(/[^\w.-]+/g, "_");
    if (picture) saveText(toSvg(picture), `${name}.svg`, "image/svg+xml");
  }
}
