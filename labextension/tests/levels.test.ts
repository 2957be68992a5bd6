/** The graph as written and the program as lowered; what always runs; queues. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { factsOf } from "../src/model/facts.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox } from "../src/model/ids.js";
import { counterpart } from "../src/model/counterpart.js";
import { levelText, queueSections } from "../src/model/level_facts.js";
import { linksOf } from "../src/model/links.js";
import { visibleGraph } from "../src/model/visible.js";
import type { Node, SessionState } from "../src/wire/messages.js";

const LOOP = [{ id: 77, name: "loop/Loop", type: "Loop" }];

/** A loop of one variable as primitives. */
function primitives(): Node[] {
  const g = new GraphBuilder();
  const one = (type: string, inputs: (number | readonly [number, number])[]): number => g.op(type, `loop/${type}`, { inputs, madeFrom: LOOP });
  const start = g.op("Const", "start");
  const enter = one("Enter", [start]);
  const merge = one("Merge", [enter]);
  const test_ = one("LoopCond", [g.op("Less", "loop/cond/Less", { inputs: [merge], madeFrom: [{ id: 5, name: "loop/cond/Less", type: "Less" }] })]);
  const choice = one("Switch", [merge, test_]);
  one("Exit", [choice]);
  const next = one("NextIteration", [g.op("Add", "loop/body/add", { inputs: [[choice, 1]] })]);
  return g.nodes.map((node) => (node.id === merge ? { ...node, inputs: [...node.inputs, [next, 0] as const] } : node));
}

function modelOf(nodes: readonly Node[], level: GraphModel["level"] = "lowered", session: SessionState | null = null): GraphModel {
  const model = new GraphModel();
  model.applySnapshot({ ...snapshotOf(nodes, session), level });
  return model;
}

const idOf = (model: GraphModel, name: string): number => model.tree.idOf(name) ?? -1;

test("a back edge of primitives is a return, in the scope that both ends lie in", () => {
  const model = modelOf(primitives());
  const [merge, next] = ["loop/Merge", "loop/NextIteration"].map((name) => opBox(idOf(model, name)));
  const open = visibleGraph(model, (path) => path === "" || path === "loop");
  const returns = open.edges.filter(({ kind }) => kind === "return");
  assert.deepEqual(returns.map(({ from, to }) => [from, to]), [[next, merge]]);
  const links = linksOf(open).filter(({ kind }) => kind === "return");
  assert.deepEqual(links.map(({ scope, from, to }) => [scope, from, to]), [["s:loop", next, merge]]);
  const closed = visibleGraph(model, (path) => path === "");
  assert.ok(closed.edges.every(({ kind, from, to }) => kind === "data" && from !== to), "a closed loop returns to nothing");
});

test("a primitive leads to its loop in the graph as written", () => {
  const model = modelOf(primitives());
  assert.equal(model.level, "lowered");
  const source = (name: string): unknown => factsOf(model, opBox(idOf(model, name)))?.sections.find(({ title }) => title === "In the graph as written")?.facts;
  assert.deepEqual(source("loop/Switch"), [{ name: "part of the loop", value: "loop/Loop", leadsTo: "o77", level: "graph" }]);
  assert.deepEqual(source("loop/cond/Less"), [{ name: "", value: "loop/cond/Less", leadsTo: "o5", level: "graph" }]);
  assert.equal(source("start"), undefined);
});

test("what runs for a branch alone whichever is taken is marked, and tells the branch", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  const squared = g.op("Square", "squared", { inputs: [x] });
  const cond = g.op("Cond", "choice", { inputs: [x, squared], always: [squared] });
  const model = modelOf(g.nodes, "graph");
  const { boxes } = visibleGraph(model, (path) => path === "");
  assert.equal(boxes.get(opBox(squared))?.kind, "Square, always runs");
  assert.equal(boxes.get(opBox(x))?.kind, "Placeholder");
  const titles = (op: number): string[] => factsOf(model, opBox(op))?.sections.map(({ title }) => title) ?? [];
  assert.ok(titles(squared).includes("Always runs"));
  assert.ok(titles(cond).includes("Runs whichever branch is taken"));
});

test("a queue's handle tells what is in the queue now", () => {
  const g = new GraphBuilder();
  const handle = g.op("FIFOQueue", "orders");
  const queues = [{ op: handle, size: 3, capacity: 10, enqueues: 0, dequeues: 2, is_closed: true, fills_itself: false, least: 2, per_s: 120, waits: [], error: "", stamp: null, dropped: 0 }];
  const session = { state: "idle", steps: 1, steps_per_s: null, step_time_s: null, progress: null, queues, helpers: [], failure: null, debug: null, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [] } as const;
  const model = modelOf(g.nodes, "graph", session);
  const [section] = queueSections(model, opBox(handle));
  assert.deepEqual(section?.facts.map(({ value }) => value.replace("\u00a0", " ")), ["3 of 10, closed", "120 elements/s", "2 operations wait"]);
  assert.deepEqual(queueSections(model, null), []);
});

test("of a program it is said which fetches it is of", () => {
  const model = modelOf(primitives());
  assert.equal(levelText(model), "program of the latest step");
  model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, session: null, run: null, graph: {
    version: 2, added: [], placed: [], changed: [], removed: [], marked: [], fetches: ["a", "b", "c", "d", "e"],
  } });
  assert.equal(levelText(model), "program of a, b, c and 2 more");
  assert.equal(levelText(modelOf(primitives(), "graph")), "classifier");
});

test("what is selected is found again in another program and at the other level", () => {
  const lowered = modelOf(primitives().map((node) => (node.type === "Enter" ? { ...node, frame: "loop" } : node)));
  const node = (model: GraphModel, name: string): Node => model.nodes.get(idOf(model, name))!;
  const written = new GraphBuilder();
  const loop = { ...written.nodes[written.op("Loop", "loop/Loop", { runs: ["loop/body"], roles: ["body"] })]!, id: 77 };
  const add = { ...written.nodes[written.op("Add", "loop/body/add", { body: "loop/body" })]!, id: 99 };
  const graph = modelOf([loop, add], "graph");
  assert.equal(counterpart(lowered, loop), "s:loop");
  assert.equal(counterpart(graph, node(lowered, "loop/Switch")), "s:loop");
  assert.equal(counterpart(lowered, { ...add, id: 1234 }), opBox(idOf(lowered, "loop/body/add")));
  assert.equal(counterpart(lowered, { ...add, name: "gone", id: 5, type: "Less" }), opBox(idOf(lowered, "loop/cond/Less")));
  assert.equal(counterpart(lowered, { ...add, name: "gone", id: 4321 }), null);
});
