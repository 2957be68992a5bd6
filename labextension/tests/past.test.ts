/** The past of a session, as views show it. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphModel } from "../src/model/graph.js";
import { curveOf, curveText, momentText, PastModel, recordedText, stateText } from "../src/model/past.js";
import type { HistoryState, SessionState, Table, TensorHistory, ValueState } from "../src/wire/messages.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const HISTORY: HistoryState = { version: 1, steps: 2, first: 3, last: 4, tensors: ["h:0", "y:0"], nbytes: 2048, max_bytes: 1 << 28 };
const SESSION: SessionState = { state: "idle", steps: 5, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: HISTORY, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [] };

function table(columns: Record<string, readonly number[]>): Table {
  const numbers = Object.fromEntries(Object.entries(columns).map(([name, list]) => [name, Float64Array.from(list)]));
  return { rows: columns.step?.length ?? 0, buffer: 0, columns: Object.keys(columns).map((name) => [name, "float64"]), numbers } as unknown as Table;
}
const STEPS = { step: [3, 3, 4, 4], iteration: [0, 1, 0, 1], finite: [2, 2, 1, 0], size: [2, 2, 2, 2], min: [0, 1, 2, NaN], max: [1, 2, 4, NaN], mean: [0.5, 1.5, 3, NaN] };
const told = (request_id: number, shown: ValueState | null = null, columns: Record<string, readonly number[]> = STEPS): TensorHistory =>
  ({ request_id, error: "", version: 1, tensor: "h:0", values: table(columns), shown, view: 7, kind: "history" });
const VALUE = { name: "h:0" } as ValueState;

function past(history: HistoryState | null = HISTORY): { model: GraphModel; past: PastModel } {
  const graph = new GraphBuilder();
  graph.op("Tanh", "h");
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(graph.nodes, { ...SESSION, history }));
  return { model, past: new PastModel(model) };
}

test("the newest value is asked for, once, and again when more is recorded", () => {
  const { model, past: one } = past();
  const first = one.question();
  assert.deepEqual(first, { tensor: "h:0", most: 1000, row: null, at: [] });
  one.take(told(one.await(first)));
  const second = one.question();
  assert.equal(second?.row, 3, "now the rows are known");
  assert.equal(one.shown, null);
  one.take(told(one.await(second), VALUE));
  assert.deepEqual([one.question(), one.shown], [null, VALUE]);
  model.session = { ...SESSION, history: { ...HISTORY, version: 2 } };
  assert.equal(one.question()?.row, 3);
});

test("what is looked at stays the same moment while older values go", () => {
  const { past: one } = past();
  const ask = (columns = STEPS): void => {
    const question = one.question();
    if (question) one.take(told(one.await(question), VALUE, columns));
  };
  ask();
  one.chooseRow(2);
  ask();
  assert.deepEqual([one.row, momentText(one.moments[one.row] ?? one.moments[0]!)], [2, "step 4, iteration 0"]);
  one.forget();
  ask(Object.fromEntries(Object.entries(STEPS).map(([name, list]) => [name, list.slice(1)])) as typeof STEPS);
  assert.equal(one.row, 1);
  assert.equal(one.question()?.row, 1, "it is asked for at its new place");
  assert.equal(one.shown, null, "what was told is another value");
});

test("a value is not shown as that of another row while that one's is awaited", () => {
  const { past: one } = past();
  one.take(told(one.await(one.question()!)));
  one.take(told(one.await(one.question()!), VALUE));
  one.chooseRow(1);
  const number = one.await(one.question()!);
  assert.equal(one.shown, null);
  one.take(told(number, VALUE));
  assert.equal(one.shown, VALUE);
});

test("the values of a recording are looked at by steps", () => {
  const graph = new GraphBuilder();
  graph.op("Tanh", "h");
  const model = new GraphModel(false);
  model.applySnapshot({ ...snapshotOf(graph.nodes, null), control: "recorded", history: HISTORY });
  const one = new PastModel(model);
  assert.equal(recordedText(HISTORY), "values of 2\u00a0tensors, 2.05\u00a0kB");
  assert.deepEqual([one.recordedOf(["x:0", "y:0"]), one.recordedOf(["x:0"])], ["y:0", null]);
  const question = one.question();
  assert.ok(question);
  one.take(told(one.await(question)));
  assert.equal(one.row, 3);
  one.chooseStep(3);
  assert.equal(one.row, 1, "the last value of the step");
  one.chooseRow(0);
  assert.equal(one.row, 0);
  one.chooseStep(null);
  assert.equal(one.row, 3);
});

test("an answer to an earlier question, or of another tensor, is passed over", () => {
  const { past: one } = past();
  const question = one.question();
  assert.ok(question);
  const early = one.await(question);
  one.await(question);
  one.take(told(early));
  assert.equal(one.answer, null);
  one.chooseTensor("y:0");
  one.take(told(early + 1));
  assert.deepEqual([one.tensor, one.answer, one.row], ["y:0", null, -1]);
});

test("nothing is asked where nothing is recorded", () => {
  const { past: one } = past(null);
  assert.deepEqual([one.question(), one.tensor, one.state], [null, null, null]);
});

test("the curve has gaps where nothing is finite", () => {
  const curve = curveOf(told(1));
  assert.deepEqual([curve.low, curve.high], [0, 4]);
  assert.deepEqual(curve.mean.map((line) => line.length), [3]);
  assert.deepEqual(curve.mean[0]?.[0], [0, 0.875]);
  assert.deepEqual(curve.wrong, [2 / 3, 1]);
  assert.equal(curve.band.length, 6);
  assert.equal(curveText("h", curve, 4), "4 values of h, from 0 to 4.00, 2 of them not finite");
  const alone = curveOf(told(1, null, { step: [0], iteration: [-1], finite: [1], size: [1], min: [2], max: [2], mean: [2] }));
  assert.deepEqual(alone.mean, [[[0.5, 0.5]]]);
});

test("a value of a loop in a loop is told with all of its iterations", () => {
  const { past: one } = past();
  const nested = { ...STEPS, step: [3, 3, 3, 3], around0: [0, 0, 1, 1] };
  one.take(told(one.await(one.question()!), null, nested));
  assert.deepEqual(one.moments.map((moment) => moment.iterations), [[0, 0], [0, 1], [1, 0], [1, 1]]);
  one.chooseRow(2);
  assert.deepEqual([one.row, momentText(one.moments[2]!)], [2, "step 3, iteration 0 in 1"]);
});

test("it says what can be computed again", () => {
  assert.match(stateText(HISTORY), /^steps 3 to 4 can be computed again, 2.* of 268/);
  assert.match(stateText({ ...HISTORY, steps: 0, first: null, last: null }), /^no step was recorded yet/);
  assert.equal(momentText({ step: 2, iterations: [], again: 0 }), "step 2");
});
