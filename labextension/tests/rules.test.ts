/** The rules of the picture, on random graphs and on small models. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { GraphModel } from "../src/model/graph.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import type { Scope } from "../src/model/scopes.js";
import { Store } from "../src/model/store.js";
import { isDefaultName, stemOf, typesText } from "../src/rules/labels.js";
import { components } from "../src/rules/components.js";
import { stretchesOf } from "../src/rules/repeats.js";
import { withStubs } from "../src/rules/stubs.js";
import { MOST_BOXES, MOST_LINES } from "../src/rules/types.js";
import type { Delta, GraphChange, Node } from "../src/wire/messages.js";

/** Numbers that look random, the same in every run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
}

const DELTA: Delta = { kind: "delta", seq: 1, view: 0, session: null, run: null, skipped: 0, trace: null, graph: null };

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
  scopes.begin(model);
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

test("assignments that one operation groups become a box with its name, beside the initialisers", () => {
  const g = new GraphBuilder();
  const read = (name: string): number => g.op("ReadVariableOp", `${name}/read`, { inputs: [g.op("VarHandleOp", name)] });
  const assigns = ["a", "b", "c"].map((name, k) => {
    const from = read(`online/${name}`);
    return g.op("AssignVariableOp", `Assign_${k}`, { inputs: [g.op("VarHandleOp", `target/${name}`), g.op("Mul", `Mul_${k}`, { inputs: [from, g.op("Placeholder", `rate_${k}`)] })], outputs: [] });
  });
  g.op("NoOp", "copy_to_target", { control: assigns });
  g.op("NoOp", "init");
  const boxes = [...modelOf(g.nodes).tree.root.scopes.values()].map(({ name, size, group }) => [name, size, group?.kind]);
  assert.deepEqual(boxes.find(([name]) => name === "copy_to_target"), ["copy_to_target", 4, "aside"]);
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

/** All that a view can see of a tree, as text. */
function textOf(model: GraphModel): string {
  const { root } = model.tree;
  const lines = scopesOf(root).map(({ path, name, parent, group, lane, likeness, size, ops, scopes }) => (
    JSON.stringify([path, name, parent?.path, group, lane, likeness, size, [...ops], [...scopes.keys()], model.tree.get(path) !== undefined])
  ));
  const homes = [...model.nodes.keys()].map((id) => `${id} ${model.tree.homeOf(id).path} ${model.lanes.get(id)}`);
  return [...lines, ...homes.sort()].join("\n");
}

/** Operations that are added behind those of a model: chains, updates, savers, variables and loops, in scopes old and new. */
function moreNodes(random: (below: number) => number, known: readonly Node[], first: number): Node[] {
  const g = new GraphBuilder();
  for (let k = 0; k < first; k++) g.op("NoOp", `before${k}`);
  const scope = ["", "a/", "a/b/", `c${random(4)}/`, "gradients/", `new${first}/`, `x${random(9)}/`][random(7)] ?? "";
  const any = (): number => known[random(known.length)]?.id ?? 0;
  let last = any();
  for (let k = 0; k <= random(12); k++) {
    const kind = random(14);
    const name = `${scope}x${random(9)}`;
    if (kind === 0) last = g.op("VarHandleOp", name, { shape: [4] });
    else if (kind === 1) g.op("ApplyAdam", name, { inputs: [last, any()], attributes: { group: random(2) ? "Adam" : "train/SGD" } });
    else if (kind === 2) g.op("SaveV2", name, { inputs: [last] });
    else if (kind === 3) last = g.op("While", `${name}/While`, { inputs: [last], runs: [`${name}/body`], roles: ["body"] });
    else if (kind === 4) last = g.op("Mul", `${name}/body/mul`, { inputs: [last], body: `${name}/body` });
    else last = g.op(TYPES[random(TYPES.length)] ?? "Add", name, { inputs: [last, any()], shape: [4] });
  }
  const taken = new Set(known.map(({ name }) => name));
  return g.nodes.slice(first).map((node) => (taken.has(node.name) ? { ...node, name: `${node.name}_${node.id}` } : node));
}

/** A random change: operations are added, changed, wired otherwise (to what comes later, too), renamed, placed or removed. */
function changeOf(random: (below: number) => number, nodes: readonly Node[], first: number): GraphChange {
  const none: GraphChange = { version: 1, added: [], placed: [], changed: [], removed: [], marked: [], fetches: [] };
  const one = nodes[random(nodes.length)];
  const kind = random(10);
  if (!one || kind < 5) return { ...none, added: moreNodes(random, nodes, first) };
  if (kind === 5) return { ...none, removed: [one.id] };
  if (kind === 6) return { ...none, placed: [[one.id, "/device:GPU:0"]] };
  if (kind === 7) return { ...none, changed: [{ ...one, type: "Relu", outputs: [{ dtype: "float32", shape: [2] }] }] };
  if (kind === 8) return { ...none, changed: [{ ...one, name: `a/moved_${first}` }], added: moreNodes(random, nodes, first) };
  return { ...none, changed: [{ ...one, inputs: [[random(3) > 0 ? (nodes[random(nodes.length)]?.id ?? 0) : first + 2, 0]] }] };
}

