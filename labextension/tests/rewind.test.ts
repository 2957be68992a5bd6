/** Going through recorded steps: which there are, and what a step that was gone back to tells. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { DeviceMix } from "../src/model/devices.js";
import type { Heat } from "../src/model/heat.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import type { Positions } from "../src/layout/types.js";
import { bothText, changeText, StepDifference } from "../src/model/step_difference.js";
import { DIFFERENCE, differenceMarks } from "../src/render/difference.js";
import { LIGHT } from "../src/render/theme.js";
import { numpyCode } from "../src/model/value_facts.js";
import { GraphModel } from "../src/model/graph.js";
import { heatOfStep } from "../src/model/heat_step.js";
import { ownTimes } from "../src/model/own_times.js";
import { PastModel } from "../src/model/past.js";
import type { Recording } from "../src/model/recording.js";
import { rangeRows, rangeTable, rangeText } from "../src/model/range.js";
import { nearest, recordedSteps, Rewind, whereText } from "../src/model/rewind.js";
import { Store } from "../src/model/store.js";
import type { TraceModel } from "../src/model/trace.js";

const numbers = (...list: number[]): { readonly number: number }[] => list.map((number) => ({ number }));

test("steps that were traced and those that can be computed again are gone through in one row", () => {
  assert.deepEqual(recordedSteps(numbers(4, 12), { steps: 3, first: 5, last: 7 }), [4, 5, 6, 7, 12]);
  assert.deepEqual(recordedSteps(numbers(12), { steps: 2, first: 5, last: 9 }), [5, 9, 12], "of those with gaps the ends are known");
  assert.deepEqual(recordedSteps([], null), []);
  assert.deepEqual([1, 4, 7, 8, 11, 99].map((n) => nearest([4, 8, 12], n)), [0, 0, 1, 1, 2, 2]);
  assert.deepEqual([whereText([3, 41], null), whereText([3, 12, 41], 12), whereText([], 3)], ["now; steps 3 to 41 are recorded", "step 12 of 3 to 41", ""]);
});

test("playing goes from the first recorded step to the newest one, and any other move ends it", () => {
  const store = new Store();
  const rewind = new Rewind(store, { steps: numbers(3, 5, 9) } as unknown as TraceModel, new PastModel(new GraphModel()));
  rewind.play(rewind);
  const seen = [store.step];
  for (let k = 0; k < 4 && rewind.isPlaying; k++) {
    rewind.tick(rewind);
    seen.push(store.step);
  }
  assert.deepEqual([seen, rewind.isPlaying], [[3, 5, 9, 9], false]);
  rewind.move(1, rewind);
  assert.equal(store.step, null, "behind the newest lies the present");
  rewind.move(-1, rewind);
  assert.equal(store.step, 5);
  rewind.play(rewind);
  rewind.go(9, rewind);
  assert.deepEqual([rewind.isPlaying, store.step], [false, 9]);
});

/** A lane of a device with a loop that has two runs of "h" inside, one of "y" behind it, and a lane of feeds. */
function recording(device: string): Recording {
  return {
    nodes: [{ name: "loop", type: "While", device, phase: "forward", ops: [0] }, { name: "h", type: "Tanh", device, phase: "forward", ops: [1] }, { name: "y", type: "Exp", device, phase: "gradient", ops: [2] }],
    lanes: [{ name: device, kind: "device" }, { name: "feeds", kind: "feeds" }], frames: [],
    step: { number: 7, begin_ns: 0, end_ns: 100, split: {}, error: "", isWhole: true },
    spans: {
      count: 5, lane: [0, 0, 0, 0, 1], node: [0, 1, 1, 2, -1], frame: [-1, 0, 0, -1, -1], iteration: [0, 0, 1, 0, 0],
      begin_ns: Float64Array.from([10, 20, 40, 70, 0]), end_ns: Float64Array.from([60, 35, 55, 90, 10]),
      stands_for: [1, 1, 1, 1, 1], isCritical: [0, 0, 0, 0, 0], bytes: [-1, -1, -1, -1, -1],
    },
    gaps: [], memory: { at_ns: new Float64Array(), bytes: new Float64Array() }, begin_ns: 0, end_ns: 100,
  } as unknown as Recording;
}

