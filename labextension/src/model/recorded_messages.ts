/** What answers a view in the place of a kernel where a page shows a recording: all it may be told is there. Pure. */
import type { Buffer } from "../wire/columns.js";
import type { AskHistory, AskSpans, FromKernel, FromView, Spans, TensorHistory, Values } from "../wire/messages.js";
import type { Packed } from "../wire/packing.js";

/** A message with its buffers, as a kernel would send it. */
export interface Told {
  readonly message: FromKernel;
  readonly buffers: readonly Buffer[];
}

/** Why nothing can be commanded. */
const NOTHING_RUNS = "this is a recording: nothing runs here";

export class RecordedMessages {
  readonly #snapshot: Told;
  /** By the number of the step. */
  readonly #spans = new Map<number, Told>();
  #newest: Told | null = null;
  /** By the names of tensors: what is told of all values, and each of them. */
  readonly #values = new Map<string, readonly [Told, Told]>();

  /** Throws where a text is of another form than `flowscope_widgets.packing` writes. */
  constructor({ message, numbers }: Packed) {
    const { messages, sizes } = (message ?? {}) as { messages?: unknown; sizes?: unknown };
    if (!Array.isArray(messages) || !Array.isArray(sizes) || messages.length !== sizes.length) throw new Error("recording: there are no messages");
    let at = 0;
    const told = (messages as FromKernel[]).map((one, k): Told => ({
      message: one,
      buffers: (sizes as number[][])[k]?.map((size) => numbers.slice(at, (at += size))) ?? [],
    }));
    const [first, ...steps] = told;
    if (first?.message.kind !== "snapshot") throw new Error("recording: there is no graph");
    this.#snapshot = first;
    for (const [k, one] of steps.entries()) {
      if (one.message.kind === "history") {
        const each = steps[k + 1];
        if (each?.message.kind !== "values") throw new Error("recording: there are no values");
        this.#values.set(one.message.tensor, [one, each]);
      }
      if (one.message.kind !== "spans") continue;
      const number = (one.message as Spans).step?.number;
      if (number !== undefined) this.#spans.set(number, one);
      this.#newest = one;
    }
  }

  /** Returns what a view's message is answered with; null for nothing. */
  answer(said: FromView): Told | null {
    if (said.kind === "connect") return forView(this.#snapshot, { view: said.view });
    if (said.kind === "command") {
      return { message: { kind: "reply", command_id: said.command_id, ok: false, message: NOTHING_RUNS, view: said.view }, buffers: [] };
    }
    if (said.kind === "ask_history") return this.#history(said);
    if (said.kind !== "ask_spans") return null;
    const found = said.step === null ? this.#newest : (this.#spans.get(said.step) ?? this.#newest);
    return found && forView(found, { view: said.view, request_id: said.request_id });
  }

  #history({ tensor, row, request_id, view }: AskHistory): Told {
    const found = this.#values.get(tensor);
    const empty = new ArrayBuffer(0);
    if (!found) {
      const error = `the recording has no values of "${tensor}"`;
      return { message: { kind: "history", request_id, error, version: 0, tensor, values: { rows: 0, buffer: 0, columns: [] }, shown: null, view }, buffers: [empty] };
    }
    const [all, each] = found;
    const value = row === null ? undefined : (each.message as Values).values[row];
    const at = all.buffers.length;
    // The value has its numbers behind those of the table.
    const shown = value ? { ...value, histogram: { ...value.histogram, buffer: at }, picture: { ...value.picture, buffer: at + 1 } } : null;
    const own = value ? [each.buffers[value.histogram.buffer] ?? empty, each.buffers[value.picture.buffer] ?? empty] : [];
    return { message: { ...(all.message as TensorHistory), shown, request_id, view }, buffers: [...all.buffers, ...own] };
  }
}

function forView({ message, buffers }: Told, fields: Pick<AskSpans, "view"> & Partial<AskSpans>): Told {
  return { message: { ...message, ...fields } as FromKernel, buffers };
}
