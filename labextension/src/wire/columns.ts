/** Operations as binary columns, back to nodes: see flowscope/live/graphs/columns.py and `COLUMNS`. */
import type { Answer } from "./channel.js";
import { COLUMNS, QUESTIONS, type Columns, type FromKernel, type Node, type Table } from "./messages.js";
import { finish, SLICE, type Sliced } from "./sliced.js";
import { filled } from "./tables.js";

/** What a node has that `Columns.rest` does not tell. */
const NONE: readonly never[] = [];
const BYTES = 4;

/** A buffer of a message, as front ends hand it over. */
export type Buffer = ArrayBuffer | ArrayBufferView;

/** What a row has in each column. */
type Field = keyof typeof COLUMNS;
type Read = Record<Field, readonly unknown[]>;

/** The columns' numbers, read one stretch after the other. */
class Reader {
  readonly numbers: Int32Array;
  at = 0;

  constructor(buffer: Buffer) {
    const view = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
    this.numbers = new Int32Array(view.slice().buffer, 0, Math.floor(view.byteLength / BYTES));
  }

  take(count: number): Int32Array {
    return this.numbers.subarray(this.skip(count), this.at);
  }

  /** Passes over numbers; returns where they begin. */
  skip(count: number): number {
    if (count < 0 || this.at + count > this.numbers.length) throw new Error("columns: the buffer is too short");
    this.at += count;
    return this.at - count;
  }
}

/** Returns the nodes that columns tell of. */
export function nodesOf(columns: Columns, buffer: Buffer): Node[] {
  return finish(readNodes(columns, buffer));
}

/** The same in slices. */
export function* readNodes(columns: Columns, buffer: Buffer): Sliced<Node[]> {
  const reader = new Reader(buffer);
  const read: Partial<Read> = {};
  for (const name of Object.keys(COLUMNS) as Field[]) {
    read[name] = yield* column(COLUMNS[name], reader, columns);
    yield;
  }
  const nodes: Node[] = [];
  for (let row = 0; row < columns.rows; row++) {
    nodes.push(nodeOf(read as Read, row));
    if (row % SLICE === SLICE - 1) yield;
  }
  for (const [row, fields] of columns.rest) Object.assign(nodes[row] ?? {}, fields);
  return nodes;
}

/** All fields, in one order: objects of one shape are made and read fast. */
function nodeOf(read: Read, row: number): Node {
  const fields = {
    id: read.id[row], name: read.name[row], type: read.type[row], inputs: read.inputs[row], control: read.control[row],
    outputs: read.outputs[row], attributes: read.attributes[row], device: read.device[row], placed: read.placed[row],
    summary: read.summary[row], origin: read.origin[row], stale: null, body: read.body[row], is_result: read.is_result[row] === 1,
    calls: "", runs: NONE, roles: NONE, predicate: null, carried: NONE, enters: NONE, leaves: NONE, always_runs: NONE,
    made_from: NONE, scope: "", frame: "", flops: 0,
  };
  return fields as Node;
}

function* column(kind: (typeof COLUMNS)[Field], reader: Reader, columns: Columns): Sliced<readonly unknown[]> {
  const first = reader.take(columns.rows);
  switch (kind) {
    case "number": return Array.from(first);
    case "numbers": return yield* lists(first, reader, 1, (numbers, at) => numbers[at]);
    case "pairs": return yield* lists(first, reader, 2, (numbers, at) => [numbers[at], numbers[at + 1]]);
    case "outputs": return yield* lists(first, reader, 1, (numbers, at) => columns.outputs[numbers[at] ?? -1]);
    case "text": return looked(first, columns.texts);
    case "attributes": return looked(first, columns.attributes);
    case "origin": return looked(first, columns.origins);
  }
}

/** What numbers refer to in a table. */
function looked(numbers: Int32Array, table: readonly unknown[]): unknown[] {
  const found = new Array<unknown>(numbers.length);
  for (let row = 0; row < numbers.length; row++) found[row] = table[numbers[row] ?? -1] ?? null;
  return found;
}

/** A list in each row: so many values, each made of `width` numbers. */
function* lists(counts: Int32Array, reader: Reader, width: number, value: (numbers: Int32Array, at: number) => unknown): Sliced<unknown[]> {
  const found = new Array<unknown>(counts.length);
  for (let row = 0; row < counts.length; row++) {
    const count = counts[row] ?? 0;
    let at = reader.skip(width * count);
    const list: unknown[] = [];
    for (let k = 0; k < count; k++, at += width) list.push(value(reader.numbers, at));
    found[row] = count === 0 ? NONE : list;
    if (row % SLICE === SLICE - 1) yield;
  }
  return found;
}

/** Where answers have tables, by their kinds. */
const TABLES = Object.fromEntries(Object.values(QUESTIONS).map(({ answer, tables }): [string, readonly (readonly string[])[]] => [answer, tables])) as Record<Answer["kind"], readonly (readonly string[])[]>;

/** A copy of a part of a message in which the tables at a path have their numbers; null stays. */
function filledAt<T>(part: T, [step, ...rest]: readonly string[], buffers: readonly Buffer[]): T {
  if (step === undefined) return filled(part as Table, buffers) as T;
  if (step === "*") return (part as readonly unknown[]).map((one) => filledAt(one, rest, buffers)) as T;
  return part && { ...part, [step]: filledAt(part[step as keyof T], rest, buffers) };
}

/** Puts nodes and numbers in the place of what a message has in buffers; one without them, as a file has it, stays. */
export function unpacked(message: FromKernel, buffers: readonly Buffer[]): FromKernel {
  return finish(unpack(message, buffers));
}

/** The same in slices. */
export function* unpack<M extends FromKernel>(message: M, buffers: readonly Buffer[]): Sliced<M> {
  if (message.kind === "reply") return message;
  if (message.kind !== "snapshot" && message.kind !== "delta") return TABLES[message.kind].reduce((told, path) => filledAt(told, path, buffers), message);
  const trace = message.trace && { ...message.trace, heat: filled(message.trace.heat, buffers) };
  if (!message.graph) return { ...message, trace };
  const { added, changed } = message.graph as unknown as Record<"added" | "changed", readonly Node[] | Columns>;
  const told = { added: yield* nodesIn(added, buffers), changed: yield* nodesIn(changed, buffers) };
  return { ...message, trace, graph: { ...message.graph, ...told } };
}

function* nodesIn(told: readonly Node[] | Columns, buffers: readonly Buffer[]): Sliced<readonly Node[]> {
  if (!("buffer" in told)) return told;
  const buffer = buffers[told.buffer];
  if (!buffer) throw new Error(`columns: the message has no buffer ${told.buffer}`);
  return yield* readNodes(told, buffer);
}