test("what runs inside a span is not its own time, and shares of a step are of all that ran in it", () => {
  assert.deepEqual([...ownTimes(recording("d"))], [20, 15, 15, 20, 10]);
  const g = new GraphBuilder();
  for (const [type, name] of [["While", "loop"], ["Tanh", "h"], ["Exp", "y"], ["Exp", "not_run"]] as const) g.op(type, name);
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(g.nodes.map((node) => ({ ...node, placed: "here" }))));
  const ids = ["loop", "h", "y"].map((name) => model.tree.idOf(name) ?? -1);
  const told = recording("there");
  const heat = heatOfStep({ ...told, nodes: told.nodes.map((node, k) => ({ ...node, ops: [ids[k] ?? -1] })) }, model.nodes);
  assert.deepEqual([...heat.self_ns as Float64Array], [20, 30, 20]);
  assert.deepEqual([...heat.count as Float64Array], [1, 2, 1]);
  assert.deepEqual([heat.step, heat.isPart, heat.time[1]], [7, false, 30 / 70]);
  const mix = new DeviceMix(model, new Map([["here", 0], ["there", 1]]), heat.devices);
  assert.deepEqual([...mix.all], [0, 3, 1], "what did not run stood nowhere in it");
});

test("a stretch adds up own time, count and mean by operation, lane and scope; what lies partly in it counts in part", () => {
  const told = recording("/job:localhost/replica:0/task:0/device:CPU:0");
  const of = (begin_ns: number, end_ns: number, by: "op" | "lane" | "scope"): unknown[] =>
    rangeRows(told, { begin_ns, end_ns }, by).map(({ name, sum_ns, count, mean_ns }) => [name, sum_ns, count, mean_ns]);
  assert.deepEqual(of(0, 100, "op"), [["h", 30, 2, 15], ["loop", 20, 1, 20], ["y", 20, 1, 20], ["feeds", 10, 1, 10]]);
  assert.deepEqual(of(0, 100, "lane"), [["/job:localhost/replica:0/task:0/device:CPU:0", 70, 4, 17.5], ["feeds", 10, 1, 10]]);
  assert.deepEqual(of(0, 100, "scope"), [["outside scopes", 70, 4, 17.5], ["feeds", 10, 1, 10]]);
  assert.deepEqual(of(80, 200, "op"), [["y", 10, 1, 10]], "half of it");
  assert.deepEqual(of(92, 99, "op"), []);
  const rows = rangeRows(told, { begin_ns: 0, end_ns: 100 }, "op");
  assert.equal(rangeText({ begin_ns: 0, end_ns: 100 }, rows).replaceAll("\u00a0", " "), "100 ns: 5 slices, 80.0 ns in all lanes");
  assert.equal(rangeTable(rows).split("\n")[1], "h\t0.03\t2\t0.015");
});

test("two steps are compared by box: what took longer, less, is new and gone", () => {
  const g = new GraphBuilder();
  const names = ["a/longer", "a/same", "shorter", "new", "gone"];
  for (const name of names) g.op("Exp", name);
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(g.nodes));
  const id = (name: string): number => model.tree.idOf(name) ?? -1;
  const heat = (times: Readonly<Record<string, number>>): Heat => ({ ops: Object.keys(times).map((name) => [id(name)]), self_ns: Object.values(times) }) as unknown as Heat;
  const difference = new StepDifference(model, heat({ "a/longer": 1000, "a/same": 500, shorter: 3000, gone: 10 }), heat({ "a/longer": 4000, "a/same": 500, shorter: 1000, new: 20 }));
  const text = (box: string): string => changeText(difference.of(box) ?? assert.fail(box)).replaceAll("\u00a0", " ");
  assert.deepEqual(names.map((name) => text(opBox(id(name)))), ["+3.00 µs", "same", "\u22122.00 µs", "new", "gone"]);
  assert.equal(text(scopeBox("a")), "+3.00 µs");
  assert.equal(bothText({ before_ns: 1000, after_ns: null }, 3, 12).replaceAll("\u00a0", " "), "1.00 µs in step 3, did not run in step 12");
  const positions = { boxes: new Map(names.map((name, k) => [opBox(id(name)), { x: 0, y: 50 * k, w: 100, h: 30 }])) } as unknown as Positions;
  const fills = differenceMarks({ of: (box) => difference.of(box), isOpen: () => false }, positions, LIGHT, 1).flatMap((mark) => (mark.kind === "shape" && mark.y % 50 === 0 ? [mark.fill.slice(0, 7)] : []));
  assert.deepEqual([fills[0], fills[2]], [DIFFERENCE.longer, DIFFERENCE.shorter]);
});

test("the code for a value names its step and its slice", () => {
  assert.equal(numpyCode("a/b:0", [3], [], null), 'session.debug.stops[-1].value("a/b:0")');
  assert.equal(numpyCode("a:0", [2, 3, 4], [1], null), 'session.debug.stops[-1].value("a:0", np.s_[1])');
  assert.equal(numpyCode("a:0", [2, 3, 4, 5], [1], 7), 'next(kept.value for kept in reversed(session.debug.history.values("a:0")) if kept.step == 7)[1, 0]');
});
