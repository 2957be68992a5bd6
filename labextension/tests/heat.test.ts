/** Shares of a step: on boxes, in the table, on lines; and branches that were not taken. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { loops, mlp } from "../dev/graphs.js";
import { stateOf, tableOf } from "../dev/recording.js";
import { costRows, lineCosts, madeText } from "../src/model/costs.js";
import { basisText, shareText } from "../src/model/figures.js";
import { GraphModel } from "../src/model/graph.js";
import { HeatBoxes, heatOf, untakenBoxes, type Heat } from "../src/model/heat.js";
import { opBox } from "../src/model/ids.js";
import { TraceModel } from "../src/model/trace.js";
import { heatMarks } from "../src/render/heat.js";
import { rampColor, rampInk } from "../src/render/ramp.js";
import { DARK, LIGHT } from "../src/render/theme.js";
import type { Node, ProgramState, TraceState } from "../src/wire/messages.js";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

function modelOf(nodes: readonly Node[]): GraphModel {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return model;
}

const idOf = (model: GraphModel, name: string): number => model.tree.idOf(name) ?? -1;

/** A slow product in a layer, made of two operations; others that are quick. */
function slow(): { model: GraphModel; heat: Heat } {
  const model = modelOf(mlp());
  const id = (name: string): number => idOf(model, name);
  const state = stateOf([
    [[id("layer1/matmul"), id("layer1/add")], 0, 2, 800, 800], [[id("layer1/relu")], 0, 2, 50, 50], [[id("layer2/matmul")], 0, 2, 100, 100],
    [[id("train/gradients/layer1_grad/w_grad")], 1, 2, 50, 50],
  ]);
  return { model, heat: heatOf(state.heat, 0, model.nodes, (one) => one) };
}

test("a box sums what is inside; what several operations were made one is counted once", () => {
  const { model, heat } = slow();
  const boxes = new HeatBoxes(model, heat.ops);
  boxes.take(heat.time);
  const rounded = (box: string): number | null => {
    const share = boxes.of(box);
    return share === null ? null : Number(share.toFixed(6));
  };
  assert.deepEqual(["s:layer1", "s:layer2", "s:train"].map(rounded), [0.85, 0.1, 0.05]);
  assert.deepEqual([opBox(idOf(model, "layer1/matmul")), opBox(idOf(model, "layer1/add"))].map(rounded), [0.8, 0.8]);
  assert.equal(boxes.of(opBox(idOf(model, "y"))), null, "nothing is told of it");
  boxes.take(heat.time.length ? Array.from(heat.time, () => 0) : []);
  assert.equal(boxes.of("s:layer1"), 0, "the sums follow");
});

test("the table has the slow operation on top, grouped as one likes", () => {
  const { model, heat } = slow();
  const top = (grouping: Parameters<typeof costRows>[2], filter = ""): [string, string, string] => {
    const [row] = costRows(model, heat, grouping, "self", filter);
    return [row?.name ?? "", row?.detail ?? "", plain(shareText(row?.share ?? 0))];
  };
  assert.deepEqual(top("op"), ["layer1/matmul", "MatMul", "80 %"]);
  assert.deepEqual(top("type"), ["MatMul", "3 ops", "95 %"]);
  assert.deepEqual(top("scope"), ["layer1/", "2 ops", "85 %"]);
  assert.deepEqual(top("phase"), ["forward", "3 ops", "95 %"]);
  assert.deepEqual(top("device"), ["/device:CPU:0", "4 ops", "100 %"]);
  assert.equal(top("line")[0].startsWith("cell 3, line "), true);
  assert.deepEqual(top("op", "RELU"), ["layer1/relu", "Relu", "5 %"]);
  assert.deepEqual(costRows(model, heat, "op", "self", "nothing is called so"), []);
  const [first] = costRows(model, heat, "op", "count", "");
  assert.deepEqual([first?.count, first?.self_ns, first?.total_ns], [2, 800_000, 800_000]);
});

