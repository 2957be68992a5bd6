/** Recordings as the kernel tells them, made by hand. */
import type { Spans, StepSummary, Table, TraceNode, TraceState } from "../src/wire/messages.js";
import type { Filled } from "../src/wire/tables.js";

/** A table with its numbers; columns of whole numbers travel in 32 bits. */
export function tableOf(numbers: Readonly<Record<string, readonly number[]>>): Table {
  const names = Object.keys(numbers);
  const made: Filled = {
    rows: numbers[names[0] ?? ""]?.length ?? 0, buffer: 0, columns: names.map((name) => [name, "float64"] as const),
    numbers: Object.fromEntries(names.map((name) => [name, Float64Array.from(numbers[name] ?? [])])),
  };
  return made;
}

export function summary(number: number, begin_us: number, end_us: number): StepSummary {
  const all = end_us - begin_us;
  return {
    number, begin_us, end_us, compute_us: 0.7 * all, copies_us: 0.1 * all, waits_us: 0, python_us: 0.15 * all, other_us: 0.05 * all, spans: 0,
    error: "", is_whole: true,
  };
}

/** [lane, node, frame, iteration, begin, end] in microseconds, with how many it stands for, whether it is critical, and the bytes that went over. */
export type SpanRow = readonly [number, number, number, number, number, number, number?, number?, number?];

export function spansOf(rows: readonly SpanRow[], nodes: readonly Partial<TraceNode>[], rest: Partial<Spans> = {}): Spans {
  const column = (k: number, otherwise: number): number[] => rows.map((row) => row[k] ?? otherwise);
  const step = summary(7, Math.min(...rows.map((row) => row[4])), Math.max(...rows.map((row) => row[5])));
  return {
    kind: "spans", request_id: 1, version: 1, view: 0, step, begin_us: step.begin_us, end_us: step.end_us,
    lanes: [{ name: "/job:localhost/device:CPU:0", kind: "device" }, { name: "feeds", kind: "feeds" }],
    nodes: nodes.map((node, i) => ({ name: `n${i}`, type: "Add", operations: [i], device: "CPU:0", phase: "forward", kind: "op", ...node })),
    frames: tableOf({ loop: [], parent: [], iteration: [] }), gaps: [], memory: tableOf({ time_us: [], nbytes: [] }),
    spans: tableOf({
      lane: column(0, 0), node: column(1, -1), frame: column(2, -1), iteration: column(3, 0), begin_us: column(4, 0), end_us: column(5, 0),
      count: column(6, 1), critical: column(7, 0), nbytes: column(8, -1),
    }),
    ...rest,
  };
}

/** What is told of heat: [ids of the operations, phase, count, self, total in microseconds of a step] per node. */
export function stateOf(nodes: readonly (readonly [readonly number[], number, number, number, number])[], rest: Partial<TraceState> = {}): TraceState {
  const all = nodes.reduce((sum, [, , , self]) => sum + self, 0);
  const rows = nodes.flatMap(([ids, phase, count, self, total], node) => ids.map((id) => [id, 0, node, phase, count, self, total, self / all]));
  const names = ["id", "program", "node", "phase", "count", "self_us", "total_us", "share"];
  return {
    steps_per_s: 8, version: 1, traced_steps: 1, steps: [summary(7, 0, 100)],
    programs: [{ number: 0, name: "loss", basis: "median", steps: 1, age_s: 0 }],
    heat: tableOf(Object.fromEntries(names.map((name, k) => [name, rows.map((row) => row[k] ?? 0)]))), ...rest,
  };
}
