/** Breakpoints, held steps and values, as views tell them. */
import assert from "node:assert/strict";
import test from "node:test";
import { DebugModel, pointText, standing, standingAt, stopText, targetOf, whereText, whyText, wishOf, type ValueAnswer } from "../src/model/debug.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import { questionOf, stateText, valueFacts, whyNone } from "../src/model/value_facts.js";
import { breakpointMarks } from "../src/render/breakpoints.js";
import { heatColor } from "../src/render/heat_map.js";
import { DARK, LIGHT } from "../src/render/theme.js";
import { isFromKernel } from "../src/wire/channel.js";
import type { BreakpointState, DebugState, SessionState, StopState, ValueState } from "../src/wire/messages.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const SESSION: SessionState = { state: "paused", steps: 1, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [] };
const POINT: BreakpointState = { number: 1, target: '"layer/act"', conditions: "max > 3", is_after: true, is_enabled: true, hits: 2, error: "", ops: [1], where: ['"layer/act"'], is_watch: false, found: "", stops_at_nan: false, follows: false };
const STOP: StopState = { id: "a.1", step: 4, op: 2, frame: "", iterations: [], breakpoint: 1, is_past: false, device: "", sent: "", sender: "", culprit: null };
const EMPTY = { rows: 0, buffer: 0, columns: [] };
const VALUE: ValueState = {
  name: "layer/act:0", state: "alive", why: "", dtype: "float32", shape: [2, 3], nbytes: 24, finite: 6, nan: 0, inf: 0, min: -1, max: 2.5, mean: 0.25,
  histogram: EMPTY, picture: EMPTY, width: 3, height: 2, low: -1, high: 2.5,
};

function model(debug: DebugState | null = null): GraphModel {
  const graph = new GraphBuilder();
  const x = graph.op("Placeholder", "x");
  const act = graph.op("Tanh", "layer/act", { inputs: [x] });
  graph.op("Sum", "y", { inputs: [act] });
  const made = new GraphModel(false);
  made.applySnapshot(snapshotOf(graph.nodes, { ...SESSION, debug }));
  return made;
}

const told = (...stops: StopState[]): DebugState => ({ breakpoints: [POINT], stops, waiting: [] });

test("a breakpoint is wished for at an operation, and known again there", () => {
  const graph = model();
  const act = targetOf(graph, opBox(1));
  assert.ok(act);
  const wish = wishOf(act, true, " max > 3 ");
  assert.deepEqual([wish.op, wish.is_after, wish.when, wish.hits], ["layer/act", true, "max > 3", 1]);
  assert.equal(standingAt(told(), act, true), POINT);
  assert.equal(standingAt(told(), act, false), null, "it stands after it, not before");
  assert.deepEqual([targetOf(graph, null), targetOf(graph, scopeBox("layer"))], [null, null]);
  graph.level = "lowered";
  assert.equal(targetOf(graph, opBox(1)), null, "what is lowered is no operation of the graph");
});

test("a breakpoint says where it stands where that is elsewhere", () => {
  assert.equal(pointText(POINT), 'after "layer/act"');
  assert.equal(whereText(POINT), "");
  assert.equal(whereText({ ...POINT, ops: [], where: [] }), "in no plan yet");
  assert.equal(whereText({ ...POINT, where: ['"layer/act" stands at "x": merged'] }), '"layer/act" stands at "x": merged');
});

test("a stop says what is next, where, and why it is held", () => {
  const graph = model(told(STOP));
  assert.equal(stopText(graph, STOP), "step 4 \u00b7 next: y");
  const there = "/job:worker/replica:0/task:1/device:CPU:0";
  assert.equal(stopText(graph, { ...STOP, device: there }), "step 4 \u00b7 next: y on worker 1");
  const sends = { ...STOP, device: there, sent: "x", sender: "/job:client/replica:0/task:0/device:CPU:0" };
  assert.equal(stopText(graph, sends), "step 4 \u00b7 next: x goes from this notebook to worker 1");
  const here = "/job:localhost/replica:0/task:0/device:CPU:";
  assert.equal(stopText(graph, { ...sends, device: `${here}1`, sender: `${here}0` }), "step 4 \u00b7 next: x goes from CPU:0 to CPU:1");
  assert.equal(stopText(graph, { ...STOP, op: null, frame: "a/outer:3/inner:0" }).includes("inner iteration 0"), true);
  assert.equal(whyText(told(STOP), STOP), 'breakpoint 1: after "layer/act" when max > 3');
  assert.equal(whyText(told(STOP), { ...STOP, breakpoint: null }), "paused, or moved on by hand");
  assert.equal(whyText({ breakpoints: [], stops: [STOP], waiting: [] }, STOP), "breakpoint 1, which is gone");
});

