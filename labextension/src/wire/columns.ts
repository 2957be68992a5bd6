/** Operations as binary columns, back to nodes: see flowscope/live/columns.py and `COLUMNS`. */
import { COLUMNS, type Columns, type FromKernel, type Node } from "./messages.js";

/** What a node has that `Columns.rest` does not tell. */
const PLAIN = {
  stale: null, body: "", is_result: false, calls: "", runs: [], roles: [], predicate: null, carried: [], enters: [], leaves: [],
  always_runs: [], made_from: [], scope: "", frame: "",
} as const;

const BYTES = 4;

/** A buffer of a message, as front ends hand it over. */
export type Buffer = ArrayBuffer | ArrayBufferView;

/** The columns' numbers, read one stretch after the other. */
class Reader {
  readonly #numbers: Int32Array;
  #at = 0;

  constructor(buffer: Buffer) {
    const view = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
    this.#numbers = new Int32Array(view.slice().buffer, 0, Math.floor(view.byteLength / BYTES));
  }

  take(count: number): Int32Array {
    if (count < 0 || this.#at + count > this.#numbers.length) throw new Error("columns: the buffer is too short");
    this.#at += count;
    return this.#numbers.subarray(this.#at - count, this.#at);
  }
}

/** Returns the nodes that columns tell of. */
export function nodesOf(columns: Columns, buffer: Buffer): Node[] {
  const reader = new Reader(buffer);
  const rows: Record<string, unknown>[] = Array.from({ length: columns.rows }, () => ({ ...PLAIN }));
  for (const [name, kind] of Object.entries(COLUMNS)) {
    const first = reader.take(columns.rows);
    for (let row = 0; row < rows.length; row++) {
      const made = rows[row];
      const number = first[row] ?? 0;
      if (made) made[name] = value(kind, number, reader, columns);
    }
  }
  for (const made of rows) made.is_result = made.is_result === 1;
  for (const [row, fields] of columns.rest) Object.assign(rows[row] ?? {}, fields);
  return rows as unknown as Node[];
}

function value(kind: (typeof COLUMNS)[keyof typeof COLUMNS], number: number, reader: Reader, columns: Columns): unknown {
  switch (kind) {
    case "number": return number;
    case "numbers": return [...reader.take(number)];
    case "pairs": return pairs(reader.take(2 * number));
    case "outputs": return Array.from(reader.take(number), (i) => columns.outputs[i]);
    case "text": return columns.texts[number] ?? null;
    case "attributes": return columns.attributes[number] ?? null;
    case "origin": return columns.origins[number] ?? null;
  }
}

function pairs(numbers: Int32Array): [number, number][] {
  const found: [number, number][] = [];
  for (let i = 0; i + 1 < numbers.length; i += 2) found.push([numbers[i] ?? 0, numbers[i + 1] ?? 0]);
  return found;
}

/** Puts nodes in the place of a message's columns; a message without them, as a file has it, stays. */
export function unpacked(message: FromKernel, buffers: readonly Buffer[]): FromKernel {
  if (message.kind === "reply" || !message.graph) return message;
  const { added, changed } = message.graph as unknown as Record<"added" | "changed", readonly Node[] | Columns>;
  const nodes = (told: readonly Node[] | Columns): readonly Node[] => {
    if (!("buffer" in told)) return told;
    const buffer = buffers[told.buffer];
    if (!buffer) throw new Error(`columns: the message has no buffer ${told.buffer}`);
    return nodesOf(told, buffer);
  };
  return { ...message, graph: { ...message.graph, added: nodes(added), changed: nodes(changed) } } as FromKernel;
}
