/** What is sought in a graph, and one box alone. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { feedFacts } from "../src/model/feeds.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import { isolated } from "../src/model/isolate.js";
import { search } from "../src/model/search.js";
import { Store } from "../src/model/store.js";
import { visibleGraph } from "../src/model/visible.js";
import { Finder } from "../src/view/finder.js";

/** x -> dense1/MatMul -> dense1/Relu -> dense2/MatMul -> loss; y -> loss; dense1/w, dense2/w. */
function perceptron(): GraphModel {
  const made = new GraphBuilder();
  const x = made.op("Placeholder", "x", { shape: [null, 4] });
  const y = made.op("Placeholder", "y", { dtype: "int64", shape: [null] });
  const w1 = made.op("VarHandleOp", "dense1/w");
  const a = made.op("MatMul", "dense1/MatMul", { inputs: [x, w1], placed: "/device:GPU:0" });
  const h = made.op("Relu", "dense1/Relu", { inputs: [a] });
  const w2 = made.op("VarHandleOp", "dense2/w");
  const b = made.op("MatMul", "dense2/MatMul", { inputs: [h, w2] });
  made.op("SoftmaxLoss", "loss", { inputs: [b, y] });
  const model = new GraphModel();
  const snapshot = snapshotOf(made.nodes);
  model.applySnapshot({ ...snapshot, graph: { ...snapshot.graph, marked: [h, b] } });
  return model;
}

function names(model: GraphModel, question: string): string[] {
  return search(model, question).ops.map((id) => model.nodes.get(id)?.name ?? "");
}

test("by name and op type, in program order; with a slash whole names count", () => {
  const model = perceptron();
  assert.deepEqual(names(model, "matmul"), ["dense1/MatMul", "dense2/MatMul"]);
  assert.deepEqual(names(model, "dense1/"), ["dense1/w", "dense1/MatMul", "dense1/Relu"]);
  assert.deepEqual(names(model, "dense1"), [], "a scope's name is not the name of all that is in it");
  assert.deepEqual(names(model, "type:placeholder"), ["x", "y"]);
  assert.deepEqual(names(model, "  "), []);
});

test("by device, dtype and line; all terms hold", () => {
  const model = perceptron();
  assert.deepEqual(names(model, "device:gpu"), ["dense1/MatMul"]);
  assert.deepEqual(names(model, "dtype:int64"), ["y"]);
  assert.deepEqual(names(model, "type:Placeholder dtype:[?,4]"), ["x"]);
  assert.deepEqual(names(model, "line:2"), ["y"]);
  assert.deepEqual(names(model, "line:fs.relu"), ["dense1/Relu"]);
});

test("by regular expressions; what is wrong with one is said", () => {
  const model = perceptron();
  assert.deepEqual(names(model, "/dense\\d\\/mat/"), ["dense1/MatMul", "dense2/MatMul"]);
  assert.deepEqual(names(model, "type:/^(relu|softmax)/"), ["dense1/Relu", "loss"]);
  assert.match(search(model, "/dense(/").problem, /[Uu]nterminated|[Ii]nvalid/);
});

test("what a cell has changed, and what must be fed to fetch something", () => {
  const model = perceptron();
  assert.deepEqual(names(model, "is:changed"), ["dense1/Relu", "dense2/MatMul"]);
  assert.deepEqual(names(model, "is:fed to:dense2"), ["x"]);
  assert.deepEqual(names(model, "is:fed to:loss"), ["x", "y"]);
  assert.match(search(model, "is:wrong").problem, /changed, stale/);
});

test("what is another than in a graph that it is compared with", () => {
  const difference = new Map([["x", "altered"], ["loss", "added"], ["gone", "removed"]]);
  const found = (question: string): number[] => [...search(perceptron(), question, difference).ops];
  assert.deepEqual([found("is:different"), found("is:added"), found("is:altered")], [[0, 7], [7], [0]]);
});

test("the ways from one operation or scope to another", () => {
  const model = perceptron();
  assert.deepEqual(names(model, "from:x to:dense2/MatMul"), ["x", "dense1/MatMul", "dense1/Relu", "dense2/MatMul"]);
  assert.deepEqual(names(model, "from:dense2 to:x"), []);
  assert.deepEqual(names(model, "from:dense1/Relu"), ["dense1/Relu", "dense2/MatMul", "loss"]);
  assert.match(search(model, "from:nothing").problem, /no operation and no scope "nothing"/);
});

test("the inspector says what must be fed to fetch something", () => {
  const model = perceptron();
  assert.deepEqual(feedFacts(model, 7).map(({ name, value }) => [name, value]), [["float32[?,4]", "x"], ["int64[?]", "y"]]);
  assert.deepEqual(feedFacts(model, 6).map(({ value }) => value), ["x"]);
  assert.deepEqual(feedFacts(model, 2).map(({ value }) => value), ["nothing"]);
  assert.deepEqual(feedFacts(model, 0), [], "a placeholder is fed itself");
});

test("a box alone keeps what is in it and what it is joined to", () => {
  const model = perceptron();
  const graph = visibleGraph(model, (path) => path === "" || path === "dense1");
  const alone = isolated(graph, scopeBox("dense1"));
  const known = [...alone.boxes.keys()].sort();
  assert.ok(known.includes(opBox(0)) && known.includes(scopeBox("dense2")) && known.includes(opBox(4)), known.join());
  assert.ok(!known.includes(opBox(1)) && !known.includes(opBox(7)), "y and the loss are not joined to it");
  assert.deepEqual(alone.boxes.get(scopeBox(""))?.children.filter((id) => !alone.boxes.has(id)), []);
  assert.equal(isolated(graph, opBox(99)), graph);
});

test("what is found is walked through in both directions, and follows question and graph", () => {
  const model = perceptron();
  const store = new Store();
  const finder = new Finder(model, store);
  let told = 0;
  finder.changed.connect(() => (told += 1));
  store.setFind("type:MatMul", {});
  finder.update();
  assert.deepEqual([finder.text(null), finder.next(null, 1), finder.next(null, -1)], ["2 found", opBox(3), opBox(6)]);
  assert.deepEqual([finder.text(opBox(6)), finder.next(opBox(6), 1), finder.next(opBox(6), -1)], ["2 of 2", opBox(3), opBox(3)]);
  finder.update();
  assert.equal(told, 1, "nothing is sought anew for nothing");
  store.setFind("nothing_like_it", {});
  finder.update();
  assert.deepEqual([finder.text(null), finder.next(null, 1)], ["nothing found", null]);
  store.setFind("", {});
  finder.update();
  assert.deepEqual([finder.text(null), finder.isOn], ["", false]);
});
