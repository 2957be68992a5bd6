/** Columns, as the kernel sends them, are the nodes that the kernel tells one by one. */
import assert from "node:assert/strict";
import test from "node:test";
import { nodesOf, unpacked } from "../src/wire/columns.js";
import type { Columns, Delta } from "../src/wire/messages.js";
import vector from "./vectors/columns.json" with { type: "json" };

const columns = vector.columns as unknown as Columns;
const bytes = Uint8Array.from(atob(vector.buffer), (c) => c.charCodeAt(0));

test("the kernel's columns are read as its nodes", () => {
  assert.deepEqual(nodesOf(columns, bytes), vector.nodes);
});

test("a buffer may lie anywhere in a larger one", () => {
  const large = new Uint8Array(bytes.length + 3);
  large.set(bytes, 3);
  assert.deepEqual(nodesOf(columns, new DataView(large.buffer, 3)), vector.nodes);
});

test("a message gets nodes in the place of columns", () => {
  const graph = { version: 1, added: columns, changed: [], placed: [], removed: [], marked: [], fetches: [] };
  const told = { kind: "delta", seq: 1, graph, session: null, run: null } as unknown as Delta;
  const read = unpacked(told, [bytes]) as Delta;
  assert.deepEqual(read.graph?.added, vector.nodes);
  assert.deepEqual(read.graph?.changed, []);
  assert.throws(() => unpacked(told, []), /no buffer 0/);
  assert.throws(() => nodesOf(columns, bytes.slice(0, 40)), /too short/);
});
