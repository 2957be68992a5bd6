/** The bar above the stage: what the session is doing, and the buttons that steer it. */
import type { Command, SessionState } from "../wire/messages.js";
import type { GraphModel } from "../model/graph.js";
import { clock, duration, plural, rate, significant, whole } from "../model/figures.js";
import { button, icon, make, setText } from "./dom.js";
import { Stepping, type FollowActions } from "./stepping.js";

export type SendCommand = (name: Command["name"], value?: Command["value"]) => void;

const STATE_TEXT: Readonly<Record<SessionState["state"], string>> = {
  idle: "idle", running: "running", pausing: "pausing\u2026", paused: "paused", stopping: "stopping\u2026",
  stopped: "stopped", closed: "closed",
};

const CAN_PAUSE: readonly string[] = ["running", "idle", "stopped"];
const ON_THE_WAY: readonly string[] = ["pausing", "stopping"];
const CAN_STOP: readonly string[] = ["running", "pausing", "paused"];

export class RunBar {
  readonly element: HTMLElement;
  readonly #state = make("span", { class: "fs-state", "data-testid": "fs-state", role: "status" });
  readonly #steps = figure("fs-steps", "steps finished");
  readonly #rate = figure("fs-rate", "steps per second");
  readonly #stepTime = figure("fs-step-time", "mean time of a step");
  readonly #nodes = figure("fs-nodes", "operations in the graph");
  readonly #skipped = figure("fs-skipped", "states that were not shown, because this view was busy");
  readonly #bar = make("div", { class: "fs-progress-bar", role: "progressbar" }, make("div"));
  readonly #progressText = make("span", { class: "fs-progress-text" });
  readonly #progress = make("span", { class: "fs-progress", "data-testid": "fs-progress" }, this.#progressText, this.#bar);
  readonly #eta = figure("fs-eta", "time left");
  readonly #message = make("span", { class: "fs-message", "data-testid": "fs-message", role: "status" });
  readonly #note = make("span", { class: "fs-note", "data-testid": "fs-control" });
  readonly #pause: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  readonly #stepping: Stepping;
  #model: GraphModel | null = null;
  #isPaused = false;
  #isHeard = false;
  #session: SessionState | null = null;
  /** What is said stays until the session has got where it was going; a problem stays longer. */
  #isLasting = false;
  readonly #none: string;

  constructor(send: SendCommand | null, actions: FollowActions, until: AbortSignal) {
    this.#none = send ? "no session" : "saved";
    this.#pause = button("Pause", "pause", () => send?.(this.#isPaused ? "resume" : "pause"), until);
    this.#stop = button("Stop", "stop", () => send?.("stop"), until);
    this.#stepping = new Stepping(send, actions, until);
    const buttons = make(
      "span", { class: "fs-buttons", role: "group", "aria-label": "Run" }, this.#pause, ...this.#stepping.buttons, this.#stop,
      this.#stepping.pace,
    );
    this.element = make(
      "div", { class: "fs-bar" }, this.#state, buttons, this.#steps, this.#rate, this.#stepTime,
      this.#progress, this.#eta, this.#note, this.#message, this.#skipped, this.#nodes,
    );
  }

  /** Says where a step is held; stands on the stage. */
  get position(): HTMLElement {
    return this.#stepping.position;
  }

  /** Whether commands are heard now. */
  setHeard(isHeard: boolean): void {
    this.#isHeard = isHeard;
    this.#showButtons(this.#session);
    if (this.#model) this.#stepping.update(this.#model, isHeard);
  }

  say(text: string, isLasting: boolean): void {
    this.#isLasting = isLasting;
    setText(this.#message, text);
    this.#message.title = text;
  }

  update(model: GraphModel): void {
    const session = model.session;
    this.#model = model;
    const isThere = session?.state !== this.#session?.state && !ON_THE_WAY.includes(session?.state ?? "");
    if (isThere && !this.#isLasting) this.say("", false);
    this.#session = session;
    const state = session?.state ?? "none";
    this.#state.dataset.state = state;
    this.element.classList.toggle("fs-with-progress", session?.progress != null);
    setText(this.#state, session ? STATE_TEXT[session.state] : this.#none);
    setText(this.#steps, session ? plural(session.steps, "step") : "");
    setText(this.#rate, session?.steps_per_s == null ? "" : rate(session.steps_per_s));
    setText(this.#stepTime, session?.step_time_s == null ? "" : `${duration(session.step_time_s)}/step`);
    setText(this.#skipped, model.skipped > 0 ? `${whole(model.skipped)} skipped` : "");
    setText(this.#nodes, plural(model.nodes.size, "op"));
    setText(this.#note, session && model.control === "between cells" ? "buttons act between cells" : "");
    this.#showProgress(session);
    this.#showButtons(session);
    this.#stepping.update(model, this.#isHeard);
  }

  #showProgress(session: SessionState | null): void {
    const progress = session?.progress ?? null;
    this.#progress.hidden = progress === null;
    const isDone = progress !== null && progress.done === progress.total;
    setText(this.#eta, progress?.eta_s == null || isDone ? "" : `ETA ${clock(progress.eta_s)}`);
    if (!progress) return;
    const { description, done, total } = progress;
    const count = total === null ? whole(done) : `${whole(done)}/${whole(total)}`;
    const share = total ? Math.min(1, done / total) : 0;
    setText(this.#progressText, description ? `${description} ${count}` : count);
    this.#bar.hidden = total === null;
    this.#bar.setAttribute("aria-valuemin", "0");
    this.#bar.setAttribute("aria-valuemax", "100");
    this.#bar.setAttribute("aria-valuenow", significant(share * 100));
    this.#bar.setAttribute("aria-label", description || "progress");
    (this.#bar.firstElementChild as HTMLElement).style.width = `${share * 100}%`;
  }

  #showButtons(session: SessionState | null): void {
    const state = session?.state ?? "none";
    const isPaused = state === "paused" || state === "pausing";
    if (isPaused !== this.#isPaused) {
      const label = isPaused ? "Continue" : "Pause";
      this.#pause.setAttribute("aria-label", label);
      this.#pause.title = label;
      this.#pause.replaceChildren(icon(isPaused ? "play" : "pause"));
    }
    this.#isPaused = isPaused;
    this.#pause.disabled = !this.#isHeard || !(isPaused || CAN_PAUSE.includes(state));
    this.#stop.disabled = !this.#isHeard || !CAN_STOP.includes(state);
  }

  /** What the keys "." and ">" do. */
  step(what: "op" | "iteration"): void {
    this.#stepping.step(what);
  }

  /** What the Space key does. */
  togglePause(): void {
    if (!this.#pause.disabled) this.#pause.click();
  }
}

function figure(testId: string, meaning: string): HTMLElement {
  return make("span", { class: "fs-figure", "data-testid": testId, title: meaning });
}
