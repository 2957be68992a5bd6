/** "Why is it slow?": what takes the time of a step, with evidence; each finding leads to its box. It is asked for while the panel is open. */
import { shareText } from "../model/figures.js";
import { headText } from "../model/findings.js";
import { opBox } from "../model/ids.js";
import type { SlowFinding } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";
import { ProgramChoice } from "./program_choice.js";

const TOPICS = { operation: "One operation", copies: "Copies", waiting: "Waiting", python: "Python between steps", plans: "Plans made again" } as const;
/** What is traced goes on while it is looked at. */
const REFRESH_MS = 1000;

class SlowPanel {
  readonly element = make("section", { class: "fs-slow", "data-testid": "fs-slow", "aria-label": "Why is it slow?" });
  readonly #view: ViewContext;
  readonly #head = make("p", { class: "fs-note", role: "status", "data-testid": "fs-slow-head" });
  readonly #list = make("ol", { class: "fs-slow-list", "aria-label": "Findings", "data-testid": "fs-findings" });
  #shown = "";
  #findings: readonly SlowFinding[] = [];

  constructor(view: ViewContext) {
    this.#view = view;
    this.element.append(new ProgramChoice(view).element, this.#head, this.#list);
    this.#list.addEventListener("click", ({ target }) => this.#onClick(target), { signal: view.until });
  }

  update(): void {
    const { findings, trace, session, drawers } = this.#view;
    if (!drawers.isOpen("why-slow")) return findings.forget();
    const wish = session.isAnswered && trace.version > 0 ? findings.question(trace.program?.number ?? 0, trace.version, performance.now()) : null;
    if (wish !== null) session.ask("ask_findings", wish, (answer) => findings.take(answer));
    this.#show();
  }

  #show(): void {
    const { findings, trace } = this.#view;
    const { answer } = findings;
    setText(this.#head, headText(answer, trace.isRecording));
    const told = answer?.findings ?? [];
    const text = JSON.stringify(told);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#findings = told;
    this.#list.replaceChildren(...told.map((one, k) => this.#element(one, k)));
  }

  #element({ topic, share, text, advice, ops }: SlowFinding, row: number): HTMLElement {
    const bar = make("span", { class: "fs-share", "aria-hidden": "true" });
    bar.style.width = `${Math.round(share * 100)}%`;
    const title = ops.length > 0 ? "Show its box" : "Show it in the timeline";
    return make(
      "li", {}, make("button", { type: "button", "data-row": String(row), title, ...OWN_KEYS }, make("strong", {}, shareText(share)), make("span", {}, TOPICS[topic]), bar),
      make("p", {}, `${text}.`), make("p", { class: "fs-note" }, `${advice}.`),
    );
  }

  #onClick(target: EventTarget | null): void {
    const row = (target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null)?.dataset.row;
    const found = row === undefined ? undefined : this.#findings[Number(row)];
    if (!found) return;
    const { model, navigation, drawers } = this.#view;
    const id = found.ops.map((op) => model.ownId(op)).find((op) => model.nodes.has(op));
    if (id === undefined) drawers.setOpen("timeline", true);
    else navigation.go(opBox(id));
  }
}

export const slowPanel: Panel = {
  id: "why-slow", title: "Why is it slow?", region: "panels", order: 62, least: { w: 300, h: 180 },
  make(view) {
    const { trace, session, findings, drawers, until } = view;
    const panel = new SlowPanel(view);
    const update = (): void => panel.update();
    trace.changed.connect(update, until);
    session.changed.connect(update, until);
    findings.changed.connect(update, until);
    drawers.changed.connect((id) => id === "why-slow" && update(), until);
    const timer = setInterval(() => drawers.isOpen("why-slow") && update(), REFRESH_MS);
    until.addEventListener("abort", () => clearInterval(timer), { once: true });
    return panel.element;
  },
};
