/** The rules of the picture, on random graphs and on small models. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { GraphModel } from "../src/model/graph.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import type { Scope } from "../src/model/scopes.js";
import { Store } from "../src/model/store.js";
import { assigned, stemOf, typesText } from "../src/rules/labels.js";
import { components } from "../src/rules/level.js";
import { stretchesOf } from "../src/rules/repeats.js";
import { withStubs } from "../src/rules/stubs.js";
import { MOST_BOXES, MOST_LINES } from "../src/rules/types.js";
import type { Node } from "../src/wire/messages.js";

/** Numbers that look random, the same in every run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
}

const TYPES = ["Add", "Mul", "Tanh", "Slice", "Relu"];

/** A random graph: mostly random operations, with runs of cells and fans here and there; `name` says what one is called. */
function randomNodes(seed: number, size: number, name: (k: number) => string): Node[] {
  const random = randomOf(seed);
  const g = new GraphBuilder();
  const made = [g.op("Placeholder", "input")];
  const any = (): number => made[random(made.length)] ?? 0;
  const op = (type: string, inputs: number[]): number => {
    const id = g.op(type, name(g.nodes.length), { inputs, shape: [4] });
    made.push(id);
    return id;
  };
  while (made.length < size) {
    const kind = random(12);
    const from = any();
    if (kind === 0) for (let k = 0, state = from; k < 6; k++) state = op("Tanh", [op("MatMul", [state, from])]);
    else if (kind === 1) for (let k = 0; k < 7; k++) op("Neg", [op("Slice", [from])]);
    else op(TYPES[random(TYPES.length)] ?? "Add", [from, any()]);
  }
  return g.nodes;
}

function modelOf(nodes: readonly Node[]): GraphModel {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return model;
}

function scopesOf(root: Scope): Scope[] {
  const found = [root];
  for (const scope of found) found.push(...scope.scopes.values());
  return found;
}

/** Numbers of the boxes of a level by operation, and how many there are. */
function boxesOf(scope: Scope): { boxOf: Map<number, number>; count: number } {
  const boxOf = new Map<number, number>();
  let count = 0;
  for (const op of scope.ops) boxOf.set(op, count++);
  for (const inner of scope.scopes.values()) {
    for (const one of scopesOf(inner)) for (const op of one.ops) boxOf.set(op, count);
    count += 1;
  }
  return { boxOf, count };
}

const anyName = (seed: number) => {
  const random = randomOf(seed);
  return (k: number): string => `${["x", "Add", "layer", "h_1_"][random(4)] ?? ""}${random(50)}_${k}`;
};

test("folding never makes a cycle that the operations did not have, keeps each once, and keeps the budget", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const nodes = randomNodes(seed, 60 + 20 * seed, anyName(seed));
    const model = modelOf(nodes);
    for (const scope of scopesOf(model.tree.root)) {
      const { boxOf, count } = boxesOf(scope);
      const wires = nodes.flatMap(({ id, inputs }) => inputs.flatMap(([from]) => {
        const [a, b] = [boxOf.get(from), boxOf.get(id)];
        return a === undefined || b === undefined || a === b ? [] : [a, b];
      }));
      assert.equal(new Set(components(count, wires)).size, count, `seed ${seed}: a cycle in "${scope.path}"`);
      assert.ok(count <= MOST_BOXES, `seed ${seed}: ${count} boxes in "${scope.path}"`);
      if (scope !== model.tree.root) assert.ok(count > 0 && scope.name.length > 1, `seed ${seed}: "${scope.path}"`);
    }
    assert.equal(model.tree.root.size, nodes.length);
    for (const { id } of nodes) assert.ok(model.tree.homeOf(id).ops.has(id));
  }
});

test("names play no part in what is folded", () => {
  const partition = (nodes: readonly Node[]): string[] =>
    scopesOf(modelOf(nodes).tree.root).map((scope) => `${scope.group?.kind} ${[...boxesOf(scope).boxOf.keys()].sort((a, b) => a - b).join()}`).sort();
  for (let seed = 1; seed <= 15; seed++) {
    assert.deepEqual(partition(randomNodes(seed, 300, anyName(seed))), partition(randomNodes(seed, 300, (k) => `op${k}`)), `seed ${seed}`);
  }
});

test("cells that hand their state on become a stack, whose first and last can be opened", () => {
  const g = new GraphBuilder();
  const [x, w] = [g.op("Placeholder", "x"), g.op("VariableV2", "w")];
  let h = g.op("Const", "start");
  for (let t = 0; t < 20; t++) {
    const step = g.op("StridedSlice", "step", { inputs: [x], shape: [2] });
    h = g.op("Tanh", "tanh", { inputs: [g.op("MatMul", "matmul", { inputs: [g.op("Concat", "concat", { inputs: [step, h], shape: [3] }), w], shape: [2] })], shape: [2] });
  }
  g.op("Mean", "mean", { inputs: [h], shape: [] });
  const model = modelOf(g.nodes);
  const stack = [...model.tree.root.scopes.values()].find(({ group }) => group?.kind === "stack");
  assert.deepEqual([stack?.group?.count, stack?.size], [20, 80]);
  assert.deepEqual(stack?.group?.carries, { count: 1, bytes: 8, label: "float32[2]" });
  assert.deepEqual([...(stack?.scopes.values() ?? [])].map(({ group }) => [group?.kind, group?.count]), [["copy", 1], ["more", 18], ["copy", 1]]);
});

