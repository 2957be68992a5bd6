/** Devices: their colours, on which the operations in each box stand, and the question that finds these. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { deviceQuestion, deviceTexts, DeviceMix, devicesOf, shortDevice } from "../src/model/devices.js";
import { GraphModel } from "../src/model/graph.js";
import { withShortNames } from "../src/model/fact.js";
import type { Heat } from "../src/model/heat.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import { measuredText, movable, PlacementModel, placementFacts, predictionText } from "../src/model/placement.js";
import type { Recording } from "../src/model/recording.js";
import { search } from "../src/model/search.js";
import { transferFacts } from "../src/model/transfers.js";
import { barMarks, deviceMarks, segments } from "../src/render/devices.js";
import { toSvg } from "../src/render/svg.js";
import { deviceColor, devicePattern, LIGHT } from "../src/render/theme.js";
import type { MovePrediction, MoveState, Node, OpPlacementState, Placement, SessionState } from "../src/wire/messages.js";

const at = (device: string): string => `/job:localhost/replica:0/task:0/device:${device}`;

/** Two layers: three operations on CPU:1, one of the second on CPU:10, and one that has not run. */
function split(): GraphModel {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  const a = g.op("MatMul", "one/a", { inputs: [x] });
  const b = g.op("Relu", "one/deep/b", { inputs: [a] });
  const c = g.op("MatMul", "two/c", { inputs: [b] });
  g.op("Relu", "two/d", { inputs: [c] });
  const places: Readonly<Record<string, string>> = { "one/a": "CPU:1", "one/deep/b": "CPU:1", "two/c": "CPU:1", "two/d": "CPU:10" };
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(g.nodes.map((node) => ({ ...node, placed: places[node.name] ? at(places[node.name] ?? "") : null }))));
  return model;
}

const sessionOf = (...devices: string[]): SessionState => ({ devices: devices.map(at) }) as unknown as SessionState;

test("a device has one colour in the graph and in the program as cut, whatever stands on it there", () => {
  const session = sessionOf("GPU:1", "CPU:0", "GPU:0");
  const number = ({ nodes }: GraphModel): number | undefined => devicesOf({ nodes, session }).get(at("GPU:1"));
  assert.deepEqual([number(split()), number(new GraphModel())], [2, 2]);
});

test("a scope counts the operations inside by device, and those that are not placed", () => {
  const model = split();
  const devices = devicesOf({ nodes: model.nodes, session: sessionOf("CPU:2") });
  assert.deepEqual([...devices.keys()].map((name) => shortDevice(name, devices.keys())), ["CPU:2", "CPU:1", "CPU:10"]);
  const mix = new DeviceMix(model, devices);
  const of = (box: string): number[] | null => { const counts = mix.of(box); return counts && [...counts]; };
  assert.deepEqual(["one", "one/deep", "two"].map((path) => of(scopeBox(path))), [[0, 2, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0]]);
  assert.deepEqual([...mix.all], [0, 3, 1, 1]);
  assert.deepEqual(of(opBox(model.tree.idOf("two/d") ?? -1)), [0, 0, 1, 0]);
  assert.equal(of(scopeBox("gone")), null);
});

test("what stands on a device is found, and not what stands on one whose name begins alike", () => {
  const model = split();
  const names = [...devicesOf(model).keys()];
  const found = (device: string): string[] => search(model, deviceQuestion(device, names)).ops.map((id) => model.nodes.get(id)?.name ?? "");
  assert.deepEqual(found(at("CPU:10")), ["two/d"]);
  assert.deepEqual(found(at("CPU:1")), ["one/a", "one/deep/b", "two/c"]);
  // Of several tasks the whole name is sought: its slashes end no expression.
  const far = at("CPU:1").replace("task:0", "task:1");
  assert.deepEqual(search(model, deviceQuestion(at("CPU:1"), [...names, far])).ops.length, 3);
  assert.deepEqual(search(model, `device:${at("CPU:10")}`).ops.length, 1);
});

test("eight devices have colours of their own, the next eight a pattern as well", () => {
  assert.equal(new Set(Array.from({ length: 8 }, (_, i) => deviceColor(i))).size, 8);
  const looks = Array.from({ length: 64 }, (_, i) => `${deviceColor(i)} ${devicePattern(i)}`);
  assert.equal(new Set(looks).size, 64);
  const bar = { x: 0, y: 0, w: 60, h: 6 };
  assert.equal(barMarks(bar, 7, LIGHT).length, 1);
  assert.ok(barMarks(bar, 8, LIGHT).length > barMarks(bar, 16, LIGHT).length && barMarks(bar, 16, LIGHT).length > 1);
});

test("a bar has a part for each device, and hides none", () => {
  const counts = Uint32Array.from([1, 0, 999, 5]);
  const parts = segments(counts, { x: 10, w: 100 });
  assert.deepEqual(parts.map(({ device }) => device), [0, 2]);
  assert.ok((parts[0]?.w ?? 0) >= 4);
  assert.equal(Math.round(parts.reduce((sum, { w }) => sum + w, 0)), 100);
  assert.deepEqual(segments(Uint32Array.from([0, 3]), { x: 0, w: 10 }), []);
});

