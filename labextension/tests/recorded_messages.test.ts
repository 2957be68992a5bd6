import assert from "node:assert/strict";
import { test } from "node:test";
import { RecordedMessages } from "../src/model/recorded_messages.js";
import type { AskHistory, AskSpans, TensorHistory } from "../src/wire/messages.js";

const packed = (messages: unknown, sizes: unknown): { message: unknown; numbers: ArrayBuffer } =>
  ({ message: { messages, sizes }, numbers: Uint8Array.from([1, 2, 3, 4, 5, 6]).buffer });
const step = (number: number): unknown => ({ kind: "spans", request_id: 0, view: 0, step: { number } });
const recorded = (): RecordedMessages => new RecordedMessages(packed([{ kind: "snapshot", view: 0 }, step(3), step(4)], [[1, 1], [2], [2]]));
const ask = (number: number | null): AskSpans =>
  ({ kind: "ask_spans", request_id: 9, step: number, begin_us: null, end_us: null, most: 10, view: 7 });
const bytes = (buffers: readonly (ArrayBuffer | ArrayBufferView)[]): number[][] => buffers.map((one) => [...new Uint8Array(one as ArrayBuffer)]);

test("a view that connects is told the graph, with its own buffers", () => {
  const told = recorded().answer({ kind: "connect", view: 7, protocol: 1 });
  assert.deepEqual(told?.message, { kind: "snapshot", view: 7 });
  assert.deepEqual(bytes(told?.buffers ?? []), [[1], [2]]);
});

test("spans are those of the step that is asked for, else of the newest", () => {
  const found = [3, 4, null, 99].map((number) => recorded().answer(ask(number)));
  assert.deepEqual(found.map((told) => bytes(told?.buffers ?? [])), [[[3, 4]], [[5, 6]], [[5, 6]], [[5, 6]]]);
  assert.deepEqual(found[0]?.message, { kind: "spans", request_id: 9, view: 7, step: { number: 3 } });
});

test("values are answered with their own numbers behind those of the table", () => {
  const table = (buffer: number): unknown => ({ rows: 1, buffer, columns: [] });
  const value = (k: number): unknown => ({ name: "y:0", histogram: table(2 * k), picture: table(2 * k + 1) });
  const history = { kind: "history", tensor: "y:0", values: table(0), shown: null };
  const one = new RecordedMessages(packed([{ kind: "snapshot" }, step(3), history, { kind: "values", values: [value(0), value(1)] }], [[1], [], [1], [1, 1, 1, 1]]));
  const askRow = (tensor: string, row: number | null): AskHistory => ({ kind: "ask_history", request_id: 9, tensor, most: 5, row, at: [], view: 7 });
  const told = one.answer(askRow("y:0", 1));
  assert.deepEqual(bytes(told?.buffers ?? []), [[2], [5], [6]]);
  const message = told?.message as TensorHistory;
  assert.deepEqual([message.request_id, message.view, message.shown?.histogram.buffer, message.shown?.picture.buffer], [9, 7, 1, 2]);
  assert.equal((one.answer(askRow("y:0", null))?.message as TensorHistory).shown, null);
  const none = one.answer(askRow("x:0", null))?.message as TensorHistory;
  assert.match(none.error, /no values of "x:0"/);
  assert.deepEqual(bytes(one.answer(ask(null))?.buffers ?? []), [], "the newest spans are those of a step");
  assert.throws(() => new RecordedMessages(packed([{ kind: "snapshot" }, history], [[1], [1]])), /no values/);
});

test("a command is answered: nothing runs", () => {
  const told = recorded().answer({ kind: "command", command_id: 2, name: "pause", value: null, view: 7 });
  assert.equal(told?.message.kind === "reply" && !told.message.ok && told.message.command_id, 2);
  assert.equal(recorded().answer({ kind: "alive", view: 7 }), null);
});

test("what is of another form is refused", () => {
  for (const [messages, sizes] of [[null, []], [[], []], [[step(1)], [[]]], [[step(1), step(2)], [[]]]] as const) {
    assert.throws(() => new RecordedMessages(packed(messages, sizes)), /recording/);
  }
});