test("a tree that follows changes is the one that is made of the whole graph", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = randomOf(seed);
    const nodes = randomNodes(seed, 40 + 10 * (seed % 20), (k) => `${["", "a/", "a/b/", `c${k % 4}/`, `c1/d${k % 3}/`][random(5)] ?? ""}x${random(9)}`);
    const model = modelOf(nodes);
    let next = nodes.length;
    for (let step = 0; step < 12; step++) {
      const graph = changeOf(random, [...model.nodes.values()], next);
      next += graph.added.length;
      model.applyDelta({ ...DELTA, graph });
      if (random(4) > 0) assert.equal(textOf(model), textOf(modelOf([...model.nodes.values()])), `seed ${seed}, step ${step}`);
    }
  }
});

test("levels that a change does not touch keep their scopes", () => {
  const model = modelOf(randomNodes(5, 400, (k) => `part${k % 5}/x`));
  const [before, root] = [model.tree.get("part1"), model.tree.root];
  const added = moreNodes(randomOf(1), [...model.nodes.values()], model.nodes.size).map((node, k) => ({ ...node, name: `part2/y${k}` }));
  model.applyDelta({ ...DELTA, graph: { version: 1, added, placed: [], changed: [], removed: [], marked: [], fetches: [] } });
  assert.equal(model.tree.get("part1"), before);
  assert.notEqual(model.tree.root, root);
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
  const defaults: [string, string][] = [["MatMul_3", "MatMul"], ["add", "Add"], ["truediv_1", "RealDiv"], ["Variable_2", "VarHandleOp"]];
  for (const [name, type] of defaults) assert.ok(isDefaultName(name, type), name);
  for (const [name, type] of [["scores", "MatMul"], ["add_bias", "Add"]] as const) assert.ok(!isDefaultName(name, type), name);
});

test("control edges and wide fans are stubs", () => {
  const edges = Array.from({ length: MOST_LINES + 1 }, (_, k) => ({ from: "a", to: `b${k}`, kind: "data" }));
  const one = (): string => "scope";
  assert.ok(withStubs(edges, one).every(({ isStub }) => isStub));
  assert.ok(withStubs(edges.slice(1), one).every(({ isStub }) => !isStub));
  assert.ok(withStubs([{ from: "a", to: "b", kind: "control" }], one)[0]?.isStub);
});

test("a fan into a scope that opens makes no stubs of the lines outside of it", () => {
  const inside = Array.from({ length: MOST_LINES + 1 }, (_, k) => ({ from: "a", to: `save/b${k}`, kind: "data" }));
  const edges = withStubs([{ from: "a", to: "next", kind: "data" }, ...inside], (box) => (box === "next" ? "" : "save"));
  assert.deepEqual(edges.map(({ isStub }) => isStub), [false, ...inside.map(() => true)]);
});

test("losses and metrics go back to where their parts come together, with small scopes and constants, and have the user's name", () => {
  const g = new GraphBuilder();
  const logits = g.op("Tanh", "logits", { inputs: [g.op("Placeholder", "x", { shape: [8, 4] })], shape: [8, 4] });
  const labels = g.op("Placeholder", "labels", { shape: [8, 4] });
  const ones = g.op("Const", "ones_like", { shape: [8, 4] });
  const each = g.op("SigmoidCrossEntropyWithLogits", "logistic_loss/entropy", { inputs: [logits, ones], shape: [8, 4] });
  const out = g.op("Softplus", "logistic_loss", { inputs: [each], shape: [8, 4] });
  const real = g.op("Mean", "Mean", { inputs: [out], shape: [] });
  const fake = g.op("Mean", "Mean_1", { inputs: [g.op("Square", "Square", { inputs: [logits], shape: [8, 4] })], shape: [] });
  const loss = g.op("Add", "d_loss", { inputs: [real, fake], shape: [] });
  const hits = g.op("Equal", "Equal", { inputs: [g.op("ArgMax", "ArgMax", { inputs: [logits], shape: [8] }), labels], shape: [8] });
  g.op("Identity", "accuracy", { inputs: [g.op("Mean", "Mean_2", { inputs: [g.op("Cast", "Cast", { inputs: [hits], shape: [8] })], shape: [] })], shape: [] });
  g.op("Mul", "gradients/d_loss_grad/mul", { inputs: [loss], shape: [] });
  const model = modelOf(g.nodes);
  const groups = [...model.tree.root.scopes.values()].flatMap(({ group, size }) => (group ? [`${group.title} ${size}`] : []));
  assert.deepEqual(groups.filter((text) => !text.startsWith("gradient")).sort(), ["accuracy 5", "d_loss 7"]);
});
