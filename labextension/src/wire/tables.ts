/** Tables of numbers as they travel, see flowscope/live/protocol/tables.py: columns in a buffer of the message. */
import type { Buffer } from "./columns.js";
import type { Table } from "./messages.js";

export type Column = Int32Array | Float64Array;

/** A table with its numbers, which the message that brought it had in a buffer. */
export interface Filled extends Table {
  readonly numbers: Readonly<Record<string, Column>>;
}

const ALIGNED = 8;

/** Puts the numbers of a buffer into the table that tells of them. */
export function filled(table: Table, buffers: readonly Buffer[]): Filled {
  const buffer = buffers[table.buffer];
  if (!buffer) throw new Error(`tables: the message has no buffer ${table.buffer}`);
  const view = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
  const bytes = view.slice().buffer;
  const numbers: Record<string, Column> = {};
  let at = 0;
  for (const [name, kind] of table.columns) {
    const size = (kind === "int32" ? 4 : 8) * table.rows;
    if (at + size > bytes.byteLength) throw new Error("tables: the buffer is too short");
    numbers[name] = kind === "int32" ? new Int32Array(bytes, at, table.rows) : new Float64Array(bytes, at, table.rows);
    at += Math.ceil(size / ALIGNED) * ALIGNED;
  }
  return { ...table, numbers };
}

/** Returns a column of a table that a message brought; an empty one where it has none of this name. */
export function column(table: Table, name: string): Column {
  return (table as Partial<Filled>).numbers?.[name] ?? new Int32Array(0);
}
