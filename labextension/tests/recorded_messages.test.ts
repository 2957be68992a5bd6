import assert from "node:assert/strict";
import { test } from "node:test";
import { RecordedMessages } from "../src/model/recorded_messages.js";
import type { AskSpans } from "../src/wire/messages.js";

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
