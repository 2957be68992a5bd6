/** Loops that were made of primitives by hand: shown, told of and watched as others are. */
import assert from "node:assert/strict";
import test from "node:test";
import { snapshotOf } from "../dev/builder.js";
import { byHand } from "../dev/graphs.js";
import { factsOf } from "../src/model/facts.js";
import { runSections } from "../src/model/frame_facts.js";
import { GraphModel } from "../src/model/graph.js";
import { chipsOf } from "../src/model/running.js";
import { endFinder, sizeText, visibleGraph } from "../src/model/visible.js";
import { EdgePaths } from "../src/model/edge_paths.js";
import type { FrameState, Node } from "../src/wire/messages.js";

function modelOf(nodes: readonly Node[]): GraphModel {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return model;
}

const opened = (...open: string[]) => (path: string): boolean => path === "" || open.includes(path);

test("what runs in it lies in a frame of its own, with the scopes that it has inside", () => {
  const model = modelOf(byHand());
  const { boxes } = visibleGraph(model, opened("count", "count/part"));
  const names = (id: string): (string | undefined)[] => (boxes.get(id)?.children ?? []).map((child) => boxes.get(child)?.name);
  assert.deepEqual(names("s:"), ["zero", "n", "count", "after"]);
  assert.deepEqual(names("s:count"), ["begin", "limit", "i", "less", "go", "choose", "part", "back", "end"]);
  assert.deepEqual(names("s:count/part"), ["square"]);
  const box = boxes.get("s:count");
  assert.equal(box?.frame?.name, "begin");
  assert.equal(box && sizeText(box).replace("\u00a0", " "), "loop, 9 ops");
});

test("what returns leads back, and a closed frame takes and gives like an operation", () => {
  const model = modelOf(byHand());
  const id = (name: string): string => `o${model.tree.idOf(name)}`;
  const returns = visibleGraph(model, opened("count")).edges.filter(({ kind }) => kind === "return");
  assert.deepEqual(returns.map(({ from, to }) => [from, to]), [[id("back"), id("i")]]);
  const closed = visibleGraph(model, opened()).edges.filter(({ kind }) => kind === "data");
  assert.deepEqual(closed.map(({ from, to }) => [from, to]), [[id("zero"), "s:count"], [id("n"), "s:count"], ["s:count", id("after")]]);
});

test("a while loop in it lies inside, with its bodies", () => {
  const nodes = byHand();
  const end = nodes.length;
  const plain = nodes[0]!;
  const model = modelOf([
    ...nodes,
    { ...plain, id: end, name: "inner/body/v", type: "Parameter", body: "inner/body" },
    { ...plain, id: end + 1, name: "inner/Loop", type: "Loop", scope: "count", runs: ["inner/body"], roles: ["body"] },
  ]);
  assert.deepEqual(model.tree.ancestry("inner/body"), ["count", "inner", "inner/body"]);
  assert.equal(model.tree.get("count")?.size, 11);
  assert.equal(model.tree.root.size, 14);
});

test("the inspector tells what decides, what varies and what comes from outside", () => {
  const model = modelOf(byHand());
  const facts = factsOf(model, "s:count");
  const told = (title: string): string[] => (facts?.sections.find((s) => s.title === title)?.facts ?? []).map((f) => `${f.name} ${f.value}`.trim());
  assert.equal(facts?.kind, "loop, made by hand");
  assert.deepEqual(told("Goes on"), ["while less:0"]);
  assert.deepEqual(told("Variables"), ["i at first zero:0", "then part/square:0"]);
  assert.deepEqual(told("From outside"), ["int32[] n:0"]);
  assert.deepEqual(told("How"), ["parallel_iterations 4"]);
});

test("its run is seen at its frame, by whichever Enter it is told", () => {
  const model = modelOf(byHand());
  const frame: FrameState = {
    id: "count", loop: model.tree.idOf("limit") ?? -1, name: "count", parent: null, parent_iteration: null, mode: "tokens", iteration: 3,
    limit: 9, iterations_per_s: 8, parallel_iterations: 4, held: "", kept_bytes: null, kept_estimate_bytes: null, window: [],
  };
  model.run = { frames: [frame], position: null, tokens: [], pace_s: 0 };
  const chips = (...open: string[]): readonly unknown[] => {
    const edgePaths = new EdgePaths(model, visibleGraph(model, opened(...open)), endFinder(model, opened(...open)));
    return chipsOf(model.run, (loop) => edgePaths.frameOf(loop));
  };
  assert.deepEqual(chips(), [{ box: "s:count", text: "i = 3" }]);
  assert.deepEqual(chips("count"), [{ box: "s:count", text: "i = 3" }]);
  const titles = (box: string): string[] => runSections(model, box, { frame: "count", number: 3 }).map(({ title }) => title);
  assert.deepEqual(titles("s:count"), ["Chosen", "Now"]);
  assert.deepEqual(titles(`o${model.tree.idOf("square") ?? model.tree.idOf("part/square")}`), ["Chosen"]);
  assert.deepEqual(titles(`o${model.tree.idOf("after")}`), []);
});
