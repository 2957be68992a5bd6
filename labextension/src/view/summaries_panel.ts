/** Summaries while the program runs: a chart per tag with a curve per run, histograms over steps, pictures and texts. */
import { significant } from "../model/figures.js";
import { byTag, chartOf, chartText, histogramNote, histogramText, imageText, levelsOf, runNames, stateText, textNote, type Chart, type Group } from "../model/summaries.js";
import { heatColor } from "../render/heat_map.js";
import { deviceColor } from "../render/theme.js";
import type { HistogramSeries, ImageSeries, ScalarSeries, Summaries, TextSeries } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

/** While a program writes, what is shown follows so often. */
const REFRESH_MS = 400;
const NS = "http://www.w3.org/2000/svg";
const EMPTY = "No summaries yet. Write some: writer = fs.summary.FileWriter(\u201clogs\u201d), and in each step writer.add_summary(sess.run(fs.summary.merge_all()), step). FileWriter(None) shows them here alone.";

class SummariesPanel {
  readonly element = make("section", { class: "fs-summaries", "data-testid": "fs-summaries", "aria-label": "Summaries" });
  readonly #view: ViewContext;
  readonly #state = make("span", { class: "fs-note", "data-testid": "fs-summaries-state" });
  readonly #runs = make("ul", { class: "fs-runs", "aria-label": "Runs" });
  readonly #log = make("input", { type: "checkbox", ...OWN_KEYS });
  readonly #across = make("select", { "aria-label": "Horizontal axis", ...OWN_KEYS }, make("option", { value: "step" }, "by step"), make("option", { value: "time" }, "by time"));
  readonly #empty = make("p", { class: "fs-empty", role: "status" }, EMPTY);
  readonly #charts = make("div", { class: "fs-charts" });
  readonly #slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "Step of pictures and texts", "data-testid": "fs-summaries-slider", ...OWN_KEYS });
  readonly #step = make("output", { "data-testid": "fs-summaries-step" });
  readonly #line: HTMLElement;
  readonly #moments = make("div", { class: "fs-charts" });
  readonly #controls: HTMLElement;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #askedAt_ms = -Infinity;
  #drawn = "";
  /** Pictures and texts stay as they are, scrolled and chosen, until others are told. */
  #kept = new Map<string, HTMLElement>();
  #answer: unknown = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { until, summaries } = view;
    this.#controls = make("span", { class: "fs-summaries-controls" }, this.#across, make("label", {}, this.#log, "log scale"));
    const head = make(
      "div", { class: "fs-debug-head" }, this.#controls, this.#runs, this.#state,
    );
    this.#line = make("div", { class: "fs-past-line" }, this.#slider, this.#step);
    this.element.append(head, this.#empty, this.#charts, this.#line, this.#moments);
    const on = (element: HTMLElement, name: string, act: () => void): void => element.addEventListener(name, act, { signal: until });
    on(this.#log, "change", () => summaries.setLog(this.#log.checked));
    on(this.#across, "change", () => summaries.setAcross(this.#across.value === "time" ? "time" : "step"));
    on(this.#slider, "input", () => summaries.chooseRow(Number(this.#slider.value)));
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  update(): void {
    const { summaries } = this.#view;
    const { state, answer } = summaries;
    this.#ask();
    this.#empty.hidden = state !== null;
    this.#controls.hidden = this.#runs.hidden = this.#state.hidden = this.#charts.hidden = this.#moments.hidden = state === null;
    setText(this.#state, state ? stateText(state, answer?.left_out ?? 0) : "");
    this.#log.checked = summaries.isLog;
    const { steps, row } = summaries;
    this.#line.hidden = steps.length < 2;
    this.#slider.max = String(Math.max(0, steps.length - 1));
    this.#slider.value = String(row);
    const text = `step ${steps[row] ?? ""}${row === steps.length - 1 ? ", the newest" : ""}`;
    setText(this.#step, text);
    this.#slider.setAttribute("aria-valuetext", text);
    const drawn = `${summaries.isLog} ${summaries.across}`;
    if (answer === this.#answer && drawn === this.#drawn) return;
    [this.#answer, this.#drawn] = [answer, drawn];
    if (answer) this.#draw(answer);
  }

  #draw(answer: Summaries): void {
    const { summaries, stage } = this.#view;
    const { runs } = summaries;
    const names = runNames(runs);
    const color = (run: string): string => deviceColor(runs.indexOf(run));
    this.#runs.replaceChildren(...runs.map((run) => {
      const key = make("span", { "aria-hidden": "true" });
      key.style.background = color(run);
      return make("li", { title: run === "" ? "a writer without a folder" : run }, key, names.get(run) ?? run);
    }));
    const told = (run: string): string => (runs.length > 1 ? `${names.get(run) ?? run}, ` : "");
    this.#charts.replaceChildren(
      ...byTag(answer.scalars).map((group) => curves(group, chartOf(group.series, summaries.across, summaries.isLog), names, color)),
      ...answer.histograms.map((one) => spread(one, told(one.run), (level) => heatColor(level, stage.theme))),
    );
    const moments = [...answer.images, ...answer.texts].map((one): [string, HTMLElement] => {
      const [key, run] = [JSON.stringify(one), told(one.run)];
      return [key, this.#kept.get(key) ?? ("texts" in one ? texts(one, run) : picture(one, run))];
    });
    const before = [...this.#kept.keys()];
    this.#kept = new Map(moments);
    if (before.join() !== [...this.#kept.keys()].join()) this.#moments.replaceChildren(...this.#kept.values());
  }

  /** Asks for what is new, and while a program writes again and again. */
  #ask(): void {
    const { summaries, session } = this.#view;
    const question = summaries.question();
    if (question === null || !session.isHeard) return;
    clearTimeout(this.#timer);
    const wait = this.#askedAt_ms + REFRESH_MS - performance.now();
    if (wait > 0) this.#timer = setTimeout(() => this.update(), wait);
    else {
      this.#askedAt_ms = performance.now();
      session.ask("ask_summaries", { request_id: summaries.await(question), ...question }, (told) => summaries.take(told));
    }
  }
}

function figure(tag: string, note: string, ...inside: readonly Node[]): HTMLElement {
  return make("figure", { "data-tag": tag }, make("figcaption", {}, make("b", { title: tag }, tag), make("span", {}, note)), ...inside);
}

function curves({ tag }: Group<ScalarSeries>, chart: Chart, names: ReadonlyMap<string, string>, color: (run: string) => string): HTMLElement {
  const svg = document.createElementNS(NS, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 1000 1000", preserveAspectRatio: "none", role: "img", "aria-label": chartText(tag, chart, names) })) svg.setAttribute(name, value);
  const path = (name: string, d: string, stroke = ""): void => {
    const made = document.createElementNS(NS, "path");
    made.setAttribute("class", name);
    made.setAttribute("d", d);
    made.style.stroke = stroke;
    svg.append(made);
  };
  const far = (share: number): string => (1000 * share).toFixed(1);
  path("fs-chart-grid", [...chart.down.map(({ at }) => `M0 ${far(at)}h1000`), ...chart.across.map(({ at }) => `M${far(at)} 0v1000`)].join(""));
  for (const { run, lines, wrong } of chart.curves) {
    path("fs-chart-wrong", wrong.map((at) => `M${far(at)} 0v1000`).join(""));
    path("fs-chart-curve", lines.map((line) => `M${line.map(([x, y]) => `${far(x)} ${far(y)}`).join("L")}${line.length === 1 ? "h0" : ""}`).join(""), color(run));
  }
  const marks = [...chart.down.map(({ at, text }) => ["down", "top", at, text] as const), ...chart.across.map(({ at, text }) => ["across", "left", at, text] as const)];
  const plot = make("div", { class: "fs-chart" }, ...marks.map(([name, side, at, text]) => {
    const mark = make("span", { class: `fs-chart-${name}`, "aria-hidden": "true" }, text);
    mark.style.setProperty(side, `${100 * at}%`);
    return mark;
  }));
  plot.append(svg);
  const last = chart.curves.map(({ last: value }) => significant(value)).join(" \u00b7 ");
  return figure(tag, `${last}${chart.isLog ? ", log" : ""}`, plot);
}

/** Steps from left to right, values from below; the darker, the more of the numbers lie there. */
function spread(series: HistogramSeries, run: string, color: (level: number) => string): HTMLElement {
  const { tag, bins, low, high } = series;
  const { columns, levels } = levelsOf(series);
  const note = histogramText(series);
  const canvas = make("canvas", { class: "fs-spread", width: String(columns), height: String(bins), role: "img", "aria-label": `${tag}: ${note}` });
  const ctx = canvas.getContext("2d");
  levels.forEach((level, k) => {
    if (!ctx) return;
    ctx.fillStyle = color(level);
    ctx.fillRect(k % columns, Math.floor(k / columns), 1, 1);
  });
  const ends = [[high, 0], [low, 100]].map(([value = 0, at = 0]) => {
    const mark = make("span", { class: "fs-chart-down", "aria-hidden": "true" }, significant(value));
    mark.style.top = `${at}%`;
    return mark;
  });
  return figure(tag, `${run}${histogramNote(series)}`, make("div", { class: "fs-chart", title: `${run}${note}` }, ...ends, canvas));
}

function picture(series: ImageSeries, run: string): HTMLElement {
  const { tag, data } = series;
  const note = imageText(series);
  const shown = data === "" ? [] : [make("img", { src: `data:image/png;base64,${data}`, alt: `${tag}, ${note}` })];
  return figure(tag, `${run}${note}`, ...shown);
}

function texts(series: TextSeries, run: string): HTMLElement {
  return figure(series.tag, `${run}${textNote(series)}`, ...series.texts.map((text) => make("pre", { tabindex: "0" }, text)));
}

export const summariesPanel: Panel = {
  id: "summaries", title: "Summaries", region: "panels", order: 96, least: { w: 280, h: 170 }, shuts: "Close the summaries",
  make(view) {
    const { model, session, summaries, drawers, until } = view;
    const panel = new SummariesPanel(view);
    const update = (): void => {
      if (drawers.isOpen("summaries")) panel.update();
    };
    model.changed.connect(({ fresh }) => {
      if (fresh) summaries.forget();
      update();
    }, until);
    session.changed.connect(update, until);
    summaries.changed.connect(update, until);
    drawers.changed.connect((id) => id === "summaries" && update(), until);
    return panel.element;
  },
};
