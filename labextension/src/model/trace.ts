/** What was recorded of the graph's steps, and what its nodes cost now: for timeline, table, heat and lines. */
import type { Heat } from "./heat.js";
import type { Recording } from "./recording.js";
import { Signal } from "./signal.js";

export class TraceModel {
  readonly changed = new Signal<"recording" | "heat">();
  #recording: Recording | null = null;
  #heat: Heat | null = null;
  #isRecording = false;

  get recording(): Recording | null {
    return this.#recording;
  }

  /** Whether steps are recorded now. */
  get isRecording(): boolean {
    return this.#isRecording;
  }

  /** The newest shares: of what runs, else of the recording. */
  get heat(): Heat | null {
    return this.#heat;
  }

  takeRecording(recording: Recording | null): void {
    this.#recording = recording;
    this.#heat = recording && heatOf(recording);
    this.changed.emit("recording");
    this.changed.emit("heat");
  }

  takeHeat(heat: Heat): void {
    this.#heat = heat;
    this.changed.emit("heat");
  }

  setRecording(isRecording: boolean): void {
    if (isRecording === this.#isRecording) return;
    this.#isRecording = isRecording;
    this.changed.emit("heat");
  }
}

/** The shares that the totals of a recording are of its steps. */
export function heatOf({ nodes, totals, traced_ns: traced }: Recording): Heat {
  const most = totals.bytes.reduce((sum, bytes) => sum + bytes, 0);
  return {
    ops: nodes.map(({ ops }) => ops), count: totals.count,
    time: totals.self_ns.map((ns) => (traced > 0 ? ns / traced : 0)),
    memory: totals.bytes.map((bytes) => (most > 0 ? bytes / most : 0)),
  };
}
