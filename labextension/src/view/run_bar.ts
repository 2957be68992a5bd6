/** The bar above the stage: what the session is doing, and the buttons that steer it. */
import type { RunState, SessionState } from "../wire/messages.js";
import { clock, duration, plural, rate, significant, whole } from "../model/figures.js";
import { headline, loopRate } from "../model/headline.js";
import { headScalar, scalarText } from "../model/live_notes.js";
import type { ViewState } from "../model/view_state.js";
import type { ViewContext } from "./context.js";
import { make, setText } from "./dom.js";
import { Pace } from "./pace.js";
import { drawCurve, sparkline } from "./sparkline.js";
import { stateOf } from "./state.js";
import type { Panel } from "./panel.js";

/** A longer state takes the room of figures where there is little. */
const LONG_STATE = 10;
/** A kernel that has not answered by then is busy, or gone. */
const PATIENCE_MS = 1500;
const ON_THE_WAY: readonly string[] = ["pausing", "stopping"];
const RUN_BUTTONS = ["pause", "step-op", "step-iteration", "stop"] as const;

class RunBar {
  readonly element: HTMLElement;
  readonly #state = make("span", { class: "fs-state", "data-testid": "fs-state", role: "status" });
  readonly #steps = figure("fs-steps", "steps finished");
  readonly #rate = figure("fs-rate", "steps per second; in a long step, iterations per second of its outermost loop");
  readonly #stepTime = figure("fs-step-time", "mean time of a step");
  readonly #nodes = figure("fs-nodes", "operations in the graph");
  readonly #skipped = figure("fs-skipped", "states that were not shown, because this view was busy");
  readonly #bar = make("div", { class: "fs-progress-bar", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" }, make("div"));
  readonly #progressText = make("span", { class: "fs-progress-text" });
  readonly #progress = make("span", { class: "fs-progress", "data-testid": "fs-progress" }, this.#progressText, this.#bar);
  readonly #scalarText = make("span");
  readonly #curve = sparkline();
  readonly #scalar = make("span", { class: "fs-scalar", "data-testid": "fs-scalar" }, this.#scalarText, this.#curve);
  readonly #eta = figure("fs-eta", "time left");
  readonly #now = make("span", { class: "fs-now" });
  readonly #message = make("span", { class: "fs-message", "data-testid": "fs-message", role: "status" });
  readonly #note = make("span", { class: "fs-note", "data-testid": "fs-control" });
  readonly #view: ViewContext;
  readonly #pace: Pace;
  #session: SessionState | null = null;
  /** Whether it was waited long enough for the kernel's first answer. */
  #isPatient = false;

  constructor(view: ViewContext) {
    this.#view = view;
    const waiting = setTimeout(() => {
      this.#isPatient = true;
      this.#show();
    }, PATIENCE_MS);
    view.until.addEventListener("abort", () => clearTimeout(waiting), { once: true });
    this.#pace = new Pace(view);
    const buttons = make(
      "span", { class: "fs-buttons", role: "group", "aria-label": "Run" },
      ...RUN_BUTTONS.map((id) => view.commands.button(id)), this.#pace.element,
    );
    this.element = make(
      "div", { class: "fs-bar", "data-testid": "fs-bar" }, this.#state, buttons, this.#steps, this.#rate, this.#stepTime, this.#now,
      this.#eta, this.#nodes, make("span", { class: "fs-buttons" }, view.commands.button("find"), view.commands.button("panel")),
    );
    this.#now.append(this.#scalar, this.#progress, this.#message, this.#note, this.#skipped);
  }

  /** Shows the link to the session: whether it hears, and what was said. */
  updateLink(): void {
    const { message, isLasting } = this.#view.session;
    this.#show();
    this.element.classList.toggle("fs-says", message !== "" && isLasting);
    setText(this.#message, message);
    this.#message.title = message;
  }

  /** What is said stays until the session has got where it was going; a problem stays longer. */
  #forgetMessage(session: SessionState | null): void {
    const isThere = session?.state !== this.#session?.state && !ON_THE_WAY.includes(session?.state ?? "");
    if (isThere && !this.#view.session.isLasting) this.#view.session.say("", false);
  }

  update(): void {
    const { session } = this.#view.model;
    this.#forgetMessage(session);
    this.#session = session;
    this.#show();
  }

  #show(): void {
    const { model } = this.#view;
    const { session } = model;
    const shown = stateOf(this.#view);
    const { kind, text, isGoing } = shown;
    this.#state.dataset.state = kind;
    setText(this.#state, text);
    this.#state.title = shown.why || text;
    this.element.classList.toggle("fs-tells", text.length > LONG_STATE);
    setText(this.#steps, session ? plural(session.steps, "step") : "");
    setText(this.#rate, session?.steps_per_s == null ? loopRate(model.run, isGoing) : rate(session.steps_per_s));
    setText(this.#stepTime, session?.step_time_s == null ? "" : `${duration(session.step_time_s)}/step${session.is_simulated ? ", wall" : ""}`);
    this.#stepTime.title = session?.is_simulated ? "mean time of a step by the wall clock of this machine; simulated devices have a clock of their own" : "mean time of a step";
    this.#showScalar(session);
    setText(this.#skipped, model.skipped > 0 ? `${whole(model.skipped)} skipped` : "");
    setText(this.#nodes, plural(model.nodes.size, "op"));
    const why = kind === "closed" || (kind === "lost" && this.#isPatient) ? shown.why : "";
    setText(this.#note, why || (session && model.control === "between cells" ? "buttons act between cells" : ""));
    this.#note.title = why;
    this.#showProgress(session, model.run, shown);
    this.#pace.update();
  }

  #showScalar(session: SessionState | null): void {
    // A number of the present says nothing of the past that is shown.
    const found = this.#view.store.step === null ? headScalar(session?.scalars ?? []) : null;
    this.#scalar.hidden = found === null;
    if (!found) return;
    setText(this.#scalarText, scalarText(found));
    this.#scalar.title = `${found.name}, as steps have fetched it lately, or a summary has it`;
    drawCurve(this.#curve, matchMedia("(prefers-reduced-motion: reduce)").matches ? [] : found.curve);
  }

  #showProgress(session: SessionState | null, run: RunState | null, shown: ViewState): void {
    const told = headline(session, run, shown);
    this.#progress.hidden = told === null;
    setText(this.#eta, told?.left_s == null ? "" : `ETA ${clock(told.left_s)}`);
    if (!told) return;
    const { text, share } = told;
    setText(this.#progressText, text);
    this.#progressText.title = text;
    this.#bar.hidden = share === null;
    this.#bar.setAttribute("aria-valuenow", significant((share ?? 0) * 100));
    this.#bar.setAttribute("aria-label", text);
    (this.#bar.firstElementChild as HTMLElement).style.width = `${(share ?? 0) * 100}%`;
  }
}

function figure(testId: string, meaning: string): HTMLElement {
  return make("span", { class: "fs-figure", "data-testid": testId, title: meaning });
}

export const runBarPanel: Panel = {
  id: "run-bar", title: "What the session is doing", region: "top", order: 10,
  make(view) {
    const bar = new RunBar(view);
    view.model.changed.connect(() => bar.update(), view.until);
    view.session.changed.connect(() => bar.updateLink(), view.until);
    view.debug.changed.connect(() => bar.update(), view.until);
    view.store.changed.connect(({ what }) => what === "step" && bar.update(), view.until);
    bar.update();
    return bar.element;
  },
};