test("over a closed scope lie the colours of its devices; an open one has them at its top", () => {
  const model = split();
  const mix = new DeviceMix(model, devicesOf(model));
  const rect = { x: 0, y: 0, w: 100, h: 40 };
  const marks = (isOpen: boolean): ReturnType<typeof deviceMarks> => deviceMarks(
    { counts: (box) => mix.of(box), isOpen: () => isOpen }, { w: 100, h: 40, boxes: new Map([["s:two", rect]]) } as never, LIGHT, 1,
  );
  const fills = marks(false).map((mark) => mark.kind === "shape" && mark.fill);
  assert.deepEqual(fills, [`${deviceColor(0)}30`, `${deviceColor(1)}30`, deviceColor(0), deviceColor(1)]);
  assert.deepEqual(marks(true).map((mark) => mark.kind === "shape" && mark.y), [2, 2]);
});

test("the saved picture names its devices below, by their colours and patterns", () => {
  const devices = new Map(Array.from({ length: 10 }, (_, i) => [at(`CPU:${i}`), i] as const));
  const text = toSvg({ w: 10, h: 10, background: "#fff", font: "x", text: "#000", muted: "#555", marks: [] }, { title: "", note: "", description: "", devices });
  assert.equal(text.split(deviceColor(0)).length - 1, 2);
  assert.equal(text.split(deviceColor(3)).length - 1, 1);
  assert.match(text, />CPU:9</);
});

test("the inspector tells the reason, the devices that could be chosen, and what was measured", () => {
  const model = new PlacementModel();
  let changes = 0;
  model.changed.connect(() => (changes += 1), new AbortController().signal);
  const op: OpPlacementState = {
    name: "one/a", type: "MatMul", requested: "", device: at("CPU:1"), reason: "earliest finish",
    candidates: [{ device: at("CPU:0"), seconds: 0.002, reason: "" }, { device: at("CPU:1"), seconds: 0.001, reason: "" }, { device: at("GPU:0"), seconds: null, reason: "no kernel" }],
  };
  const answer = (request_id: number): Placement => ({ kind: "placement", view: 1, request_id, error: "", op, move: null });
  const first = model.ask("other").request_id;
  const second = model.ask("one/a").request_id;
  model.take(answer(first));
  assert.equal(model.of("one/a"), null, "an answer to an earlier question");
  changes = 0;
  model.take(answer(second));
  model.take(answer(second));
  assert.deepEqual([changes, model.of("one/a")?.reason, model.of("one/b")], [1, "earliest finish", null]);
  const heat = { ops: [[3], [4]], count: [1, 2], self_ns: [5, 3000] } as unknown as Heat;
  const said = withShortNames({ title: "", facts: placementFacts(op, heat, 4) }, deviceTexts({ nodes: new Map(), session: sessionOf("CPU:0", "CPU:1", "GPU:0") })).facts;
  assert.equal(said[1]?.title, at("CPU:0"), "the full name is in the title");
  const told = said.map(({ name, value }) => `${name}: ${value}`.replaceAll("\u00a0", " "));
  assert.deepEqual(told, [
    "because: earliest finish", "CPU:0: done after 2.00 ms", "CPU:1: chosen, done after 1.00 ms", "GPU:0: no kernel", "measured: 1.50 µs each time",
  ]);
  assert.deepEqual(placementFacts(null, heat, 9), []);
});

test("a move is thought of, predicted, and forgotten; an answer to another question is none", () => {
  const model = new PlacementModel();
  const wish = model.propose({ name: "one/", parts: [] }, at("CPU:10"));
  assert.deepEqual([wish.name, wish.device, model.proposal?.told], ["one/", at("CPU:10"), null]);
  const move: MovePrediction = { device: at("CPU:10"), before_s: 0.012, after_s: 0.008, moved_bytes: 5, refused: "" };
  const answer: Placement = { kind: "placement", view: 1, request_id: wish.request_id, error: "", op: null, move };
  model.take({ ...answer, request_id: model.ask("x").request_id, move: null });
  assert.equal(model.proposal?.told, null);
  model.take(answer);
  assert.equal(predictionText(model.proposal?.told ?? move).replaceAll("\u00a0", " "), "predicted: 12.0 ms → 8.00 ms a step");
  model.forget();
  assert.equal(model.proposal, null);
  model.take(answer);
  assert.equal(model.proposal, null, "it is not wanted any more");
  const moved: MoveState = { name: "one/", device: at("CPU:10"), before_s: 0.012, after_s: 0.008, measured_before_s: 0.02, measured_after_s: null, clock: "wall" as const };
  assert.equal(measuredText(moved), "measured: after the next step (wall clock)");
  assert.equal(measuredText({ ...moved, measured_after_s: 0.01, clock: "simulated" }).replaceAll("\u00a0", " "), "measured: 20.0 ms → 10.0 ms a step (simulated clock)");
});