test("marks stand at operations in plans, and before there is a plan at what was named", () => {
  const graph = model();
  assert.deepEqual([...standing(graph, told())], [[1, true]]);
  const off = { ...POINT, ops: [], where: [], is_enabled: false };
  assert.deepEqual([...standing(graph, { breakpoints: [off], stops: [], waiting: [] })], [[1, false]]);
  assert.deepEqual([...standing(graph, { breakpoints: [off, POINT], stops: [], waiting: [] })], [[1, true]], "one of two is on");
  const rect = { x: 0, y: 0, w: 50, h: 20 };
  const [on, isOff] = breakpointMarks([{ rect, isOn: true }, { rect, isOn: false }], LIGHT, 1);
  assert.ok(on?.kind === "shape" && isOff?.kind === "shape" && on.fill === LIGHT.alert && isOff.fill === LIGHT.background);
});

test("values are asked once, and an answer to an earlier question is passed over", () => {
  const graph = model(told(STOP));
  const debug = new DebugModel(graph);
  const question = questionOf(graph, debug, opBox(1));
  assert.deepEqual(question, { stop: "a.1", tensors: ["layer/act:0"], at: [] });
  assert.ok(question && !debug.isAsked(question));
  const first = debug.await(question);
  assert.ok(debug.isAsked(question));
  const other = questionOf(graph, debug, opBox(2));
  assert.ok(other && !debug.isAsked(other));
  const second = debug.await(other);
  const answer = { error: "", values: [VALUE], view: 1, kind: "values" } as const;
  debug.takeValues({ ...answer, request_id: first });
  assert.equal(debug.answer, null);
  debug.takeValues({ ...answer, request_id: second });
  assert.deepEqual((debug.answer as ValueAnswer | null)?.values, [VALUE]);
  debug.await({ ...other, stop: "a.2" });
  assert.ok(debug.answer, "moved on, the same tensor stays in sight until it is told anew");
  debug.await(question);
  assert.equal(debug.answer, null, "another tensor's value is never shown for this one");
  debug.forget();
  assert.ok(!debug.isAsked(question), "it is asked again");
  assert.ok(isFromKernel({ kind: "values" }));
});

test("nothing is asked where nothing is held, and an empty panel says what to do", () => {
  const idle = model();
  assert.equal(questionOf(idle, new DebugModel(idle), opBox(1)), null);
  assert.match(whyNone(idle, new DebugModel(idle), opBox(1)), /press b for a breakpoint/);
  const graph = model(told(STOP));
  assert.match(whyNone(graph, new DebugModel(graph), null), /Select an operation/);
  assert.match(whyNone(graph, new DebugModel(graph), scopeBox("layer")), /no value of its own/);
});

test("of several held steps the chosen one is looked at while it is there", () => {
  const other = { ...STOP, id: "b.1" };
  const graph = model(told(STOP, other));
  const debug = new DebugModel(graph);
  assert.equal(debug.stop?.id, "a.1");
  debug.chooseStop("b.1");
  assert.equal(debug.stop?.id, "b.1");
  graph.session = { ...SESSION, debug: told(STOP) };
  assert.equal(debug.stop?.id, "a.1");
});

test("a value is told by its figures, and one that is not there by the reason", () => {
  const facts = Object.fromEntries(valueFacts(VALUE).map(({ name, value }) => [name, value]));
  assert.deepEqual([facts.type, facts.finite, facts.min, facts.mean], ["float32[2,3]", "all", "-1.00", "0.250"]);
  const wrong = Object.fromEntries(valueFacts({ ...VALUE, finite: 3, nan: 2, inf: 1 }).map(({ name, value }) => [name, value]));
  assert.equal(wrong.finite?.replace(/[^ -~]/g, " "), "3 of 6, 2 NaNs, 1 infinite");
  const one = valueFacts({ ...VALUE, shape: [], finite: 1, min: 7, max: 7, mean: 7 });
  assert.deepEqual(one.slice(-1), [{ name: "value", value: "7.00" }]);
  const states = ([["gone", 'gone since "b"'], ["not yet", ""], ["absent", "merged"], ["alive", ""]] as const).map(([state, why]) => stateText({ ...VALUE, state, why }));
  assert.deepEqual(states, ['gone since "b"', "not made yet", "not in what runs: merged", ""]);
});

test("levels differ evenly, and what is not finite is told apart", () => {
  for (const theme of [LIGHT, DARK]) {
    const colors = [0, 64, 127, 191, 254, 255].map((level) => heatColor(level, theme));
    assert.equal(new Set(colors).size, colors.length);
  }
});
