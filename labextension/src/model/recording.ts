/** A recorded step as the views read it: what ran, where and when. Times are nanoseconds since the recording's begin. */
import type { Spans as ToldSpans, StepSummary } from "../wire/messages.js";
import { column } from "../wire/tables.js";

/** Something that ran: one node of a plan, made of one or more operations of the graph. */
export interface RecordedNode {
  readonly name: string;
  readonly type: string;
  readonly device: string;
  readonly phase: string;
  /** Ids of the operations that it was made of; [] of what planning added. */
  readonly ops: readonly number[];
}

export type LaneKind = ToldSpans["lanes"][number]["kind"];

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
  /** In the engine itself. */
  readonly other_ns: number;
}

export interface RecordedStep {
  readonly number: number;
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly split: Split;
  /** What it failed with; "" for nothing. */
  readonly error: string;
  /** Whether it was recorded from its begin to its end. */
  readonly isWhole: boolean;
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
  readonly lane: ArrayLike<number>;
  /** Index of the node; -1 where no node ran, or several spans that are too narrow are told as one. */
  readonly node: ArrayLike<number>;
  /** Index of the frame; -1 outside loops. */
  readonly frame: ArrayLike<number>;
  readonly iteration: ArrayLike<number>;
  readonly begin_ns: Float64Array;
  readonly end_ns: Float64Array;
  /** How many spans it stands for. */
  readonly stands_for: ArrayLike<number>;
  /** 1 where the span lies on the critical path of its step. */
  readonly isCritical: ArrayLike<number>;
  /** In a lane of transfers how many bytes went over; -1 where that is not known, and in other lanes. */
  readonly bytes: ArrayLike<number>;
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

export interface Recording {
  readonly nodes: readonly RecordedNode[];
  readonly lanes: readonly RecordedLane[];
  readonly frames: readonly RecordedFrame[];
  readonly step: RecordedStep;
  readonly spans: Spans;
  readonly gaps: readonly Gap[];
  readonly memory: MemoryCurve;
  /** The part of the step that is told. */
  readonly begin_ns: number;
  readonly end_ns: number;
}

const NS_PER_US = 1e3;

export function stepOf(told: StepSummary): RecordedStep {
  return {
    number: told.number, begin_ns: told.begin_us * NS_PER_US, end_ns: told.end_us * NS_PER_US, error: told.error, isWhole: told.is_whole,
    split: {
      compute_ns: told.compute_us * NS_PER_US, copies_ns: told.copies_us * NS_PER_US, waits_ns: told.waits_us * NS_PER_US,
      python_ns: told.python_us * NS_PER_US, other_ns: told.other_us * NS_PER_US,
    },
  };
}

/** The answer to a question for spans; null where nothing is kept of the step. `ours` gives the views' numbers of operations. */
export function recordingOf(told: ToldSpans, ours: (id: number) => number): Recording | null {
  if (!told.step) return null;
  const { spans, memory } = told;
  const times = (name: string): Float64Array => Float64Array.from(column(spans, name), (us) => us * NS_PER_US);
  return {
    nodes: told.nodes.map(({ name, type, device, phase, operations }) => ({ name, type, device, phase, ops: operations.map(ours) })),
    lanes: told.lanes, frames: framesOf(told), step: stepOf(told.step),
    spans: {
      count: spans.rows, lane: column(spans, "lane"), node: column(spans, "node"), frame: column(spans, "frame"),
      iteration: column(spans, "iteration"), begin_ns: times("begin_us"), end_ns: times("end_us"),
      stands_for: column(spans, "count"), isCritical: column(spans, "critical"), bytes: column(spans, "nbytes"),
    },
    gaps: told.gaps.map(({ begin_us, end_us, why }) => ({ begin_ns: begin_us * NS_PER_US, end_ns: end_us * NS_PER_US, what: why })),
    memory: {
      at_ns: Float64Array.from(column(memory, "time_us"), (us) => us * NS_PER_US), bytes: Float64Array.from(column(memory, "nbytes")),
    },
    begin_ns: told.begin_us * NS_PER_US, end_ns: told.end_us * NS_PER_US,
  };
}

function framesOf({ frames, nodes }: ToldSpans): RecordedFrame[] {
  const found: RecordedFrame[] = [];
  const [loop, parent, iteration] = ["loop", "parent", "iteration"].map((name) => column(frames, name));
  for (let i = 0; i < frames.rows; i++) {
    // A loop's frame has the name of its scope: "inner" of "outer/body/inner/Loop".
    const name = nodes[loop?.[i] ?? -1]?.name.replace(/\/Loop$/, "").replace(/^.*\//, "") ?? "";
    const around = found[parent?.[i] ?? -1];
    found.push(around ? { path: `${around.path}:${iteration?.[i] ?? 0}/${name}`, depth: around.depth + 1 } : { path: name, depth: 0 });
  }
  return found;
}

/** Whether every span is told as itself: none need be asked for when more of a part is to be seen. */
export function isComplete({ spans, step, begin_ns, end_ns }: Recording): boolean {
  for (let i = 0; i < spans.count; i++) if ((spans.stands_for[i] ?? 1) > 1) return false;
  return begin_ns <= step.begin_ns && end_ns >= step.end_ns;
}

/** From the first to the last thing of a step: also the user's program before it. */
export function extentOf({ step, spans }: Recording): { readonly begin_ns: number; readonly end_ns: number } {
  let { begin_ns, end_ns } = step;
  for (let i = 0; i < spans.count; i++) {
    begin_ns = Math.min(begin_ns, spans.begin_ns[i] ?? begin_ns);
    end_ns = Math.max(end_ns, spans.end_ns[i] ?? end_ns);
  }
  return { begin_ns, end_ns: Math.max(end_ns, begin_ns + 1) };
}
