/** Work in slices: the model is as it was until all is done, and what comes out is what comes at once. */
import assert from "node:assert/strict";
import test from "node:test";
import { snapshotOf } from "../dev/builder.js";
import { deep, mlp } from "../dev/graphs.js";
import { GraphModel } from "../src/model/graph.js";
import type { Scope } from "../src/model/scopes.js";
import { seenGraph, visibleGraph } from "../src/model/visible.js";
import type { Delta, GraphChange, Node } from "../src/wire/messages.js";
import type { Sliced } from "../src/wire/sliced.js";

const CHANGE: GraphChange = { version: 1, added: [], placed: [], changed: [], removed: [], marked: [], fetches: [] };
const DELTA = { kind: "delta", skipped: 0, view: 0, seq: 1, session: null, run: null, trace: null } as unknown as Delta;

/** Does all stretches of work; `between` is called between two of them. Returns how many there were. */
function stretches<T>(work: Sliced<T>, between: () => void = () => undefined): { count: number; found: T } {
  for (let count = 1; ; count++) {
    const step = work.next();
    if (step.done) return { count, found: step.value };
    between();
  }
}

function textOf(scope: Scope): string {
  const inner = [...scope.scopes.values()].map(textOf).sort().join();
  return `${scope.path}[${[...scope.ops].sort((a, b) => a - b).join()}](${inner})${scope.parent?.path ?? ""} ${scope.likeness}`;
}

function later(nodes: readonly Node[], count: number): Node[] {
  const last = nodes[nodes.length - 1]!;
  return Array.from({ length: count }, (_, k): Node => ({
    ...last, id: last.id + 1 + k, name: `later/add_${k}`, type: "Add", inputs: [[last.id + k, 0]], control: [],
  }));
}

test("a snapshot in slices counts when all of it is there", () => {
  const model = new GraphModel();
  let told = 0;
  model.changed.connect(() => (told += 1), new AbortController().signal);
  const { count } = stretches(model.takeSnapshot(snapshotOf(deep(4000))), () => {
    assert.equal(model.nodes.size, 0);
    assert.equal(model.tree.root.size, 0);
    assert.equal(told, 0);
  });
  assert.ok(count > 20, `${count} stretches`);
  assert.equal(told, 1);
  const whole = new GraphModel();
  whole.applySnapshot(snapshotOf(deep(4000)));
  assert.equal(textOf(model.tree.root as Scope), textOf(whole.tree.root as Scope));
});

test("a delta in slices leaves the model whole between two of them", () => {
  const nodes = deep(3000);
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  const before = textOf(model.tree.root as Scope);
  const { version } = model;
  const added = later(nodes, 1500);
  stretches(model.takeDelta({ ...DELTA, graph: { ...CHANGE, added } }), () => {
    assert.equal(model.version, version);
    assert.equal(model.nodes.size, nodes.length);
    for (const { id } of nodes) assert.ok(model.tree.homeOf(id).ops.has(id));
    assert.equal(model.tree.idOf("later/add_3"), undefined);
  });
  assert.equal(model.nodes.size, nodes.length + added.length);
  const whole = new GraphModel();
  whole.applySnapshot(snapshotOf([...nodes, ...added]));
  assert.equal(textOf(model.tree.root as Scope), textOf(whole.tree.root as Scope));
  assert.notEqual(textOf(model.tree.root as Scope), before);
});

test("what opens while a picture is composed does not count for it", () => {
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(mlp()));
  const open = new Set<string>([""]);
  const closed = visibleGraph(model, (path) => open.has(path));
  const { found } = stretches(seenGraph(model, (path) => open.has(path)), () => undefined);
  assert.deepEqual(found, closed);
  const work = seenGraph(model, (path) => open.has(path));
  const scopes = [...model.tree.root.scopes.keys()];
  let step = work.next();
  for (let k = 0; !step.done; k++) {
    if (k === 1) for (const path of scopes) open.add(path);
    step = work.next();
  }
  assert.deepEqual([...step.value.boxes.keys()], [...closed.boxes.keys()]);
  assert.deepEqual(step.value.edges, closed.edges);
});
