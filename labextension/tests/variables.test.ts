/** Variables, as views list them. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphModel } from "../src/model/graph.js";
import { MOST_MEASURED, numbersOf, REFRESH_MS, sampleText, summaryOf, variableRows, VariablesModel, wrongText, writtenText } from "../src/model/variables.js";
import type { SessionState, ValueState, Variables, VariableState } from "../src/wire/messages.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const SESSION: SessionState = { state: "idle", steps: 5, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, devices: [], is_simulated: false, scalars: [], summaries: null };
const variable = (op: number, name: string, more: Partial<VariableState> = {}): VariableState => ({
  op, name, dtype: "float32", shape: [2, 3], nbytes: 24, device: "/job:localhost/replica:0/task:0/device:CPU:0", is_initialized: true, is_trainable: true, writes: 3, written_in: 2, primary: null, why: "", ...more,
});
const table = { rows: 0, buffer: 0, columns: [] };
const value = (name: string, more: Partial<ValueState> = {}): ValueState => ({
  name, state: "alive", why: "", dtype: "float32", shape: [2, 3], nbytes: 24, finite: 6, nan: 0, inf: 0, min: -1, max: 2, mean: 0.5, histogram: table, picture: table, width: 0, height: 0, low: 0, high: 0, ...more,
});
const ALL = [
  variable(1, "b/kernel"), variable(2, "b/kernel/Adam", { primary: 1, is_trainable: false, nbytes: 100 }), variable(3, "b/kernel/Adam_1", { primary: 1, is_trainable: false }),
  variable(4, "a/bias", { written_in: 9, nbytes: 60 }), variable(5, "late", { is_initialized: false, nbytes: 0, written_in: null }),
];
const PLAIN = { by: null, filter: "", withSlots: true } as const;
const names = (order: Partial<Parameters<typeof variableRows>[1]>): string[] => variableRows(ALL, { ...PLAIN, ...order }, new Map()).map(({ name }) => name);

test("slots stand under their variables, in whatever order these stand", () => {
  assert.deepEqual(names({}), ["b/kernel", "b/kernel/Adam", "b/kernel/Adam_1", "a/bias", "late"]);
  assert.deepEqual(names({ by: "name" }), ["a/bias", "b/kernel", "b/kernel/Adam", "b/kernel/Adam_1", "late"]);
  assert.deepEqual(names({ by: "bytes", withSlots: false }), ["b/kernel", "a/bias", "late"]);
  assert.deepEqual(names({ by: "written", withSlots: false }), ["a/bias", "b/kernel", "late"]);
  const [kernel, adam] = variableRows(ALL, PLAIN, new Map());
  assert.deepEqual([kernel?.scope, kernel?.short, kernel?.depth, adam?.short, adam?.depth], ["b/", "kernel", 0, "Adam", 1]);
  assert.equal(variableRows(ALL, { ...PLAIN, withSlots: false }, new Map())[0]?.hidden, 2);
});

test("a filter finds names, types and what was never written; a slot is found with its variable", () => {
  assert.deepEqual(names({ filter: "adam_1" }), ["b/kernel", "b/kernel/Adam_1"]);
  assert.deepEqual(names({ filter: "not init" }), ["late"]);
  assert.deepEqual(names({ filter: "bias" }), ["a/bias"]);
  assert.deepEqual(names({ filter: "CPU:0" }).length, 5);
  assert.deepEqual(names({ filter: "none such" }), []);
});

test("numbers are short, what is not finite and what was not looked at is said", () => {
  const known = new Map([["a/bias", value("a/bias", { nan: 2, inf: 1, finite: 3, min: 9.48e-5, max: 2_500_000, mean: 0.01483 })]]);
  const row = variableRows(ALL, { ...PLAIN, filter: "bias" }, known)[0]!;
  assert.deepEqual(numbersOf(row), ["9.5e-5", "0.0148", "2.5e+6"]);
  assert.equal(wrongText(row), "2\u00a0NaNs, 1 infinite");
  assert.equal(sampleText(row), "");
  assert.equal(sampleText({ ...row, value: value("a/bias", { shape: [1000, 10] }) }), "of 6 elements that lie evenly among 10\u00a0000");
  assert.equal(writtenText(variable(1, "v", { written_in: null })), "outside of steps");
  assert.equal(writtenText(variable(1, "v", { is_initialized: null })), "not known");
});

test("the summary counts all, also those that are not listed", () => {
  const told: Variables = { request_id: 1, error: "", rows: ALL, left_out: 2, nbytes: 208, values: [], view: 7, kind: "variables" };
  assert.equal(summaryOf(told, 3), "7\u00a0variables, 208\u00a0B, 124\u00a0B of it in slots; 1 not initialised; the first 5 are listed: session.variables() has all; 3\u00a0rows shown");
});

function open(): { model: GraphModel; one: VariablesModel } {
  const graph = new GraphBuilder();
  graph.op("Tanh", "h");
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(graph.nodes, SESSION));
  return { model, one: new VariablesModel(model) };
}
const told = (request_id: number, values: readonly ValueState[] = []): Variables => ({ request_id, error: "", rows: ALL, left_out: 0, nbytes: 0, values, view: 7, kind: "variables" });

test("an idle session is asked once, and again when steps have run or others are in sight", () => {
  const { model, one } = open();
  assert.deepEqual(one.question(["v"], null, 0), { request_id: 1, measured: ["v"], step: null });
  assert.equal(one.question(["v"], null, 50), null);
  one.take(told(1));
  assert.equal(one.question(["v"], null, 60), null);
  assert.equal(one.question(["w"], null, 70)?.request_id, 2);
  one.take(told(2));
  model.session = { ...SESSION, steps: 6 };
  assert.equal(one.question(["w"], null, 80)?.request_id, 3);
  assert.equal(one.question(Array.from({ length: 40 }, (_, k) => `v${k}`), null, 90), null, "one question at a time");
  one.take(told(3));
  assert.equal(one.question(Array.from({ length: 40 }, (_, k) => `v${k}`), null, 100)?.measured.length, MOST_MEASURED);
});

test("while a step runs it is asked again at a modest rate; a lost answer is not waited for", () => {
  const { model, one } = open();
  model.session = { ...SESSION, state: "running" };
  one.question(["v"], null, 0);
  one.take(told(1));
  assert.equal(one.question(["v"], null, REFRESH_MS - 1), null);
  assert.equal(one.question(["v"], null, REFRESH_MS)?.request_id, 2);
  assert.equal(one.question(["v"], null, REFRESH_MS * 3), null);
  one.forget();
  assert.equal(one.question(["v"], null, REFRESH_MS * 3)?.request_id, 3);
});

test("what has scrolled away keeps its numbers; what has lost its value has none", () => {
  const { one } = open();
  one.question([], null, 0);
  one.take(told(1, [value("a/bias"), value("late")]));
  assert.equal(one.value("a/bias")?.mean, 0.5);
  assert.equal(one.value("late"), null);
});

test("of a step that was gone back to the values before it are asked for once, and none of the present stays", () => {
  const { model, one } = open();
  one.question(["a/bias"], null, 0);
  one.take(told(1, [value("a/bias"), value("late")]));
  model.session = { ...SESSION, state: "running" };
  assert.deepEqual(one.question(["a/bias"], 4, 10), { request_id: 2, measured: ["a/bias"], step: 4 });
  one.take(told(2));
  assert.equal(one.question(["a/bias"], 4, 10 + 5 * REFRESH_MS), null, "the past does not change");
  assert.deepEqual([one.step, one.value("a/bias")], [4, null]);
  const row = { ...ALL[0]!, is_initialized: true, written_in: null };
  assert.deepEqual([writtenText(row, 4), writtenText(row), writtenText({ ...row, written_in: 2 }, 4)], ["before 4", "outside of steps", "step 2"]);
});
