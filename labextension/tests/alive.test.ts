/** What a running session tells unasked, what its findings say, and what is said of replies. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CulpritModel, ownText } from "../src/model/culprit.js";
import type { DebugModel } from "../src/model/debug.js";
import { FindingsModel, headText } from "../src/model/findings.js";
import { curvePoints, headScalar, scalarText } from "../src/model/live_notes.js";
import { said } from "../src/model/replies.js";
import type { Culprit, ScalarState, StopState } from "../src/wire/messages.js";

const scalar = (name: string, ...curve: number[]): ScalarState => ({ name, op: 1, step: 3, value: curve[curve.length - 1] ?? 0, curve });
const plain = (text: string): string => text.replaceAll("\u00a0", " ");

test("the header tells of a loss, else of an error, else of what is no whole number", () => {
  const [step, norm, error, loss] = [scalar("global_step", 1, 2), scalar("norm", 1, 2.5), scalar("top5_error", 1, 0.5), scalar("train/Loss_1", 1, 0.031)];
  assert.equal(headScalar([step, norm, error, loss]), loss);
  assert.equal(headScalar([step, norm, error]), error);
  assert.equal(headScalar([step, norm]), norm);
  assert.equal(headScalar([step]), step);
  assert.equal(headScalar([]), null);
  assert.equal(scalarText(loss), "Loss_1 0.0310");
});

test("a curve lies in a room of 1 by 1, and leaves out what is not finite", () => {
  assert.deepEqual(curvePoints([2, 4, 3]), [[0, 1], [0.5, 0], [1, 0.5]]);
  assert.deepEqual(curvePoints([1, NaN, 1]), [[0, 1], [1, 1]]);
  assert.deepEqual(curvePoints([NaN]), []);
});

test("what was said of a run that was refused is over when one is heard", () => {
  assert.deepEqual(said("run", { ok: false, message: "give a value for y" }), { text: "give a value for y", isLasting: true });
  assert.deepEqual(said("run", { ok: true, message: "running" }), { text: "", isLasting: false });
  assert.deepEqual(said("pause", { ok: true, message: "pausing" }), { text: "pausing", isLasting: false });
  assert.equal(said("step_op", { ok: true, message: "one more" }), null);
  assert.equal(said(null, { ok: true, message: "of another view" }), null);
  assert.deepEqual(said(null, { ok: false, message: "no" }), { text: "no", isLasting: true });
});

const stopOf = (id: string, culprit: number | null): StopState =>
  ({ id, step: 4, op: 2, frame: "", iterations: [], breakpoint: 1, is_past: false, device: "", sent: "", sender: "", culprit });
const answerOf = (stop: string, request_id: number): Culprit =>
  ({ request_id, error: "", stop, what: "nan", step: 4, iterations: [], path: [], place: "", source: "", already: [], outputs: [], inputs: [], why_not: "", view: 1, kind: "culprit" });

test("the culprit is asked for once for each stop, and what is old is not told of another", () => {
  const state = { breakpoints: [], stops: [stopOf("a", null), stopOf("b", 7)], waiting: [] };
  const model = new CulpritModel({ state, stop: null } as unknown as DebugModel);
  assert.equal(model.stop?.id, "b");
  assert.deepEqual(model.ops, [7]);
  assert.deepEqual(model.question(), { request_id: 1, stop: "b" });
  assert.equal(model.question(), null);
  assert.equal(ownText(model, true), "Looking for what made it\u2026");
  model.take(answerOf("b", 1));
  assert.equal(model.answer?.what, "nan");
  state.stops = [stopOf("c", 7)];
  assert.equal(model.answer, null);
  model.take(answerOf("b", 1));
  assert.deepEqual(model.question(), { request_id: 2, stop: "c" });
  state.stops = [];
  assert.match(ownText(model, true), /^Not armed/);
  assert.equal(ownText(model, false), "No session hears this view.");
});

test("findings are asked for anew once steps were traced, at most once a second", () => {
  const model = new FindingsModel();
  assert.deepEqual(model.question(2, 5, 0), { request_id: 1, program: 2 });
  assert.equal(model.question(2, 5, 5000), null);
  assert.equal(model.question(2, 6, 500), null);
  assert.deepEqual(model.question(2, 6, 1500), { request_id: 2, program: 2 });
  model.take({ request_id: 1, error: "", steps: 3, step_s: 0.01, findings: [], view: 1, kind: "findings" });
  assert.equal(model.answer, null);
  model.take({ request_id: 2, error: "", steps: 3, step_s: 0.01, findings: [], view: 1, kind: "findings" });
  assert.equal(plain(headText(model.answer, true)), "3 steps of 10.0 ms: nothing stands out.");
  model.forget();
  assert.equal(headText(model.answer, false), "");
});