test("a stack, a fan and a layer do not open by themselves: closed they tell more", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  for (let k = 0; k < 6; k++) g.op("Add", `inner/cell_${k}/add`, { inputs: [g.op("Neg", `inner/cell_${k}/neg`, { inputs: [x] }), x] });
  const model = modelOf(g.nodes);
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model.tree, model.bodies);
  const [inner] = model.tree.root.scopes.values();
  const [fan] = inner?.scopes.values() ?? [];
  assert.deepEqual([fan?.group?.kind, fan?.name, fan?.group?.count], ["fan", "cell", 6]);
  assert.deepEqual([scopes.isOpen("inner"), scopes.isOpen(fan?.path ?? "")], [true, false]);
});

test("like operations from one tensor become a fan", () => {
  const g = new GraphBuilder();
  const [x, y] = [g.op("Placeholder", "x"), g.op("Placeholder", "y")];
  const ends = Array.from({ length: 90 }, () => g.op("Add", "add", { inputs: [g.op("Slice", "slice", { inputs: [x], shape: [1] }), y], shape: [1] }));
  g.op("Pack", "pack", { inputs: ends, shape: [90] });
  const [fan, ...others] = [...modelOf(g.nodes).tree.root.scopes.values()];
  assert.deepEqual([fan?.group?.kind, fan?.group?.count, fan?.name, others.length], ["fan", 90, "Slice + Add", 0]);
});

test("weight, bias, product and activation become a layer with its sizes; the scope of a layer says what it is", () => {
  const layer = (g: GraphBuilder, scope: string, x: number): number => {
    const [w, b] = [g.op("VarHandleOp", `${scope}w`, { shape: [784, 256] }), g.op("VarHandleOp", `${scope}b`, { shape: [256] })];
    const product = g.op("MatMul", `${scope}product`, { inputs: [x, w], shape: [null, 256] });
    return g.op("Relu", `${scope}relu`, { inputs: [g.op("Add", `${scope}sum`, { inputs: [product, b], shape: [null, 256] })], shape: [null, 256] });
  };
  const g = new GraphBuilder();
  const h = layer(g, "", g.op("Placeholder", "x"));
  layer(g, "hidden/", h);
  const { root } = modelOf(g.nodes).tree;
  const [first, second] = [...root.scopes.values()].sort((a, b) => a.name.localeCompare(b.name));
  assert.deepEqual([first?.name, first?.group?.detail, first?.size], ["Dense 784 \u2192 256", "relu", 5]);
  assert.deepEqual([second?.name, second?.group?.detail, second?.size], ["hidden", "Dense 784 \u2192 256 relu", 5]);
});

test("a path of a group stays when operations are added behind", () => {
  const nodes = randomNodes(3, 400, (k) => `op${k}`);
  const paths = (some: readonly Node[]): Set<string> => new Set(scopesOf(modelOf(some).tree.root).map(({ path }) => path));
  const [before, after] = [paths(nodes.slice(0, 380)), paths(nodes)];
  const kept = [...before].filter((path) => after.has(path)).length;
  assert.ok(kept >= 0.8 * before.size, `${kept} of ${before.size}`);
});

test("stretches: what repeats is found with its period, and does not overlap", () => {
  const always = (): boolean => true;
  assert.deepEqual(stretchesOf([9, 1, 2, 1, 2, 1, 2, 7], always, () => 3), [{ start: 1, period: 2, copies: 3, saved: 4 }]);
  assert.deepEqual(stretchesOf([1, 2, 3, 4], always, () => 3), []);
  const broken = (a: number): boolean => a !== 4;
  assert.deepEqual(stretchesOf([1, 1, 1, 1, 1, 1, 1, 1], broken, () => 3).map(({ start, copies }) => [start, copies]), [[0, 5], [5, 3]]);
});

test("labels", () => {
  assert.deepEqual(["cell_12", "conv2_3", "layer", "12"].map(stemOf), ["cell", "conv", "layer", "12"]);
  assert.equal(typesText(["Const", "Add", "MatMul"], 2), "MatMul + Add");
  assert.deepEqual(["h = f(x)", "self.w: T = g()", "a, b = f()", "f(x)", "h == 2"].map(assigned), ["h", "w", "", "", ""]);
});

test("control edges and wide fans are stubs", () => {
  const edges = Array.from({ length: MOST_LINES + 1 }, (_, k) => ({ from: "a", to: `b${k}`, kind: "data" }));
  assert.ok(withStubs(edges).every(({ isStub }) => isStub));
  assert.ok(withStubs(edges.slice(1)).every(({ isStub }) => !isStub));
  assert.ok(withStubs([{ from: "a", to: "b", kind: "control" }])[0]?.isStub);
});
