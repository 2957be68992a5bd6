/** Loops and branches: what lies in their frames, and where lines lead. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { functions, loops } from "../dev/graphs.js";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import { walk } from "../src/layout/walk.js";
import { factsOf } from "../src/model/facts.js";
import { runSections } from "../src/model/frame_facts.js";
import { GraphModel } from "../src/model/graph.js";
import { linksOf, edgePathsOf } from "../src/model/links.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import { framePath, type Scope } from "../src/model/scopes.js";
import { Store } from "../src/model/store.js";
import { visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import type { FrameState, Node } from "../src/wire/messages.js";

function modelOf(nodes: readonly Node[]): GraphModel {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return model;
}

const see = (model: GraphModel, ...open: string[]): VisibleGraph =>
  visibleGraph(model, (path) => path === "" || open.includes(path));
const WHILE = ["while", "while/cond", "while/body"];

/** Edges with names in the place of ids. */
function edgesOf(graph: VisibleGraph, ...kinds: string[]): string[] {
  const nameOf = (box: string): string => graph.boxes.get(box)?.node?.name ?? box;
  return graph.edges.filter(({ kind }) => kinds.includes(kind)).map((edge) => `${nameOf(edge.from)} > ${nameOf(edge.to)}`).sort();
}

test("a loop and a branch are the scopes that were made for them, with their bodies inside", () => {
  const model = modelOf(loops());
  const { boxes } = see(model, ...WHILE, "choose");
  assert.deepEqual(boxes.get("s:while")?.children.map((id) => boxes.get(id)?.name), ["zero", "cond", "body", "Loop"]);
  assert.deepEqual(boxes.get("s:choose")?.children.map((id) => boxes.get(id)?.name), ["then", "else", "Cond"]);
  assert.equal(boxes.get("s:while")?.frame?.name, "while/Loop");
  const kinds = boxes.get("s:while/body")?.children.map((id) => boxes.get(id)).map((box) => `${box?.name} ${box?.kind}`);
  assert.deepEqual(kinds, ["i variable", "y variable", "x from outside", "next Add", "mul Mul", "tanh Tanh"]);
});

test("a loop opens by itself without its condition, whose variables stand in the body again", () => {
  const model = modelOf(loops());
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model);
  assert.deepEqual(WHILE.map((path) => scopes.isOpen(path)), [true, false, true]);
});

test("a body that is named elsewhere lies in the frame of the operation that runs it", () => {
  const g = new GraphBuilder();
  const p = g.op("Parameter", "while/body_grad/g", { body: "while/body_grad" });
  g.op("Neg", "while/body_grad/Neg", { inputs: [p], body: "while/body_grad", result: true });
  const model = modelOf(g.nodes);
  assert.ok(model.tree.get("while"));
  const loop = g.op("Loop", "gradients/while_grad", { runs: ["while/body_grad"], roles: ["body"] });
  model.applyDelta({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, session: null, run: null, graph: {
    version: 2, added: [g.nodes[loop]!], placed: [], changed: [], removed: [], marked: [], fetches: [],
  } });
  assert.equal(model.tree.get("while"), undefined, "nothing is left there");
  assert.deepEqual(model.tree.ancestry("while/body_grad"), ["gradients", "gradients/while_grad", "while/body_grad"]);
  assert.deepEqual(["gradients", "gradients/while_grad", "while/body_grad"].map((path) => model.tree.get(path)?.size), [3, 3, 2]);
  assert.equal(model.tree.homeOf(loop).path, "gradients/while_grad");
  const sizes = (scope: Scope): number => scope.ops.size + [...scope.scopes.values()].reduce((sum, inner) => sum + sizes(inner), 0);
  assert.equal(sizes(model.tree.root), model.tree.root.size);
});

test("a frame takes the scope of its name only where that was made for it", () => {
  const path = (name: string, runs: string[], body = ""): string => framePath({ name, type: "Loop", runs, body });
  assert.equal(path("while/Loop", ["while/body", "while/cond"]), "while");
  assert.equal(path("a/Loop", ["b/body"]), "a/Loop");
  assert.equal(path("while/Loop_1", ["while/body_1"]), "while/Loop_1");
  assert.equal(path("while/body/Loop", ["while/body/x"], "while/body"), "while/body/Loop");
  assert.equal(path("while/body/inner/Loop", ["while/body/inner/body"], "while/body"), "while/body/inner");
});

test("a closed frame takes and gives like an operation", () => {
  const model = modelOf(loops());
  const graph = see(model);
  assert.deepEqual(edgesOf(graph, "data"), [
    "is_large > s:choose", "n > s:while", "s:choose > z", "s:while > s:choose", "s:while > sum", "sum > is_large",
    "x > s:choose", "x > s:while",
  ]);
  assert.deepEqual(edgesOf(graph, "return", "decides"), []);
});

