/** The channel: what each event does in each state. */
import assert from "node:assert/strict";
import test from "node:test";
import { snapshotOf } from "../dev/builder.js";
import { Channel, isFromKernel, type Instruction } from "../src/wire/channel.js";
import { PROTOCOL, type Delta, type FromKernel } from "../src/wire/messages.js";

const delta = (seq: number): Delta => ({ kind: "delta", seq, graph: null, session: null, run: null, skipped: 0, trace: null, view: 0 });
const hear = (channel: Channel, message: FromKernel, at_ms = 0): readonly Instruction[] =>
  channel.take({ kind: "message", message, at_ms });
const kinds = (instructions: readonly Instruction[]): string[] =>
  instructions.map((i) => (i.kind === "answered" ? i.kind : `${i.kind} ${i.message.kind}`));

function synced(seq = 3): Channel {
  const channel = new Channel();
  channel.take({ kind: "open" });
  hear(channel, snapshotOf([], null, seq));
  return channel;
}

test("opening asks for a snapshot, which is delivered", () => {
  const channel = new Channel();
  assert.deepEqual(kinds(channel.take({ kind: "open" })), ["send connect"]);
  assert.equal(channel.state, "connecting");
  assert.deepEqual(kinds(hear(channel, delta(9))), []);
  assert.deepEqual(kinds(hear(channel, snapshotOf([], null, 3))), ["deliver snapshot"]);
  assert.equal(channel.state, "synced");
});

test("deltas follow the snapshot's number; an old one is dropped", () => {
  const channel = synced(3);
  assert.deepEqual(kinds(hear(channel, delta(4))), ["deliver delta"]);
  assert.deepEqual(kinds(hear(channel, delta(4))), []);
  assert.deepEqual(kinds(hear(channel, delta(5))), ["deliver delta"]);
});

test("a gap asks again and drops deltas until the snapshot", () => {
  const channel = synced(3);
  assert.deepEqual(kinds(hear(channel, delta(5))), ["send connect"]);
  assert.equal(channel.state, "gap");
  assert.deepEqual(kinds(hear(channel, delta(6))), []);
  assert.deepEqual(kinds(hear(channel, delta(4))), []);
  assert.deepEqual(kinds(hear(channel, snapshotOf([], null, 6))), ["deliver snapshot"]);
  assert.deepEqual(kinds(hear(channel, delta(7))), ["deliver delta"]);
});

test("what is delivered is acknowledged, and what is for another view is passed over", () => {
  const channel = new Channel(7);
  channel.take({ kind: "open" });
  assert.deepEqual(hear(channel, { ...snapshotOf([], null, 3), view: 8 }), []);
  const [found] = hear(channel, { ...snapshotOf([], null, 3), view: 7 });
  assert.ok(found?.kind === "deliver");
  assert.deepEqual(found.ack, { kind: "ack", view: 7, seq: 3 });
  assert.deepEqual(hear(channel, { ...delta(4), view: 8 }), []);
  assert.deepEqual(kinds(hear(channel, { ...delta(4), view: 7 })), ["deliver delta"]);
});

test("a snapshot in the place of deltas is taken in sync", () => {
  const channel = synced(3);
  assert.deepEqual(kinds(hear(channel, snapshotOf([], null, 8))), ["deliver snapshot"]);
  assert.deepEqual(kinds(hear(channel, delta(9))), ["deliver delta"]);
});

test("a reply finds its command, and another view's reply comes without a name", () => {
  const channel = synced();
  const [sent] = channel.take({ kind: "command", name: "pause", at_ms: 100 });
  assert.deepEqual(sent, { kind: "send", message: { kind: "command", command_id: 1, name: "pause", value: null, view: 1 } });
  const reply = { kind: "reply", command_id: 1, ok: true, message: "paused", view: 0 } as const;
  assert.deepEqual(hear(channel, reply, 130), [{ kind: "answered", name: "pause", reply, took_ms: 30 }]);
  assert.deepEqual(hear(channel, reply, 140), [{ kind: "answered", name: null, reply, took_ms: 0 }]);
});

test("a view that closes says so, if it was ever open", () => {
  assert.deepEqual(kinds(synced().take({ kind: "close" })), ["send disconnect"]);
  assert.deepEqual(new Channel().take({ kind: "close" }), []);
});

test("two views of one widget do not take each other's replies", () => {
  const [mine, other] = [new Channel(1000), new Channel(2000)];
  for (const channel of [mine, other]) {
    channel.take({ kind: "open" });
    hear(channel, snapshotOf([], null, 1));
    channel.take({ kind: "command", name: "pause", at_ms: 0 });
  }
  const reply = { kind: "reply", command_id: 1000, ok: true, message: "paused", view: 0 } as const;
  assert.deepEqual(hear(other, reply, 5), [{ kind: "answered", name: null, reply, took_ms: 0 }]);
  assert.deepEqual(hear(mine, reply, 5), [{ kind: "answered", name: "pause", reply, took_ms: 5 }]);
});

test("a pair that is not in the table throws with state and event", () => {
  const channel = new Channel();
  assert.throws(() => channel.take({ kind: "command", name: "stop", at_ms: 0 }), /"command" cannot happen while "new"/);
  channel.take({ kind: "close" });
  assert.throws(() => hear(channel, delta(1)), /"next"|"ahead" cannot happen while "closed"/);
});

test("foreign messages are told apart", () => {
  assert.ok(isFromKernel({ kind: "delta" }));
  for (const other of [null, 3, "delta", {}, { kind: "command" }]) assert.ok(!isFromKernel(other));
});

test("a view says that it is there, leaves with its page, and comes back with it", () => {
  const channel = new Channel(7);
  channel.take({ kind: "open" });
  assert.deepEqual(channel.take({ kind: "alive" }), [{ kind: "send", message: { kind: "alive", view: 7 } }]);
  assert.deepEqual(channel.take({ kind: "away" }), [{ kind: "send", message: { kind: "disconnect", view: 7 } }]);
  assert.deepEqual(channel.take({ kind: "alive" }), []);
  assert.equal(channel.takesCommands, false);
  assert.deepEqual(channel.take({ kind: "message", message: { kind: "reply", command_id: 7, ok: true, message: "", view: 0 }, at_ms: 0 }), []);
  assert.deepEqual(channel.take({ kind: "open" }), [{ kind: "send", message: { kind: "connect", view: 7, protocol: PROTOCOL } }]);
  assert.equal(channel.state, "connecting");
});
