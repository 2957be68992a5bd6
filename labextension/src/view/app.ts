/** The app: a view of one graph, made of a stage and panels around one model and one store. */
import { ClusterModel } from "../model/cluster.js";
import { CulpritModel } from "../model/culprit.js";
import { DebugModel, standing } from "../model/debug.js";
import { ExplanationModel } from "../model/explanation.js";
import { FindingsModel } from "../model/findings.js";
import { liveKey, liveNotes } from "../model/live_notes.js";
import { GraphModel, type Change } from "../model/graph.js";
import { rate as rateText } from "../model/figures.js";
import { levelText } from "../model/level_facts.js";
import { PastModel } from "../model/past.js";
import { Rewind } from "../model/rewind.js";
import { OpenScopes } from "../model/open_scopes.js";
import { PlacementModel } from "../model/placement.js";
import { boxOf, Selection } from "../model/selection.js";
import { Signal } from "../model/signal.js";
import { SummariesModel } from "../model/summaries.js";
import { Store, type StoreChange } from "../model/store.js";
import { TraceModel } from "../model/trace.js";
import { VariablesModel } from "../model/variables.js";
import type { Picture } from "../render/scene.js";
import { inPage, type Arrangement } from "./arrangement.js";
import { readTheme, watchTheme } from "./colors.js";
import { CommandTable } from "./command_table.js";
import type { ViewContext } from "./context.js";
import { Display } from "./display.js";
import { heightIn, keptIn } from "./division.js";
import { make } from "./dom.js";
import { Drawers } from "./drawers.js";
import { Finder } from "./finder.js";
import { obeyPage, shareOpen, STATE_EVENT, tellPage, type ToldState } from "./host.js";
import { LineLink } from "./line_link.js";
import type { NoteLayer } from "./note_layer.js";
import { Navigation } from "./navigation.js";
import type { Region } from "./panel.js";
import { listenToPointer } from "./pointer.js";
import { keepPresses } from "./presses.js";
import { panelsIn } from "./registry.js";
import { notesOf, opName, wouldRun } from "../model/run_setup.js";
import { RunLink } from "./run_link.js";
import { SessionLink, type Ask, type SendCommand } from "./session_link.js";
import { Sections } from "./sections.js";
import { Slicer } from "./slicer.js";
import { stateOf } from "./state.js";
import { Stage } from "./stage.js";
import { storeOf, type WidgetState } from "./store_sync.js";
import { Timeline } from "./timeline.js";
import type { DebugState, Snapshot } from "../wire/messages.js";

const LEVEL_NAMES = { graph: "Graph", lowered: "Lowered", partitions: "Cut" } as const;

export class App {
  readonly model = new GraphModel();
  readonly trace = new TraceModel(this.model);
  readonly debug = new DebugModel(this.model);
  readonly past = new PastModel(this.model);
  readonly culprit = new CulpritModel(this.debug);
  readonly findings = new FindingsModel();
  readonly explanation = new ExplanationModel();
  readonly summaries = new SummariesModel(this.model);
  readonly variables = new VariablesModel(this.model);
  readonly placement = new PlacementModel();
  readonly cluster = new ClusterModel();
  readonly session: SessionLink;
  readonly slicer: Slicer;
  readonly #view: ViewContext;
  readonly #display: Display;
  readonly #root = make("div", { class: "fs-view" });
  /** All but the bar at the top. */
  readonly #work = make("div", { class: "fs-work" });
  #wasRunning = false;
  #lastLevel: Snapshot["level"] = "graph";
  #drawnDebug: DebugState | null = null;
  #liveKey = "";

