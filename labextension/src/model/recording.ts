/** A recording of steps as the views read it: what ran, where, when, and what it cost. Times are nanoseconds from its begin. */

/** Something that ran: one node of a plan, made of one or more operations of the graph. */
export interface RecordedNode {
  readonly name: string;
  readonly type: string;
  /** The user's line, as people read it: "cell 3, line 7"; "" where none is known. */
  readonly line: string;
  readonly scope: string;
  readonly device: string;
  /** "forward", "gradients", "updates". */
  readonly phase: string;
  /** Ids of the operations that it was made of. */
  readonly ops: readonly number[];
}

export type LaneKind = "device" | "thread" | "transfer" | "wait" | "pause" | "feeds" | "fetches" | "python";

export interface RecordedLane {
  readonly name: string;
  readonly kind: LaneKind;
}

/** How the time of a step was spent. */
export interface Split {
  readonly compute_ns: number;
  readonly copies_ns: number;
  readonly waits_ns: number;
  readonly python_ns: number;
}

export interface RecordedStep {
  readonly number: number;
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly split: Split;
}

/** A running instance of a loop that spans belong to. */
export interface RecordedFrame {
  /** Its path, as `FrameState.id` has it: "while:3/inner". */
  readonly path: string;
  /** How many frames lie around it. */
  readonly depth: number;
}

/** Spans as columns of one length. */
export interface Spans {
  readonly count: number;
  readonly lane: Int32Array;
  /** Index of the node; -1 where no node ran. */
  readonly node: Int32Array;
  /** Index of the frame; -1 outside loops. */
  readonly frame: Int32Array;
  readonly iteration: Float64Array;
  readonly begin_ns: Float64Array;
  readonly end_ns: Float64Array;
  readonly bytes: Float64Array;
  /** 1 where the span lies on the critical path of its step. */
  readonly isCritical: Uint8Array;
}

/** A time of which nothing was recorded. */
export interface Gap {
  readonly begin_ns: number;
  readonly end_ns: number;
  /** Why, for people. */
  readonly what: string;
}

/** Living bytes from a time on. */
export interface MemoryCurve {
  readonly at_ns: Float64Array;
  readonly bytes: Float64Array;
}

/** What each node cost in all that was traced, by its index. */
export interface Totals {
  readonly self_ns: Float64Array;
  /** With what ran inside of it: a loop's iterations. */
  readonly total_ns: Float64Array;
  readonly count: Float64Array;
  readonly bytes: Float64Array;
}

export interface Recording {
  readonly nodes: readonly RecordedNode[];
  readonly lanes: readonly RecordedLane[];
  readonly frames: readonly RecordedFrame[];
  readonly steps: readonly RecordedStep[];
  readonly spans: Spans;
  readonly gaps: readonly Gap[];
  readonly memory: MemoryCurve;
  readonly totals: Totals;
  /** The time of all steps that were traced, also of those that the ring has lost since: `totals` are parts of it. */
  readonly traced_ns: number;
}

/** Columns of spans that are filled by hand. */
export function spansOf(rows: readonly (readonly [lane: number, node: number, frame: number, iteration: number, begin_ns: number, end_ns: number, bytes: number, isCritical: boolean])[]): Spans {
  const column = (k: number): number[] => rows.map((row) => Number(row[k]));
  return {
    count: rows.length, lane: Int32Array.from(column(0)), node: Int32Array.from(column(1)), frame: Int32Array.from(column(2)),
    iteration: Float64Array.from(column(3)), begin_ns: Float64Array.from(column(4)), end_ns: Float64Array.from(column(5)),
    bytes: Float64Array.from(column(6)), isCritical: Uint8Array.from(column(7)),
  };
}

/** From the first to the last thing that was recorded. */
export function extentOf({ steps, spans }: Recording): { readonly begin_ns: number; readonly end_ns: number } {
  let [begin_ns, end_ns] = [Infinity, -Infinity];
  for (const step of steps) [begin_ns, end_ns] = [Math.min(begin_ns, step.begin_ns), Math.max(end_ns, step.end_ns)];
  for (let i = 0; i < spans.count; i++) {
    begin_ns = Math.min(begin_ns, spans.begin_ns[i] ?? begin_ns);
    end_ns = Math.max(end_ns, spans.end_ns[i] ?? end_ns);
  }
  return begin_ns < end_ns ? { begin_ns, end_ns } : { begin_ns: 0, end_ns: 1 };
}

/** The index of the step that a time belongs to; -1 between steps. */
export function stepAt({ steps }: Recording, at_ns: number): number {
  return steps.findIndex(({ begin_ns, end_ns }) => at_ns >= begin_ns && at_ns <= end_ns);
}
