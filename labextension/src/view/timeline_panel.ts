/** The timeline: what ran in a recorded step, where and when. */
import { duration, shareText, whole } from "../model/figures.js";
import type { RecordedStep, Split } from "../model/recording.js";
import { bytesText } from "../model/running.js";
import { opBox, opOf, pathOf } from "../model/ids.js";
import { iterationOf, opOfNode, sliceCard, type SliceCard } from "../model/slice_facts.js";
import type { Slices } from "../model/timeline_rows.js";
import { readTheme, watchTheme } from "./colors.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { RangeTable } from "./range_table.js";
import { SpanQuestions } from "./span_questions.js";
import { listenToTimeline } from "./timeline_pointer.js";

/** Steps that the list offers: the newest. */
const MOST_STEPS = 200;
const NEWEST = "newest";

const PARTS: readonly (readonly [keyof Split, string])[] = [
  ["compute_ns", "compute"], ["copies_ns", "copies"], ["waits_ns", "waits"], ["python_ns", "Python"], ["other_ns", "engine"],
];

class TimelinePanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #chooser = make("select", { "aria-label": "Step", "data-testid": "fs-step", ...OWN_KEYS });
  readonly #length = make("span", { class: "fs-figure", "data-testid": "fs-step-length" });
  readonly #split = make("div", { class: "fs-split", "data-testid": "fs-split", role: "img" });
  readonly #note = make("span", { class: "fs-note", "data-testid": "fs-timeline-note" });
  readonly #empty = make("p", { class: "fs-empty", role: "status", "data-testid": "fs-timeline-empty" });
  readonly #card = make("div", { class: "fs-card", role: "tooltip", "data-testid": "fs-slice-card" });
  readonly #speech = make("div", { class: "fs-speech", role: "log", "aria-live": "polite", "aria-atomic": "true", "data-testid": "fs-timeline-speech" });
  readonly #questions: SpanQuestions;
  /** A slice that was chosen here is in sight already. */
  #isChoosing = false;
  #listed = "";

  constructor(view: ViewContext) {
    this.#view = view;
    const { timeline, commands, store, trace, model, until, root } = view;
    this.#questions = new SpanQuestions(view);
    const bar = make(
      "div", { class: "fs-timeline-bar" }, commands.button("record"),
      make("span", { class: "fs-buttons" }, commands.button("step-earlier"), this.#chooser, commands.button("step-later")),
      this.#length, this.#split, this.#note,
      make("span", { class: "fs-buttons" }, commands.button("time-in"), commands.button("time-out"), commands.button("time-fit")),
    );
    this.#card.hidden = true;
    const body = make("div", { class: "fs-timeline-body" }, timeline.canvas, this.#empty, this.#card);
    this.element = make("section", { class: "fs-timeline", "aria-label": "Timeline", "data-testid": "fs-timeline" }, bar, body, new RangeTable(view).element, this.#speech);
    this.#chooser.addEventListener("change", () => {
      const { value } = this.#chooser;
      store.chooseStep(value === NEWEST ? null : Number(value), root);
    }, { signal: until });
    commands.listenToKeys(timeline.canvas, "timeline");
    listenToTimeline(timeline, { card: (event) => this.#hover(event), pin: () => this.#questions.pin() }, until);
    timeline.chose.connect(({ slices, at }) => this.#chose(slices, at), until);
    trace.changed.connect((what) => (what === "spans" ? this.#takeSpans() : this.#takeState()), until);
    model.changed.connect(({ graph }) => graph && this.#mark(), until);
    store.changed.connect(({ what }) => {
      if (what === "selection" || what === "iteration") this.#mark(what === "selection");
      if (what === "step") this.#takeState();
    }, until);
    const retheme = (): void => timeline.setTheme(readTheme(root));
    watchTheme(retheme, until);
    view.shown.connect(retheme, until);
    this.#takeState();
  }

  #takeState(): void {
    const { trace, store, timeline, session, commands } = this.#view;
    timeline.setSteps(trace.steps);
    this.#listSteps(trace.steps, store.step);
    this.#color();
    const isEmpty = trace.recording === null;
    this.#empty.hidden = !isEmpty;
    timeline.canvas.hidden = isEmpty;
    setText(this.#empty, !session.isLive ? "Nothing was recorded of this graph." : trace.isRecording
      ? "Recording. Run a step: where its time goes is shown here."
      : "Nothing is recorded yet. Press R, or the round button, to record steps while they run.");
    commands.refresh();
  }

  #listSteps(steps: readonly RecordedStep[], chosen: number | null): void {
    const shown = steps.slice(-MOST_STEPS);
    const text = `${chosen}|${shown.map(({ number }) => number).join()}`;
    if (text === this.#listed || document.activeElement === this.#chooser) return;
    this.#listed = text;
    const options = [...shown].reverse().map(({ number, begin_ns, end_ns }) =>
      make("option", { value: String(number) }, `step ${whole(number)} \u00b7 ${duration((end_ns - begin_ns) / 1e9)}`));
    const isGone = chosen !== null && !shown.some(({ number }) => number === chosen);
    this.#chooser.replaceChildren(
      make("option", { value: NEWEST }, "newest step"), ...options,
      ...(isGone ? [make("option", { value: String(chosen) }, `step ${whole(chosen)} (not kept)`)] : []),
    );
    this.#chooser.value = chosen === null ? NEWEST : String(chosen);
    this.#chooser.disabled = shown.length === 0;
  }

  #takeSpans(): void {
    const { trace, timeline } = this.#view;
    const { recording } = trace;
    timeline.take(recording);
    this.#takeState();
    this.#mark();
    if (!recording) return;
    const { step } = recording;
    setText(this.#length, `step ${whole(step.number)}: ${duration((step.end_ns - step.begin_ns) / 1e9)}`);
    this.#showSplit(step);
    setText(this.#note, step.error !== "" ? `failed: ${step.error}` : step.isWhole ? "" : "recorded in part");
    timeline.canvas.setAttribute("aria-label", `Timeline of step ${step.number}, ${this.#split.getAttribute("aria-label") ?? ""}`);
  }

  #showSplit({ split }: RecordedStep): void {
    const all = PARTS.reduce((sum, [part]) => sum + split[part], 0);
    const shown = PARTS.filter(([part]) => split[part] > 0 && split[part] / all >= 0.001);
    this.#split.replaceChildren(...shown.map(([part, name]) => {
      const share = split[part] / all;
      const text = `${name} ${shareText(share)}`;
      return make("span", { class: `fs-split-${name.toLowerCase()}`, style: `flex-grow: ${share}`, title: `${text}: ${duration(split[part] / 1e9)}` }, text);
    }));
    this.#split.setAttribute("aria-label", shown.map(([part, name]) => `${name} ${shareText(split[part] / all)}`).join(", "));
  }

  /** Slices have the colour of their node's share. */
  #color(): void {
    const { trace, timeline } = this.#view;
    const shares = new Map<string, number>();
    trace.heat?.ops.forEach((made, i) => shares.set(made.join(), trace.heat?.time[i] ?? 0));
    timeline.setShares((trace.recording?.nodes ?? []).map(({ ops }) => shares.get(ops.join()) ?? 0));
  }

  /** Marks the slices of what is selected, and brings one into sight where that was selected elsewhere. */
  #mark(isOther = false): void {
    const { trace, timeline, selection, store } = this.#view;
    const { box } = selection;
    const nodes = trace.recording?.nodes ?? [];
    const isIn = box === null ? () => false : this.#within(box);
    const marked = Uint8Array.from(nodes, ({ ops }) => (ops.some(isIn) ? 1 : 0));
    timeline.mark(box === null ? null : marked, store.iteration);
    if (isOther && !this.#isChoosing && box !== null) timeline.reveal((node) => marked[node] === 1);
  }

  #within(box: string): (op: number) => boolean {
    const { model } = this.#view;
    const [id, path] = [opOf(box), pathOf(box)];
    if (id !== null) return (op) => op === id;
    return (op) => model.nodes.has(op) && path !== null && model.tree.ancestry(model.tree.homeOf(op).path).includes(path);
  }

  #chose(slices: Slices, at: number): void {
    const { trace, navigation, store, model, timeline, root } = this.#view;
    const { recording } = trace;
    if (!recording) return;
    this.#questions.pin();
    const node = recording.nodes[recording.spans.node[slices.span[at] ?? -1] ?? -1];
    const op = node ? opOfNode(node, (id) => model.nodes.get(id)?.name) : null;
    this.#isChoosing = true;
    store.chooseIteration(iterationOf(recording, slices, at), root);
    if (op !== null) navigation.go(opBox(op));
    this.#isChoosing = false;
    const { title, lines } = sliceCard(recording, slices, at, at, timeline.origin_ns);
    setText(this.#speech, [title, ...lines].join(", "));
  }

  #hover(event: PointerEvent | null): void {
    const { timeline, trace } = this.#view;
    const { recording } = trace;
    const hit = event && timeline.hit(event.offsetX, event.offsetY);
    timeline.canvas.title = event ? timeline.nameAt(event.offsetX, event.offsetY) : "";
    this.#card.hidden = !hit || !recording;
    if (!hit || !recording) return;
    this.#fill(sliceCard(recording, hit.slices, hit.first, hit.last, timeline.origin_ns), this.#moreOf(hit.slices, hit.first, hit.last));
    const { clientWidth, clientHeight } = timeline.canvas;
    const [w, h] = [this.#card.offsetWidth, this.#card.offsetHeight];
    const x = event.offsetX + 14 + w > clientWidth ? event.offsetX - 14 - w : event.offsetX + 14;
    this.#card.style.left = `${Math.max(4, x)}px`;
    this.#card.style.top = `${Math.max(2, Math.min(event.offsetY + 12, clientHeight - h - 2))}px`;
  }

  /** What a node was made of, where that has another name, and what one run of it makes. */
  #moreOf(slices: Slices, first: number, last: number): string[] {
    const { trace, model } = this.#view;
    const node = first === last ? trace.recording?.nodes[trace.recording.spans.node[slices.span[first] ?? -1] ?? -1] : undefined;
    if (!node) return [];
    const own = opOfNode(node, (op) => model.nodes.get(op)?.name);
    const name = own === null ? undefined : model.nodes.get(own)?.name;
    const key = node.ops.join();
    const bytes = trace.heat?.bytes[trace.heat.ops.findIndex((made) => made.join() === key)] ?? 0;
    return [...(name !== undefined && name !== node.name ? [`of ${name}`] : []), ...(bytes > 0 ? [`makes ${bytesText(bytes)}`] : [])];
  }

  #fill({ title, lines }: SliceCard, more: readonly string[]): void {
    this.#card.replaceChildren(make("strong", {}, title), ...[...lines, ...more].map((line) => make("div", {}, line)));
  }
}

export const timelinePanel: Panel = {
  id: "timeline", title: "Timeline", region: "panels", order: 60, least: { w: 360, h: 170 },
  make: (view) => new TimelinePanel(view).element,
};