test("groups add up to what their operations do", () => {
  const { model, heat } = slow();
  const sum = (grouping: Parameters<typeof costRows>[2]): number => Math.round(costRows(model, heat, grouping, "bytes", "").reduce((all, { self_ns }) => all + self_ns, 0));
  for (const grouping of ["type", "scope", "line", "device", "phase"] as const) assert.equal(sum(grouping), sum("op"), grouping);
});

test("bytes of dimensions that are not known are not told as if they were one", () => {
  const graph = new GraphBuilder();
  const all = graph.op("Exp", "net/known", { shape: [10, 8] });
  graph.op("Exp", "net/rows", { shape: [null, 8], inputs: [all] });
  graph.op("Exp", "other/any", { shape: null, inputs: [all] });
  const model = modelOf(graph.nodes);
  const state = stateOf(["net/known", "net/rows", "other/any"].map((name) => [[idOf(model, name)], 0, 2, 10, 10]));
  const heat = heatOf(state.heat, 0, model.nodes, (one) => one);
  const made = (grouping: Parameters<typeof costRows>[2]): Record<string, string> =>
    Object.fromEntries(costRows(model, heat, grouping, "bytes", "").map((row) => [row.name, plain(madeText(row))]));
  assert.deepEqual(made("op"), { "net/known": "640 B", "net/rows": "? bytes", "other/any": "? bytes" });
  assert.deepEqual(made("scope"), { "net/": "640 B and more", "other/": "? bytes" });
  assert.deepEqual([...Array.from(heat.memory)], [1, 0, 0], "a share is of what is known");
});

test("lines have the shares of what they made", () => {
  const { model, heat } = slow();
  const lines = lineCosts(model, heat);
  assert.equal(Number(lines.reduce((sum, { share }) => sum + share, 0).toFixed(6)), 1);
  assert.equal(lines.reduce((sum, { ops }) => sum + ops, 0), model.nodes.size);
  assert.ok(lineCosts(model, null).every(({ share }) => share === 0));
});

test("a branch that was not taken is told apart, once its operation has run", () => {
  const model = modelOf(loops());
  const body = (name: string): number => [...model.nodes.values()].find((node) => node.body === name && node.type !== "Parameter")?.id ?? -1;
  const branch = [...model.nodes.values()].find(({ roles }) => roles.includes("then"))!;
  const [then = "", other = ""] = branch.runs;
  const heat = (...ops: number[]): Heat => heatOf(stateOf(ops.map((op) => [[op], 0, 1, 1, 1])).heat, 0, model.nodes, (one) => one);
  assert.deepEqual([...untakenBoxes(model, heat(body(then)))], [`s:${other}`]);
  assert.deepEqual([...untakenBoxes(model, heat(body(then), body(other)))], []);
  assert.deepEqual([...untakenBoxes(model, heat())], []);
});

test("bars are drawn over boxes where these are, and change nothing else", () => {
  const rect = { x: 10, y: 20, w: 100, h: 40 };
  const positions = { w: 200, h: 100, boxes: new Map([["a", rect], ["b", { ...rect, y: 80 }], ["c", rect]]), routes: new Map(), labels: new Map() };
  const shares: Readonly<Record<string, number>> = { a: 0.5, b: 0.001 };
  const marks = heatMarks({ share: (box) => shares[box] ?? null, untaken: new Set(["c"]), isOpen: () => false }, positions as never, LIGHT, 1);
  const bars = marks.filter((mark) => mark.kind === "shape" && mark.h === 4);
  assert.deepEqual(bars.map((mark) => mark.kind === "shape" && mark.w), [90, 45, 90, 1.5], "a track and the share of it for each box");
  assert.deepEqual(marks.flatMap((mark) => (mark.kind === "text" ? [plain(mark.text)] : [])), ["50 %"], "small shares have no figures");
  assert.equal(marks.filter((mark) => mark.kind === "shape" && mark.isDashed).length, 1);
});

