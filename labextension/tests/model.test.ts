/** Scopes, the visible graph, links across walls, and what the user chose. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { functions, mlp } from "../dev/graphs.js";
import { calledBox, relatedBoxes } from "../src/model/bodies.js";
import { firstOpen, OpenScopes } from "../src/model/open_scopes.js";
import { Store } from "../src/model/store.js";
import { factsOf } from "../src/model/facts.js";
import { clock, duration, rate, significant, typeText, whole } from "../src/model/figures.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox } from "../src/model/ids.js";
import { linksOf } from "../src/model/links.js";
import { markedBoxes } from "../src/model/marked.js";
import { endFinder, sizeText, visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import { readSavedView } from "../src/plugin/saved_view.js";
import type { GraphChange, Node } from "../src/wire/messages.js";

const NO_CHANGE: GraphChange = { version: 2, added: [], placed: [], changed: [], removed: [], marked: [], fetches: [] };

function modelOf(nodes: readonly Node[]): GraphModel {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return model;
}

const see = (model: GraphModel, ...open: string[]): VisibleGraph =>
  visibleGraph(model, (path) => path === "" || open.includes(path));
const edgesOf = (graph: VisibleGraph): string[] =>
  graph.edges.map((e) => `${e.from} ${e.kind === "data" ? "-" : "."}${e.count} ${e.to} ${e.label}`.trim());

test("an op with the name of a scope lies in that scope, whichever came first", () => {
  const g = new GraphBuilder();
  g.op("VariableV2", "w");
  g.op("Identity", "w/read", { inputs: [0] });
  g.op("Const", "a/v/first");
  g.op("VariableV2", "a/v");
  const { tree } = modelOf(g.nodes);
  assert.deepEqual([...tree.root.scopes.keys()], ["w", "a"]);
  assert.equal(tree.root.ops.size, 0);
  assert.deepEqual([...(tree.get("w")?.ops ?? [])], [0, 1]);
  assert.deepEqual([...(tree.get("a/v")?.ops ?? [])], [2, 3]);
  assert.equal(tree.get("a")?.size, 2);
  assert.equal(tree.root.size, 4);
});

test("a delta adds operations, moves an op into a new scope and sets placements", () => {
  const g = new GraphBuilder();
  g.op("VariableV2", "w", { placed: null });
  const model = modelOf(g.nodes);
  g.op("Identity", "w/read", { inputs: [0] });
  model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, session: null, run: null, graph: { ...NO_CHANGE, added: [g.nodes[1]!], placed: [[0, "/device:GPU:0"]] } });
  assert.equal(model.tree.homeOf(0).path, "w");
  assert.equal(model.nodes.get(0)?.placed, "/device:GPU:0");
  assert.deepEqual(model.consumersOf(0), [1]);
});

test("operations change and leave when a cell is run again, and what came of it is marked", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x", { shape: [2] });
  const old = g.op("Neg", "s/t/old", { inputs: [x] });
  const y = g.op("Relu", "s/y", { inputs: [old] });
  const model = modelOf(g.nodes);
  const fresh = g.op("Exp", "s/new", { inputs: [x] });
  const changed = { ...g.nodes[y]!, type: "Tanh", inputs: [[fresh, 0] as const], stale: "re-run cell 5" };
  model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, session: null, run: null, graph: {
    ...NO_CHANGE, added: [g.nodes[fresh]!], changed: [changed], removed: [old], marked: [y, fresh],
  } });
  assert.deepEqual([...model.nodes.keys()], [x, y, fresh]);
  assert.equal(model.nodes.get(y)?.type, "Tanh");
  assert.equal(model.tree.get("s/t"), undefined);
  assert.equal(model.tree.root.size, 3);
  assert.deepEqual(model.consumersOf(x), [fresh]);
  assert.deepEqual([...markedBoxes(model)].sort(), ["o2", "o3", "s:s"]);
  const told = factsOf(model, "o2")?.sections.at(-1)?.facts.map((f) => `${f.name}: ${f.value}`);
  assert.deepEqual(told, ["new or changed: by the latest cell", "stale: re-run cell 5"]);
  model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 2, session: null, run: null, graph: NO_CHANGE });
  assert.deepEqual([...markedBoxes(model)], []);
});

test("an operation that takes over a name is the same box", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  const y = g.op("Neg", "y", { inputs: [x] });
  const model = modelOf(g.nodes);
  const tell = (change: Partial<GraphChange>): void =>
    model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, session: null, run: null, graph: { ...NO_CHANGE, ...change } });
  const [newX, newY] = [{ ...g.nodes[x]!, id: 7, type: "Const" }, { ...g.nodes[y]!, id: 8, inputs: [[7, 0] as const] }];
  tell({ added: [newX, newY], marked: [7, 8] });
  tell({ removed: [x, y], placed: [[8, "/device:GPU:0"]], marked: [8] });
  assert.deepEqual([...model.nodes.values()].map(({ id, type, inputs }) => [id, type, inputs]), [
    [x, "Const", []], [y, "Neg", [[x, 0]]],
  ]);
  assert.equal(model.nodes.get(y)?.placed, "/device:GPU:0");
  assert.deepEqual([...markedBoxes(model)], [`o${y}`]);
  tell({ removed: [8] });
  assert.deepEqual([...model.nodes.keys()], [x]);
});

test("edges are bundled between what can be seen", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x", { shape: [null, 3] });
  const a = g.op("Square", "s/a", { inputs: [x], shape: [2] });
  g.op("Add", "s/b", { inputs: [x, a], control: [x], shape: [2] });
  const model = modelOf(g.nodes);
  assert.deepEqual(edgesOf(see(model)), ["o0 -2 s:s float32[?,3]", "o0 .1 s:s"]);
  assert.deepEqual(edgesOf(see(model, "s")), [
    "o0 -1 o1 float32[?,3]", "o0 -1 o2 float32[?,3]", "o1 -1 o2 float32[2]", "o0 .1 o2",
  ]);
});

test("a label stands only where all edges carry the same", () => {
  const g = new GraphBuilder();
  g.op("Split", "s/a", { outputs: [{ dtype: "int32", shape: [1] }, { dtype: "int32", shape: [2] }] });
  g.op("Add", "t", { inputs: [[0, 0], [0, 1]] });
  assert.deepEqual(edgesOf(see(modelOf(g.nodes))), ["s:s -2 o1"]);
});

test("a line passes each wall through one port and fans out behind it", () => {
  const g = new GraphBuilder();
  const a = g.op("Const", "p/a");
  g.op("Neg", "q/r/b", { inputs: [a] });
  g.op("Neg", "q/r/c", { inputs: [a] });
  const graph = see(modelOf(g.nodes), "p", "q", "q/r");
  assert.deepEqual(linksOf(graph).map((link) => `${link.scope}: ${link.from} > ${link.to} x${link.targets.length}`).sort(), [
    "s:: s:p > s:q x2", "s:p: o0 > null x2", "s:q/r: null > o1 x1", "s:q/r: null > o2 x1", "s:q: null > s:q/r x2",
  ]);
});

test("scopes that are built alike have the same number, others none", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  const [a, b] = ["one", "two"].map((name) => g.op("Exp", `${name}/exp`, { inputs: [g.op("Neg", `${name}/neg`, { inputs: [x] })] }));
  g.op("Add", "other/add", { inputs: [g.op("Mul", "other/mul", { inputs: [a ?? 0, b ?? 0] }), x] });
  const { boxes } = see(modelOf(g.nodes));
  const likeness = (path: string): number | undefined => boxes.get(`s:${path}`)?.likeness;
  assert.ok((likeness("one") ?? 0) > 0);
  assert.equal(likeness("one"), likeness("two"));
  assert.equal(likeness("other"), 0);
});

test("whole depths open while the first picture stays small", () => {
  const model = modelOf(mlp());
  const none = (): boolean => false;
  assert.deepEqual(firstOpen(model.tree.root, 30, none).sort(), ["layer1", "layer2", "loss", "train"]);
  assert.deepEqual(firstOpen(model.tree.root, 8, none), []);
});

test("the user's choice beats the automatic one", () => {
  const model = modelOf(mlp());
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model);
  assert.ok(scopes.isOpen("loss"));
  assert.ok(!scopes.isOpen("train"), "what only serves the model says enough closed");
  scopes.setOpen("loss", false);
  scopes.begin(model);
  assert.ok(!scopes.isOpen("loss"));
  assert.ok(!scopes.isAutomatic("loss"), "what the user has chosen is not changed by itself");
  const others = new OpenScopes(new Store(), {});
  others.begin(model);
  assert.ok(others.isAutomatic("loss"));
  others.close(["loss"]);
  assert.ok(!others.isOpen("loss"));
});

test("a function's body is a closed scope that its calls lead to, and that leads to its calls", () => {
  const model = modelOf(functions());
  assert.deepEqual([...model.bodies.keys()], ["layer", "layer_grad"]);
  const graph = see(model, "layer");
  const box = (name: string): string => `o${model.tree.idOf(name) ?? -1}`;
  assert.deepEqual(["s:layer", "s:layer_grad", "s:gradients"].map((id) => {
    const box = graph.boxes.get(id)!;
    return `${box.name}: ${sizeText(box)}`.replaceAll("\u00a0", " ");
  }), ["\u0192 layer: 4 ops, 2 calls", "\u0192 layer_grad: 2 ops, 2 calls", "gradients: 3 ops"]);
  assert.equal(calledBox(model, box("layer_1")), "s:layer");
  assert.equal(calledBox(model, "s:layer"), null);
  const endOf = endFinder(model, (path) => path !== "gradients");
  assert.deepEqual([...relatedBoxes(model, "s:layer", endOf)], [box("layer_1"), box("layer_2")]);
  assert.deepEqual([...relatedBoxes(model, "s:layer_grad", endOf)], ["s:gradients"]);
  assert.deepEqual([...relatedBoxes(model, box("layer_1"), endOf)], ["s:layer"]);
  assert.deepEqual([...relatedBoxes(model, null, endOf)], []);
});

test("what stands in a body lies there, whatever its name", () => {
  const g = new GraphBuilder();
  const w = g.op("VarHandleOp", "w");
  const read = g.op("ReadVariableOp", "w/read", { inputs: [w] });
  const x = g.op("Parameter", "f/x", { body: "f" });
  const inside = g.op("ReadVariableOp", "w/read_1", { inputs: [x], body: "f" });
  const model = modelOf(g.nodes);
  assert.deepEqual([w, read, x, inside].map((id) => model.tree.homeOf(id).path), ["w", "w", "f", "f"]);
  assert.equal(see(model, "f").boxes.get(`o${inside}`)?.name, "w/read_1");
  assert.deepEqual(edgesOf(see(model)), []);
  const moved = { ...g.nodes[inside]!, body: "" };
  model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, session: null, run: null, graph: { ...NO_CHANGE, changed: [moved] } });
  assert.equal(model.tree.homeOf(inside).path, "w");
});

test("a result leaves through the lower wall of an open body", () => {
  const model = modelOf(functions());
  const walls = (...open: string[]): string[] => linksOf(see(model, ...open))
    .filter((link) => link.to === null).map((link) => `${link.scope} ${link.from} ${link.label}`);
  assert.deepEqual(walls("layer"), [`s:layer o${model.tree.idOf("layer/Relu") ?? -1} float32[?,4]`]);
  assert.deepEqual(walls(), []);
});

test("gradients stay closed in the first picture, and so do those of functions", () => {
  const model = modelOf(functions());
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model);
  assert.deepEqual(["layer", "gradients", "layer_grad"].map((path) => scopes.isOpen(path)), [true, false, false]);
});

test("the inspector's facts of a body, of a call and of a result", () => {
  const model = modelOf(functions());
  const told = (box: string, title: string): string[] =>
    (factsOf(model, box)?.sections.find((s) => s.title === title)?.facts ?? []).map((f) => `${f.name} ${f.value} ${f.leadsTo}`);
  const box = (name: string): string => `o${model.tree.idOf(name) ?? -1}`;
  assert.equal(factsOf(model, "s:layer")?.kind, "function");
  assert.deepEqual(told("s:layer", "Called by"), [`call layer_1 ${box("layer_1")}`, `call layer_2 ${box("layer_2")}`]);
  assert.deepEqual(told("s:layer", "Parameters"), [`float32[?,4] layer/x ${box("layer/x")}`, `float32[4,4] layer/w ${box("layer/w")}`]);
  assert.deepEqual(told("s:layer", "Results"), [`float32[?,4] layer/Relu ${box("layer/Relu")}`]);
  assert.equal(factsOf(model, box("layer_1"))?.kind, "\u0192\u00a0layer");
  assert.deepEqual(told(box("layer_1"), "Calls"), ["function \u0192\u00a0layer s:layer"]);
  assert.deepEqual(told(box("layer/Relu"), "Goes to"), ["result of \u0192\u00a0layer s:layer"]);
});

test("a saved snapshot of before there were functions is still read", () => {
  const { body, is_result, calls, runs, stale, ...old } = mlp()[0]!;
  const { snapshot } = readSavedView({ snapshot: { ...snapshotOf([]), graph: { version: 1, added: [old] } } });
  assert.deepEqual(snapshot?.graph.added, [{ ...old, body, is_result, calls, runs, stale }]);
  assert.deepEqual(snapshot?.graph.marked, []);
});

test("the inspector's facts of an op and of a scope", () => {
  const model = modelOf(mlp());
  const id = model.tree.idOf("layer1/matmul") ?? -1;
  const facts = factsOf(model, `o${id}`);
  assert.equal(facts?.kind, "MatMul");
  assert.deepEqual(facts?.sections[0]?.facts.map((f) => `${f.name} ${f.value}`), [
    "float32[?,784] x:0", "float32[784,128] layer1/w/read:0",
  ]);
  const scope = factsOf(model, "s:loss");
  assert.deepEqual(scope?.sections.map((s) => s.title), ["Inside", "Inputs", "Outputs"]);
  assert.equal(factsOf(model, "o99999"), null);
});

test("figures have three digits, units and grouped digits", () => {
  const plain = (text: string): string => text.replaceAll("\u00a0", " ");
  assert.equal(plain(whole(1234567)), "1 234 567");
  assert.equal(plain(rate(1243.7)), "1 240 steps/s");
  assert.deepEqual([0, 0.01234, 9.996, 99.96, 3.14159].map(significant), ["0", "0.0123", "10.0", "100", "3.14"]);
  assert.deepEqual([1.5, 0.00321, 0.000804, 2e-8, 0.99999].map((s) => plain(duration(s))),
    ["1.50 s", "3.21 ms", "804 \u00b5s", "20.0 ns", "1.00 s"]);
  assert.deepEqual([41, 3723].map(clock), ["0:41", "1:02:03"]);
  assert.equal(typeText({ dtype: "float32", shape: null }), "float32[...]");
});

test("of what a line makes only the value that it assigns has the variable's name, of several none", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  const product = g.op("MatMul", "MatMul", { inputs: [x] });
  const sum = g.op("Add", "Add", { inputs: [product] });
  const first = g.op("Tanh", "Tanh", { inputs: [sum] });
  const second = g.op("Tanh", "Tanh_1", { inputs: [sum] });
  const from = (id: number, line: number, variable: string): void => {
    g.nodes[id] = { ...g.nodes[id]!, origin: { file: null, cell: 1, line, text: "", function: "", variable } };
  };
  for (const id of [product, sum]) from(id, 1, "scores");
  for (const id of [first, second]) from(id, 2, "both");
  const boxes = visibleGraph(modelOf(g.nodes), () => true).boxes;
  const names = [product, sum, first, second].map((id) => boxes.get(opBox(id))?.name);
  assert.deepEqual(names, ["MatMul", "scores", "Tanh", "Tanh_1"]);
});

test("what the user gave no name is called by the Python variable of its line", () => {
  const g = new GraphBuilder();
  const from = (id: number, variable: string): void => {
    const node = g.nodes[id]!;
    g.nodes[id] = { ...node, origin: { file: null, cell: 1, line: id, text: "", function: "", variable } };
  };
  const x = g.op("Placeholder", "Placeholder");
  const w = g.op("VarHandleOp", "Variable_3");
  const product = g.op("MatMul", "MatMul", { inputs: [x, w] });
  const named = g.op("Relu", "hidden", { inputs: [product] });
  const [a, b] = [g.op("Tanh", "Tanh", { inputs: [named] }), g.op("Tanh", "Tanh_1", { inputs: [named] })];
  const axis = g.op("Const", "Const");
  const mean = g.op("Mean", "Mean", { inputs: [a, axis] });
  [[x, "images"], [w, "w2"], [product, "scores"], [named, "h1"], [mean, "loss"], [axis, "loss"]].forEach(([id, variable]) => from(id as number, variable as string));
  from(a, "state");
  g.nodes[b] = { ...g.nodes[b]!, origin: g.nodes[a]!.origin };
  const model = modelOf(g.nodes);
  const boxes = visibleGraph(model, () => true).boxes;
  const names = [x, w, product, named, a, b, axis, mean].map((id) => boxes.get(opBox(id))?.name);
  assert.deepEqual(names, ["images", "w2", "scores", "hidden", "Tanh", "Tanh_1", "Const", "loss"]);
});
