/** What was recorded of the graph's steps, as far as the kernel has told it: for timeline, table, heat and lines. */
import type { Spans as ToldSpans, TraceState } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import { heatOf, type Heat } from "./heat.js";
import { recordingOf, stepOf, type RecordedStep, type Recording } from "./recording.js";
import { Signal } from "./signal.js";

export class TraceModel {
  /** "state": steps and heat; "spans": what ran in a step. */
  readonly changed = new Signal<"state" | "spans">();
  readonly #model: GraphModel;
  #state: TraceState | null = null;
  #steps: readonly RecordedStep[] = [];
  #heat: Heat | null = null;
  #recording: Recording | null = null;
  #awaited = 0;

  constructor(model: GraphModel) {
    this.#model = model;
  }

  /** What was asked for last. */
  get recording(): Recording | null {
    return this.#recording;
  }

  /** The steps whose spans can be asked for, the oldest first. */
  get steps(): readonly RecordedStep[] {
    return this.#steps;
  }

  /** What the nodes of all recorded steps cost; null where none was recorded. */
  get heat(): Heat | null {
    return this.#heat;
  }

  /** Steps that were recorded so far. */
  get traced(): number {
    return this.#state?.traced_steps ?? 0;
  }

  /** Grows with everything that is recorded. */
  get version(): number {
    return this.#state?.version ?? 0;
  }

  /** Whether steps are recorded now. */
  get isRecording(): boolean {
    return (this.#state?.steps_per_s ?? 0) > 0;
  }

  /** Takes what a message tells; what a snapshot does not tell is gone. */
  takeState(state: TraceState | null): void {
    this.#state = state;
    this.#steps = state?.steps.map(stepOf) ?? [];
    this.#heat = state && state.heat.rows > 0 ? heatOf(state.heat, this.#model.nodes, (id) => this.#model.ownId(id)) : null;
    if (!state) this.#recording = null;
    this.changed.emit("state");
    if (!state) this.changed.emit("spans");
  }

  /** Returns the number of a new question: only the answer to the latest one counts. */
  await(): number {
    return ++this.#awaited;
  }

  takeSpans(told: ToldSpans): void {
    if (told.request_id !== this.#awaited) return;
    this.#recording = recordingOf(told, (id) => this.#model.ownId(id)) ?? this.#recording;
    this.changed.emit("spans");
  }
}