  /**
   * Puts the app into `host` until the signal fires. Without `send` it only shows; with a `state` what is chosen is shared
   * with the other views of the graph and with Python.
   */
  constructor(
    host: HTMLElement, send: SendCommand | null, until: AbortSignal, state: WidgetState | null = null,
    arrangement: Arrangement = inPage, ask?: Ask,
  ) {
    host.append(this.#root);
    until.addEventListener("abort", () => this.#root.remove(), { once: true });
    const { model } = this;
    const session = this.session = new SessionLink(send, ask);
    const slicer = this.slicer = new Slicer(until);
    const store = state ? storeOf(state, until) : new Store();
    const selection = new Selection(model, store, this);
    const scopes = new OpenScopes(store, this);
    const stage = new Stage(until);
    const runs = new RunLink(state, until);
    const navigation = new Navigation({ model, store, selection, scopes, session, stage, view: this });
    const commands = new CommandTable(() => this.#view, until);
    const drawers = new Drawers();
    const tabRow = make("div", { class: "fs-tab-row" });
    const sections = new Sections(this.#work, tabRow, drawers, () => stage.element.focus({ preventScroll: true }), until);
    this.#view = {
      model, store, selection, scopes, session, runs, stage, navigation, commands, slicer, until,
      trace: this.trace, debug: this.debug, past: this.past, summaries: this.summaries, variables: this.variables, explanation: this.explanation, culprit: this.culprit, findings: this.findings, placement: this.placement, cluster: this.cluster, carrier: { carry: () => null }, timeline: new Timeline(until),
      root: this.#root, graphKey: String(state?.get("graph_key") ?? ""), isDocked: arrangement.isDocked,
      rewind: new Rewind(store, this.trace, this.past), finder: new Finder(model, store), drawers, sections, tabRow, shown: new Signal<Picture>(),
    };
    // The app hears of a change before its panels do: they find the selection settled.
    model.changed.connect((change) => this.#onModel(change), until);
    store.changed.connect((change) => this.#onStore(change), until);
    this.#display = new Display(this.#view, until);
    this.#assemble(arrangement);
    this.#listen();
    commands.refresh();
  }

  /** Makes the panels and puts them in their places. */
  #assemble({ isDocked, memory }: Arrangement): void {
    const { drawers, until, stage, sections } = this.#view;
    drawers.changed.connect((id) => {
      if (id === "run") this.#light();
      this.#view.commands.refresh();
    }, until);
    const made = (region: Region): HTMLElement[] => panelsIn(region).map((panel) => panel.make(this.#view));
    const picture = make(
      "div", { class: "fs-picture" }, make("div", { class: "fs-strip" }, ...made("strip")),
      make("div", { class: "fs-stage-wrap" }, stage.element, ...made("stage")), make("div", { class: "fs-foot" }, ...made("foot")),
    );
    for (const panel of [...panelsIn("panels"), ...panelsIn("about")]) sections.add(panel, panel.make(this.#view), until);
    this.#work.append(make("div", { class: "fs-parts" }, picture, sections.element), ...made("rail"));
    this.#root.append(...made("top"), this.#work, ...made("bottom"));
    this.#root.classList.toggle("fs-docked", isDocked);
    if (!isDocked && getComputedStyle(this.#root).getPropertyValue("--fs-height") === "") this.#root.style.setProperty("--fs-height", `${heightIn(innerHeight)}px`);
    const kept = keptIn(memory?.read(), new Set(sections.ids));
    for (const id of kept?.open ?? ["frames", "inspector"]) drawers.offer(id);
    if (kept) sections.wanted = kept.wanted;
    const keep = (): void => memory?.write({ open: sections.ids.filter((id) => drawers.isOpen(id)), wanted: sections.wanted });
    drawers.changed.connect(keep, until);
    sections.onWanted = keep;
    // A docked panel remembers its layout itself.
    if (!isDocked) shareOpen(this.#root, drawers, sections.ids, until);
  }

  #listen(): void {
    const { stage, navigation, commands, finder, runs, shown, until } = this.#view;
    listenToPointer(stage, {
      select: (box) => navigation.select(box),
      toggle: (box) => navigation.toggle(box),
      hover: (box) => navigation.hover(box),
      boxOf: (id) => navigation.graph?.boxes.get(id),
      carry: (box) => this.#view.carrier.carry(box),
    }, until);
    commands.listenToKeys(stage.element);
    this.session.changed.connect(() => commands.refresh(), until);
    finder.changed.connect(() => this.#light(), until);
    runs.changed.connect(() => this.#onRuns(), until);
    shown.connect(({ graph }) => {
      this.#light();
      if (graph.boxes.size > 1) this.#root.dataset.ready = "true";
    }, until);
    this.#joinPage();
  }

  /** Keys, presses and colours of the page around. */
  #joinPage(): void {
    const { stage, until } = this.#view;
    // The notebook would take the focus back to the cell, and keys would act on cells.
    this.#root.addEventListener("mousedown", (event) => event.stopPropagation(), { signal: until });
    this.#root.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
    }, { signal: until });
    keepPresses(this.#root, until);
    obeyPage(this.#root, this.#view.commands, until);
    new LineLink(this.#view);
    const retheme = (): void => stage.setTheme(readTheme(this.#root));
    watchTheme(retheme, until);
    stage.onShown = () => {
      retheme();
      this.#display.setFont(getComputedStyle(this.#root).fontFamily);
      this.#display.refresh();
    };
  }

  #onModel({ fresh, graph }: Change): void {
    const { model } = this;
    const { stage, scopes, selection, navigation, commands } = this.#view;
    stage.setRun(model.session);
    this.#onRecording(model.control);
    this.#onDebug(graph);
    this.#onRun();
    this.#onLive();
    commands.refresh();
    if (!graph) return;
    scopes.begin(model);
    const before = selection.isKnown;
    selection.settle();
    if (!before) navigation.uncover();
    stage.element.setAttribute("aria-label", `${LEVEL_NAMES[model.level]} ${levelText(model)}`);
    this.#onSelection();
    this.#view.finder.update();
    this.#onRuns();
    this.#display.refresh();
    if (fresh) this.#onLevel();
  }

  /** A snapshot has come, perhaps of the other level. */
  #onLevel(): void {
    const { level } = this.model;
    this.#view.navigation.goToWanted();
    if (level !== this.#lastLevel) this.#view.stage.fit();
    if (level !== this.#lastLevel && level === "partitions") this.#view.scopes.revealParts(this.model.tree);
    this.#lastLevel = level;
  }

  /** A recording is opened where its steps are seen, a graph in which nothing ran with the sizes of its boxes. */
  #onRecording(control: Snapshot["control"]): void {
    const { session, drawers, store } = this.#view;
    const isRecorded = control === "recorded" || control === "graph";
    if (isRecorded === session.isRecorded) return;
    session.setRecorded(isRecorded);
    this.#root.classList.toggle("fs-recorded", isRecorded);
    drawers.setOpen("timeline", control === "recorded");
    if (store.heat === "off") store.setHeat(control === "graph" ? "weights" : "time", this);
  }

  #onRun(): void {
    const { run } = this.model;
    const { stage, navigation } = this.#view;
    // What is chosen before a loop runs waits for it.
    const isRunning = (run?.frames.length ?? 0) > 0;
    if (this.#wasRunning && !isRunning) navigation.forgetIteration();
    this.#wasRunning = isRunning;
    const failed = this.model.session?.failure?.op ?? null;
    const isOther = failed !== stage.running.failed;
    stage.running.failed = failed;
    if (stage.running.take(run, performance.now()) || isOther) stage.renewRunning();
    this.#tellState();
  }

  /** Breakpoints are drawn anew where they are others, or may stand at other boxes. */
  #onDebug(isOtherGraph: boolean): void {
    const { state } = this.debug;
    if (state === this.#drawnDebug && !isOtherGraph) return;
    this.#drawnDebug = state;
    this.#view.stage.breakpoints.ops = standing(this.model, state);
    this.#view.stage.running.culprits = this.culprit.ops.map((op) => this.model.ownId(op));
    this.#view.stage.renewRunning();
  }

  /** Numbers that steps fetch, and how full queues are, stand on their boxes. */
  #onLive(): void {
    const key = liveKey(this.model.session);
    if (key === this.#liveKey) return;
    this.#liveKey = key;
    const { stage } = this.#view;
    stage.notes.notes = this.model.level === "graph" ? this.#notes() : [];
    stage.renewRunning();
  }

  /** What is fetched and fed; and what steps fetched lately, unless the past is looked at. */
  #notes(): NoteLayer["notes"] {
    const { runs, store } = this.#view;
    return [...notesOf(this.model, runs.setup), ...(store.step === null ? liveNotes(this.model, runs.setup) : [])];
  }

  /** What the page shows of the session elsewhere. */
  #tellState(): void {
    const { session } = this.model;
    if (!this.session.isLive) return;
    const { kind, text } = stateOf(this.#view);
    this.#root.dataset.run = kind;
    const rate = session?.steps_per_s == null ? "" : `, ${rateText(session.steps_per_s)}`;
    tellPage<ToldState>(this.#root, STATE_EVENT, { state: kind, text: session ? `${text}${rate}` : "" });
  }

  #onStore({ what, by }: StoreChange): void {
    const { stage, store, navigation, commands } = this.#view;
    if (what === "open" || what === "isolated") this.#display.refresh();
    if (what === "open") return;
    if (what === "find" || what === "difference") return this.#view.finder.update();
    if (what === "hover") return stage.setHover(boxOf(this.model, store.hover));
    if (what === "selection") {
      if (by !== this) this.#view.selection.settle();
      this.#onSelection();
      if (by !== this) navigation.bringIn();
    } else if (what === "step") {
      this.trace.goTo(store.step);
      this.past.chooseStep(store.step);
      this.#liveKey = "";
      this.#onLive();
      this.#tellState();
    } else if (what === "iteration") {
      stage.running.chosen = store.iteration;
      stage.renewRunning();
    }
    commands.refresh();
  }

  /** What is found stands out, or else what would run. */
  #light(): void {
    const { finder, stage, runs, drawers } = this.#view;
    const { edgePaths } = stage.running;
    const isFound = finder.isOn && !finder.found.problem;
    const isToRun = !isFound && drawers.isOpen("run") && runs.setup.would_run.length > 0 && this.model.level === "graph";
    if (!edgePaths || !(isFound || isToRun)) return stage.setLit(null);
    const fed = runs.setup.needs.flatMap(({ name }) => this.model.tree.idOf(opName(name)) ?? []);
    const ops = isFound ? finder.found.ops : [...wouldRun(this.model, runs.setup), ...fed];
    stage.setLit(new Set(ops.flatMap((op) => edgePaths.boxOf(op) ?? [])));
  }

  /** What is fetched or fed is another, or there are results. */
  #onRuns(): void {
    const { stage, commands } = this.#view;
    stage.notes.notes = this.model.level === "graph" ? this.#notes() : [];
    stage.renewRunning();
    this.#light();
    commands.refresh();
  }

  #onSelection(): void {
    this.#display.select();
  }
}
