/** The panel Input: queues, iterators, who waits, and what runners, coordinators and hooks do. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { GraphModel } from "../src/model/graph.js";
import { helperRows, inputKey, queueRows } from "../src/model/input.js";
import { liveNotes } from "../src/model/live_notes.js";
import type { HelperState, QueueState, SessionState } from "../src/wire/messages.js";

const SESSION: SessionState = {
  state: "running", steps: 1, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null,
  history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [],
};
const QUEUE: QueueState = { op: 0, size: 30, capacity: 40, enqueues: 0, dequeues: 0, is_closed: false, fills_itself: false, least: 0, per_s: null, waits: [], error: "", stamp: null, dropped: 0 };

/** A model of a queue "shuffled", an operation "files/enqueue" and a session that tells these. */
function modelOf(queue: Partial<QueueState>, helpers: readonly HelperState[] = []): GraphModel {
  const g = new GraphBuilder();
  const handle = g.op("RandomShuffleQueue", "files/shuffled");
  g.op("Enqueue", "files/enqueue", { inputs: [handle] });
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(g.nodes, { ...SESSION, queues: [{ ...QUEUE, op: handle, ...queue }], helpers }));
  return model;
}

const plain = (text: string): string => text.replaceAll("\u00a0", " ").replaceAll("\u202f", " ").replaceAll("\u2009", " ");

test("a queue tells its fill, the mark of what stays in, its rate, who waits and the producer's error", () => {
  const waits = [{ op: 1, name: "files/enqueue", kind: "space", seconds: 12 }, { op: null, name: "batch", kind: "elements", seconds: 0 }] as const;
  const [row] = queueRows(modelOf({ least: 10, per_s: 1520, enqueues: 1, dequeues: 4, waits, error: "ValueError: no number" }));
  assert.ok(row);
  assert.deepEqual([row.name, row.fill, row.least], ["files/shuffled", 0.75, 0.25]);
  assert.deepEqual([row.size, row.rate].map(plain), ["30 of 40, 10 stay in", "1 520 elements/s"]);
  assert.deepEqual(row.waits.map(plain), ["enqueue waits for space, 12 s", "batch waits for elements", "and 3 operations wait"]);
  assert.equal(row.error, "ValueError: no number");
});

test("a closed queue keeps nothing back, one without a bound has no fill", () => {
  const closed = modelOf({ least: 10, is_closed: true });
  assert.deepEqual([queueRows(closed)[0]?.size, queueRows(closed)[0]?.least], ["30 of 40, closed", null]);
  assert.equal(liveNotes(closed, { fetches: [] })[0]?.least, undefined);
  const [row] = queueRows(modelOf({ capacity: 2 ** 63, least: 5 }));
  assert.deepEqual([row?.fill, row?.least, row?.size], [null, null, "30, 5 stay in"]);
});

test("an iterator is told as a queue that fills itself", () => {
  const ahead = modelOf({ size: 3, capacity: 8, fills_itself: true, is_closed: true });
  assert.deepEqual([queueRows(ahead)[0]?.size, queueRows(ahead)[0]?.fill], ["3 of 8 ready, at its end", 0.375]);
  assert.equal(liveNotes(ahead, { fetches: [] })[0]?.fill, 0.375);
  const asked = modelOf({ size: 0, capacity: 0, fills_itself: true });
  assert.deepEqual([queueRows(asked)[0]?.size, queueRows(asked)[0]?.fill], ["computes when asked", null]);
  assert.deepEqual(liveNotes(asked, { fetches: [] }), []);
});

test("the box of a queue has the mark of what stays in, and says that a producer failed", () => {
  const [note] = liveNotes(modelOf({ least: 10, error: "ValueError: no number" }), { fetches: [] });
  assert.deepEqual([note?.fill, note?.least, note?.text], [0.75, 0.25, "30/40, producer failed"]);
});

test("an accumulator tells how many gradients it has and needs, its time stamp and what it has dropped", () => {
  const waits = [{ op: 1, name: "take", kind: "gradients", seconds: 3 }] as const;
  const model = modelOf({ size: 3, capacity: 4, stamp: 7, dropped: 2, dequeues: 1, waits });
  const [row] = queueRows(model);
  assert.deepEqual([row?.size, row?.fill, row?.waits].map((x) => (typeof x === "string" ? plain(x) : x)), ["3 of 4 gradients, time stamp 7, 2 stale ones dropped", 0.75, ["take waits for gradients, 3 s"]]);
  assert.deepEqual(liveNotes(model, { fetches: [] })[0]?.text, "3/4, step 7, 2 dropped");
  const unasked = queueRows(modelOf({ size: 1, capacity: 0, stamp: 0, dropped: 1 }))[0];
  assert.deepEqual([plain(unasked?.size ?? ""), unasked?.fill], ["1 gradient, time stamp 0, 1 stale one dropped", null]);
});

test("runners lead to their operation, coordinators and hooks to none; what changes is drawn anew", () => {
  const model = modelOf({}, [
    { kind: "runner", name: "files/shuffled", op: 1, text: "ValueError: no number", has_failed: true },
    { kind: "runner", name: "elsewhere", op: 99, text: "runs", has_failed: false },
    { kind: "coordinator", name: "Coordinator", op: null, text: "waits for 2 threads", has_failed: false },
    { kind: "hook", name: "LoggingTensorHook", op: null, text: "waits for step 100", has_failed: false },
  ]);
  assert.deepEqual(helperRows(model).map(({ kind, op, hasFailed }) => [kind, op, hasFailed]), [
    ["runner", 1, true], ["runner", null, false], ["threads", null, false], ["hook", null, false],
  ]);
  const { session } = model;
  assert.ok(session);
  assert.equal(inputKey(session), inputKey({ ...session, steps: 2 }));
  assert.notEqual(inputKey(session), inputKey({ ...session, helpers: [] }));
});
