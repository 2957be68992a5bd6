/** What was recorded of the graph's steps, as far as the kernel has told it: for timeline, table, heat and lines. */
import type { ProgramState, Spans as ToldSpans, TraceState } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import { heatOf, type Heat } from "./heat.js";
import { heatOfStep, type StepHeat } from "./heat_step.js";
import { recordingOf, stepOf, type RecordedStep, type Recording } from "./recording.js";
import { Signal } from "./signal.js";

export class TraceModel {
  /** "state": steps and heat; "spans": what ran in a step. */
  readonly changed = new Signal<"state" | "spans">();
  readonly #model: GraphModel;
  #state: TraceState | null = null;
  #steps: readonly RecordedStep[] = [];
  #heat: Heat | null = null;
  /** The step that was gone back to, and what it cost, once that is told. */
  #step: number | null = null;
  #stepHeat: StepHeat | null = null;
  /** The name of the program that was chosen; null for the one that takes the most time. */
  #chosen: string | null = null;
  #toldAt_ms = 0;
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

  /** What the nodes cost in the step that was gone back to, else in a step of the program that is shown; null where none was recorded. */
  get heat(): Heat | null {
    return this.#stepHeat ?? this.#heat;
  }

  /** What is told of the step that was gone back to; null where that is the present, or nothing is told of it yet. */
  get stepHeat(): StepHeat | null {
    return this.#stepHeat;
  }

  /** Goes back to a step; null for the present. */
  goTo(step: number | null): void {
    this.#step = step;
    this.#setStepHeat();
    this.changed.emit("state");
  }

  #setStepHeat(): void {
    const recording = this.#recording;
    if (this.#step === null || (recording && recording.step.number !== this.#step)) this.#stepHeat = null;
    else if (recording) this.#stepHeat = heatOfStep(recording, this.#model.nodes);
  }

  /** The programs whose steps were recorded, those that took the most time first. */
  get programs(): readonly ProgramState[] {
    return this.#state?.programs ?? [];
  }

  /** The program whose figures are shown: the chosen one, else the first. */
  get program(): ProgramState | null {
    return this.programs.find(({ name }) => name === this.#chosen) ?? this.programs[0] ?? null;
  }

  /** How old the figures of the program that is shown are, in seconds; -1 in a recording. */
  ageAt(now_ms: number): number {
    const age_s = this.program?.age_s ?? -1;
    return age_s < 0 ? -1 : age_s + Math.max(0, now_ms - this.#toldAt_ms) / 1e3;
  }

  /** Shows the figures of another program, by its name. */
  choose(name: string): void {
    if (name === this.program?.name) return;
    this.#chosen = name;
    this.#setHeat();
    this.changed.emit("state");
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

  /** Takes what a message tells at a time; what a snapshot does not tell is gone. */
  takeState(state: TraceState | null, now_ms: number): void {
    this.#state = state;
    this.#toldAt_ms = now_ms;
    this.#steps = state?.steps.map(stepOf) ?? [];
    this.#setHeat();
    if (!state) this.#recording = this.#stepHeat = null;
    this.changed.emit("state");
    if (!state) this.changed.emit("spans");
  }

  #setHeat(): void {
    const { heat } = this.#state ?? {};
    const { program } = this;
    this.#heat = heat && program && heat.rows > 0 ? heatOf(heat, program.number, this.#model.nodes, (id) => this.#model.ownId(id)) : null;
  }

  /** Returns the number of a new question: only the answer to the latest one counts. */
  await(): number {
    return ++this.#awaited;
  }

  takeSpans(told: ToldSpans): void {
    if (told.request_id !== this.#awaited) return;
    this.#recording = recordingOf(told, (id) => this.#model.ownId(id)) ?? this.#recording;
    this.#setStepHeat();
    this.changed.emit("spans");
    if (this.#step !== null) this.changed.emit("state");
  }
}