test("layers that are folded into a stack move as one", () => {
  const g = new GraphBuilder();
  let x = g.op("Placeholder", "x");
  for (let i = 0; i < 8; i++) x = g.op("Tanh", `layer_${i}/b`, { inputs: [g.op("MatMul", `layer_${i}/a`, { inputs: [x, x] })] });
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(g.nodes));
  const stack = [...model.tree.root.scopes.values()].find(({ group }) => group?.kind === "stack");
  const what = movable(model, scopeBox(stack?.path ?? ""));
  assert.deepEqual([what?.parts.length, what?.parts.includes("layer_3/a")], [16, true]);
  assert.match(what?.name ?? "", /layer/);
});

test("operations and scopes of the user's can be moved, in the graph as written alone", () => {
  const model = split();
  assert.deepEqual([movable(model, scopeBox("one")), movable(model, opBox(model.tree.idOf("one/a") ?? -1))], [{ name: "one/", parts: [] }, { name: "one/a", parts: [] }]);
  assert.deepEqual([movable(model, "s:"), movable(model, null), movable(model, "s:gone")], [null, null, null]);
  model.level = "lowered";
  assert.equal(movable(model, scopeBox("one")), null);
});

test("what goes from one device to another tells how much, and in a recorded step how often and how fast", () => {
  const g = new GraphBuilder();
  const a = g.op("Exp", "a");
  const nodes = g.nodes.map((node) => ({ ...node, outputs: [{ dtype: "float32", shape: [1000] }] }));
  const ends = { tensor_name: "'a'", send_device: `'${at("CPU:0")}'`, recv_device: `'${at("GPU:0")}'` };
  const send = { ...nodes[0]!, id: 8, name: "a/to_GPU:0", type: "Send", attributes: ends, inputs: [[a, 0]] as const };
  const recv = { ...send, id: 9, name: "a/from_CPU:0", type: "Recv", inputs: [[8, 0]] as const };
  const model = new GraphModel();
  model.applySnapshot({ ...snapshotOf([...nodes, send, recv]), level: "partitions" });
  const node = (name: string): Node => model.nodes.get(model.tree.idOf(name) ?? -1)!;
  const recording = {
    nodes: [{ name: "a", type: "Exp" }, { name: "a/to_GPU:0", type: "Transfer" }],
    lanes: [{ kind: "device" }, { kind: "transfer" }],
    // A Recv that waits in its device's lane is no time of the way.
    spans: { count: 4, lane: [0, 1, 1, 0], node: [0, 1, 1, 1], begin_ns: [0, 10, 1010, 0], end_ns: [10, 1010, 2010, 2010], stands_for: [1, 1, 1, 1], bytes: [-1, 4000, 8000, -1] },
  } as unknown as Recording;
  const told = (name: string): string[] => transferFacts(model, node(name), recording).map((fact) => `${fact.name}: ${fact.value}`.replaceAll("\u00a0", " "));
  const expected = [`from: ${at("CPU:0")}`, `to: ${at("GPU:0")}`, "each time: 4.00 kB", "in the recorded step: 2 times, 12.0 kB, 6 000 MB/s"];
  assert.deepEqual([told("a/to_GPU:0"), told("a/from_CPU:0"), told("a")], [expected, expected, []]);
  const each = (shape: readonly (number | null)[] | null): string | undefined =>
    transferFacts(model, { ...send, outputs: [{ dtype: "float32", shape }] }, null)[2]?.value.replaceAll("\u00a0", " ");
  assert.deepEqual([each([null, 4]), each(null), each([2])], ["differs: shapes do not tell it", "differs: shapes do not tell it", "8 B"]);
});

test("a device is called by its task where there are several, and with its number where its type has a second one", () => {
  const of = (task: string, device: string): string => `/job:${task.replace(" ", "/replica:0/task:")}/device:${device}`;
  const two = [of("client 0", "CPU:0"), of("worker 0", "CPU:0"), of("worker 1", "CPU:0"), of("worker 1", "GPU:0"), of("worker 1", "GPU:1")];
  assert.deepEqual(two.map((one) => shortDevice(one, two)), ["this notebook, CPU", "worker 0, CPU", "worker 1, CPU", "worker 1, GPU:0", "worker 1, GPU:1"]);
  const session = { devices: two } as unknown as SessionState;
  const say = deviceTexts({ nodes: new Map(), session });
  assert.equal(say(`from ${two[1]} to '${two[4]}' of /job:worker/task:1`), "from worker 0, CPU to 'worker 1, GPU:1' of /job:worker/task:1");
  assert.equal(deviceTexts({ nodes: new Map(), session: sessionOf("CPU:0", "CPU:1") })(`on ${at("CPU:1")}`), "on CPU:1");
});