test("in an open loop data leads to the parameters, comes from the results, and returns", () => {
  const model = modelOf(loops());
  const graph = see(model, ...WHILE);
  assert.deepEqual(edgesOf(graph, "return"), [
    "while/body/next > while/body/i", "while/body/next > while/cond/i",
    "while/body/tanh > while/body/y", "while/body/tanh > while/cond/y",
  ]);
  assert.deepEqual(edgesOf(graph, "decides"), ["while/Loop > s:while/body"]);
  const data = edgesOf(graph, "data");
  const there = ["x > while/body/y", "x > while/cond/y", "x > while/body/x", "n > while/cond/n", "while/zero > while/body/i",
    "while/cond/less > while/Loop", "while/body/tanh > sum", "while/body/tanh > s:choose"];
  for (const edge of there) assert.ok(data.includes(edge), edge);
  assert.ok(!data.some((edge) => edge.endsWith("> while/Loop") && !edge.startsWith("while/cond/less")));
});

test("an open branch takes its predicate, and both results go on", () => {
  const model = modelOf(loops());
  const graph = see(model, "choose", "choose/then");
  assert.deepEqual(edgesOf(graph, "decides"), ["choose/Cond > s:choose/else", "choose/Cond > s:choose/then"]);
  const data = edgesOf(graph, "data");
  for (const edge of ["is_large > choose/Cond", "s:while > choose/then/y", "s:while > s:choose/else", "x > s:choose/else",
    "choose/then/half > z", "s:choose/else > z"]) assert.ok(data.includes(edge), edge);
});

test("a return leaves its body below, runs around it and enters from above", () => {
  const model = modelOf(loops());
  const graph = see(model, ...WHILE);
  const [tanh, y] = ["while/body/tanh", "while/body/y"].map((name) => `o${model.tree.idOf(name)}`);
  const edge = graph.edges.find(({ kind, from, to }) => kind === "return" && from === tanh && to === y)!;
  const links = new Map(linksOf(graph).map((link) => [link.id, link]));
  const way = edgePathsOf(graph)(edge).map((id) => links.get(id)!);
  assert.deepEqual(way.map(({ scope, from, to, kind }) => [scope, from, to, kind]), [
    ["s:while/body", tanh, null, "data"], ["s:while", "s:while/body", "s:while/body", "return"], ["s:while/body", null, y, "data"],
  ]);
  const positions = layoutTree(layoutJob(graph, roughMeasure).root, new LayoutMemory());
  const body = positions.boxes.get("s:while/body")!;
  const frame = positions.boxes.get("s:while")!;
  const route = positions.routes.get(way[1]!.id)!;
  const xs = route.filter((_, k) => k % 2 === 0);
  const ys = route.filter((_, k) => k % 2 === 1);
  assert.ok(Math.max(...xs) > body.x + body.w && Math.max(...xs) < frame.x + frame.w, "beside the body, in the frame");
  assert.deepEqual([ys[0], ys[ys.length - 1]], [body.y + body.h, body.y]);
  assert.equal(route[0], positions.routes.get(way[0]!.id)!.at(-2), "through one port");
  assert.equal(route.at(-2), positions.routes.get(way[2]!.id)![0]);
});

test("a closed body shows its returns beside its other lines", () => {
  const model = modelOf(loops());
  const graph = see(model, "while");
  assert.deepEqual(edgesOf(graph, "return"), ["s:while/body > s:while/body", "s:while/body > s:while/cond"]);
  const { root, links } = layoutJob(graph, roughMeasure);
  const route = layoutTree(root, new LayoutMemory()).routes.get(links.find(({ kind, to }) => kind === "return" && to === "s:while/body")!.id)!;
  assert.equal(route.length, 12);
});

test("the arrow keys follow the data, not the returns", () => {
  const model = modelOf(loops());
  const graph = see(model, ...WHILE);
  const positions = layoutTree(layoutJob(graph, roughMeasure).root, new LayoutMemory());
  const box = (name: string): string => `o${model.tree.idOf(name)}`;
  assert.equal(walk(graph, positions, box("while/body/tanh"), "up"), box("while/body/mul"));
  assert.equal(walk(graph, positions, box("while/cond/less"), "down"), box("while/Loop"));
});

test("the inspector's facts of a frame and of what enters it", () => {
  const model = modelOf(loops());
  const told = (box: string, title: string): string[] =>
    (factsOf(model, box)?.sections.find((s) => s.title === title)?.facts ?? []).map((f) => `${f.name} ${f.value}`.trim());
  const box = (name: string): string => `o${model.tree.idOf(name)}`;
  assert.equal(factsOf(model, "s:while")?.kind, "Loop");
  assert.deepEqual(told("s:while", "Goes on"), ["while while/cond/less:0"]);
  assert.deepEqual(told("s:while", "Variables"),
    ["i at first while/zero:0", "then while/body/next:0", "y at first x:0", "then while/body/tanh:0"]);
  assert.deepEqual(told("s:while", "From outside"), ["int32[] n:0", "float32[4] x:0"]);
  assert.deepEqual(told("s:choose", "Decides"), ["if is_large:0"]);
  assert.deepEqual(told("s:choose", "Branches"), ["then then", "else else"]);
  assert.deepEqual(told(box("while/body/y"), "Stands for"), ["at first x:0", "then while/body/tanh:0"]);
  assert.deepEqual(told(box("while/body/x"), "Stands for"), ["from outside x:0", "the same in all iterations"]);
  assert.deepEqual(told(box("choose/else/x"), "Stands for"), ["from outside x:0", "computed whichever branch is taken"]);
});