test("the ramp runs from pale to dark on light paper, and the other way on dark", () => {
  const lightness = (color: string): number => (color.match(/\d+/g) ?? []).map(Number).reduce((sum, one) => sum + one, 0);
  const along = (theme: typeof LIGHT): number[] => [0, 0.05, 0.3, 1].map((share) => lightness(rampColor(share, theme)));
  assert.deepEqual(along(LIGHT), [...along(LIGHT)].sort((a, b) => b - a));
  assert.deepEqual(along(DARK), [...along(DARK)].sort((a, b) => a - b));
  assert.notEqual(rampInk(0, LIGHT), rampInk(1, LIGHT));
  assert.deepEqual([0, 0.0004, 0.0123, 0.634, 1].map(shareText).map(plain), ["0 %", "< 0.1 %", "1.2 %", "63 %", "100 %"]);
});

test("a trace keeps the answer to the latest question, and forgets all with a snapshot that tells nothing", () => {
  const g = new GraphBuilder();
  const op = g.op("Add", "add");
  const trace = new TraceModel(modelOf(g.nodes));
  const told: string[] = [];
  trace.changed.connect((what) => told.push(what));
  trace.takeState(stateOf([[[op], 0, 1, 5, 5]]), 0);
  assert.deepEqual([trace.isRecording, trace.traced, trace.steps.map(({ number }) => number), trace.heat?.ops], [true, 1, [7], [[op]]]);
  trace.takeState(null, 0);
  assert.deepEqual([trace.isRecording, trace.heat, trace.steps.length, trace.recording], [false, null, 0, null]);
  assert.deepEqual(told, ["state", "state", "spans"]);
});

test("programs are shown apart: the one that takes the most time, or the chosen one, with its age", () => {
  const g = new GraphBuilder();
  const [train, both] = [g.op("Add", "train"), g.op("Mul", "both")];
  const trace = new TraceModel(modelOf(g.nodes));
  const names = ["id", "program", "node", "phase", "count", "self_us", "total_us", "share"];
  const rows = [[train, 4, 0, 0, 1, 9, 9, 0.9], [both, 4, 1, 0, 1, 1, 1, 0.1], [both, 2, 2, 0, 3, 6, 6, 1]];
  const heat = tableOf(Object.fromEntries(names.map((name, k) => [name, rows.map((row) => row[k] ?? 0)])));
  const programs: TraceState["programs"] = [
    { number: 4, name: "train", basis: "median", steps: 12, age_s: 2 }, { number: 2, name: "test", basis: "first", steps: 1, age_s: 60 },
  ];
  trace.takeState(stateOf([[[train], 0, 1, 5, 5]], { heat, programs }), 1000);
  const shown = (): unknown[] => [trace.program?.name, trace.heat?.ops, [...Array.from(trace.heat?.time ?? [])]];
  assert.deepEqual(shown(), ["train", [[train], [both]], [0.9, 0.1]]);
  assert.equal(plain(basisText(trace.program ?? assert.fail(), trace.ageAt(4000))), "median of 12 steps of train, 5 s old, without the first");
  let changes = 0;
  trace.changed.connect(() => (changes += 1));
  trace.choose("test");
  assert.deepEqual([...shown(), changes], ["test", [[both]], [1], 1]);
  assert.equal(plain(basisText(trace.program ?? assert.fail(), trace.ageAt(1000 + 90_000))), "the first recorded step of test, 2 min old");
  trace.takeState(stateOf([[[train], 0, 1, 5, 5]], { heat, programs: programs.slice(0, 1) }), 1000);
  assert.equal(trace.program?.name, "train", "the chosen one is not told any more");
});

test("figures say what they were made of", () => {
  const said = (basis: ProgramState["basis"], steps: number, name: string, age_s: number): string => plain(basisText({ number: 0, name, basis, steps, age_s }, age_s));
  assert.equal(said("mean", 50, "", -1), "mean of 50 steps");
  assert.equal(said("parts", 1, "loop", 0.4), "1 part of long or failed steps of loop, just now");
  assert.equal(said("median", 1, "y", 8000), "median of 1 step of y, 2 h old, without the first");
});
