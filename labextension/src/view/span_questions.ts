/**
 * Asks the kernel for the spans that the timeline shows: of the chosen step, or of the newest while none is chosen; and again,
 * finer, where spans were told as one and the user zooms in.
 */
import { isComplete } from "../model/recording.js";
import type { ViewContext } from "./context.js";

/** More spans of a step are told as one where they are narrow. */
const MOST = 100_000;
/** The newest step is followed this often at most. */
const FOLLOW_MS = 500;
/** The user has stopped moving. */
const REST_MS = 150;
/** So much on either side is asked for with what is seen. */
const AROUND = 0.5;
const NS_PER_US = 1e3;

export class SpanQuestions {
  readonly #view: ViewContext;
  #askedVersion = -1;
  #askedStep: number | null = null;
  #askedAt_ms = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #resting: ReturnType<typeof setTimeout> | undefined;

  constructor(view: ViewContext) {
    this.#view = view;
    const { trace, store, drawers, timeline, until } = view;
    trace.changed.connect((what) => what === "state" && this.#follow(), until);
    store.changed.connect(({ what }) => what === "step" && this.#follow(), until);
    drawers.changed.connect((id) => id === "timeline" && this.#follow(), until);
    timeline.moved.connect(() => {
      clearTimeout(this.#resting);
      this.#resting = setTimeout(() => this.#refine(), REST_MS);
    }, until);
    until.addEventListener("abort", () => {
      clearTimeout(this.#timer);
      clearTimeout(this.#resting);
    }, { once: true });
  }

  /** From now on what is shown stays, though newer steps come. */
  pin(): void {
    const { store, trace, root } = this.#view;
    if (store.step === null && trace.recording) {
      this.#askedStep = trace.recording.step.number;
      store.chooseStep(trace.recording.step.number, root);
    }
  }

  #follow(): void {
    const { trace, store, drawers } = this.#view;
    // A step that was gone back to is seen on the boxes, too; of one that was not traced nothing can be told.
    const isSought = drawers.isOpen("timeline") || trace.steps.some(({ number }) => number === store.step);
    if (!isSought || trace.steps.length === 0) return;
    const isNew = store.step === null ? trace.version !== this.#askedVersion : store.step !== this.#askedStep;
    if (!isNew) return;
    const wait = store.step === null ? this.#askedAt_ms + FOLLOW_MS - performance.now() : 0;
    clearTimeout(this.#timer);
    if (wait > 0) this.#timer = setTimeout(() => this.#ask(), wait);
    else this.#ask();
  }

  #ask(): void {
    const { trace, store, session } = this.#view;
    [this.#askedVersion, this.#askedStep, this.#askedAt_ms] = [trace.version, store.step, performance.now()];
    session.ask("ask_spans", { request_id: trace.await(), step: store.step, begin_us: null, end_us: null, most: MOST }, (told) => trace.takeSpans(told));
  }

  /** Asks for what is seen, where more of it can be told. */
  #refine(): void {
    const { trace, timeline, session } = this.#view;
    const { recording } = trace;
    if (!recording || isComplete(recording) || !this.#view.drawers.isOpen("timeline")) return;
    const { begin_ns, end_ns } = timeline.sight;
    const around = (end_ns - begin_ns) * AROUND;
    const [from, to] = [Math.max(recording.step.begin_ns, begin_ns - around), Math.min(recording.step.end_ns, end_ns + around)];
    const isTold = recording.begin_ns <= begin_ns && recording.end_ns >= end_ns && recording.end_ns - recording.begin_ns <= 2.5 * (to - from);
    if (to <= from || isTold) return;
    session.ask("ask_spans", { request_id: trace.await(), step: recording.step.number, begin_us: from / NS_PER_US, end_us: to / NS_PER_US, most: MOST }, (told) => trace.takeSpans(told));
  }
}