test("the inspector tells how often a loop runs, and what it keeps", () => {
  const told = (attributes: Readonly<Record<string, string>>, title: string, leaves: Node["leaves"] = []): string[] => {
    const model = modelOf(loops().map((node) => {
      if (node.type === "Const") return { ...node, attributes: { value: "20" } };
      return node.type === "Loop" ? { ...node, attributes, leaves, inputs: [[1, 0], ...node.inputs] } : node;
    }));
    return (factsOf(model, "s:while")?.sections.find((s) => s.title === title)?.facts ?? []).map((f) => `${f.name} ${f.value}`.trim());
  };
  const mul = loops().findIndex(({ name }) => name === "while/body/mul");
  assert.deepEqual(told({ has_count: "True" }, "Goes on"), ["while while/cond/less:0", "at most 20"]);
  assert.deepEqual(told({ back_prop: "True" }, "Keeps for the gradient"), ["nothing: no gradient needs it"]);
  assert.deepEqual(told({ back_prop: "False" }, "Keeps for the gradient"), ["nothing: back_prop=False"]);
  assert.deepEqual(told({ back_prop: "True" }, "Keeps for the gradient", [[mul, 0, 3]]), ["float32[4] while/body/mul:0"]);
  assert.deepEqual(told({ parallel_iterations: "4", recompute: "True" }, "How"),
    ["parallel_iterations 4", "recompute the backward loop computes the body again"]);
  assert.deepEqual(told({ has_count: "True" }, "Attributes"), []);
});

test("the inspector tells of a running loop, and of the iteration that is chosen", () => {
  const model = modelOf(loops());
  const id = (name: string): number => model.tree.idOf(name) ?? -1;
  const frame: FrameState = {
    id: "while", loop: id("while/Loop"), name: "while/Loop", parent: null, parent_iteration: null, mode: "tokens", iteration: 12,
    limit: 1000, iterations_per_s: 8, parallel_iterations: 4, held: "", kept_bytes: 10, kept_estimate_bytes: 4e7,
    window: [{ number: 12, state: "running", finished: 3, total: 7 }],
  };
  const told = (box: string, number: number | null = null): string[] =>
    runSections(model, box, number === null ? null : { frame: "while", number })
      .flatMap((s) => [s.title, ...s.facts.map((f) => `${f.name} ${f.value}`)]).map((text) => text.replaceAll("\u00a0", " "));
  assert.deepEqual(told("s:while", 12), []);
  model.run = { frames: [frame], position: null, tokens: [], pace_s: 0 };
  const now = ["Now", "runs by tokens", "iterations 1 000", "will keep 40.0 MB"];
  assert.deepEqual(told("s:while"), now);
  assert.deepEqual(told(`o${id("while/Loop")}`), now);
  const chosen = ["Chosen", "iteration 12 of while, running, 3 of 7 ops"];
  assert.deepEqual(told("s:while", 12), [...chosen, ...now]);
  assert.deepEqual(told(`o${id("while/body/mul")}`, 12), chosen);
  assert.deepEqual(told("s:while/cond", 12), chosen);
  assert.deepEqual(told(`o${id("while/body/mul")}`, 11), ["Chosen", "iteration 11 of while, no longer in flight"]);
  assert.deepEqual(["s:choose", `o${id("x")}`, "o99999"].flatMap((box) => told(box, 12)), []);
  model.run = { ...model.run, frames: [{ ...frame, limit: null, kept_estimate_bytes: null }, { ...frame, id: "b" }] };
  assert.deepEqual(told("s:while"), ["Now", "runs by tokens", "frames 2", "will keep 40.0 MB"]);
});

test("a frame of before its ends were told takes what enters at what decides", () => {
  const nodes = loops().map((node) => ({ ...node, roles: [], predicate: null, carried: [], enters: [], leaves: [] }));
  const model = modelOf(nodes);
  const graph = see(model, ...WHILE);
  assert.deepEqual(edgesOf(graph, "return", "decides"), []);
  assert.ok(edgesOf(graph, "data").includes("x > while/Loop"));
  assert.equal(graph.boxes.get("s:while/body")?.name, "body");
});

test("functions are no frames", () => {
  assert.equal(modelOf(functions()).frames.size, 0);
});
