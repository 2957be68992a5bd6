/** How large boxes are, and where constants stand. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { cardOf } from "../src/model/card.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, ROOT, scopeBox } from "../src/model/ids.js";
import { constantsOf, countText, flopText, sizeLine, sizeParts } from "../src/model/sizes.js";
import { MOST_CONSTANTS } from "../src/rules/types.js";
import type { Node } from "../src/wire/messages.js";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

function modelOf(nodes: readonly Node[]): GraphModel {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return model;
}

/** Layers in a row, each with weights that a file has before all of them. */
function layers(count: number): Node[] {
  const g = new GraphBuilder();
  const weights = Array.from({ length: count }, (_, k) => [g.op("Const", `w${k}`, { shape: [8, 8] }), g.op("Const", `c${k}`, { shape: [] })] as const);
  let at = g.op("Placeholder", "x", { shape: [null, 8] });
  for (const [w, c] of weights) {
    at = g.op("MatMul", "MatMul", { inputs: [at, w], shape: [null, 8], flops: 128 });
    at = g.op("Mul", "Mul", { inputs: [at, c], shape: [null, 8] });
    at = g.op("Tanh", "Tanh", { inputs: [at], shape: [null, 8] });
  }
  return g.nodes;
}

test("constants stand in the box of what alone takes them, so layers of a file are a stack", () => {
  const { tree: { root } } = modelOf(layers(10));
  const groups = [...root.scopes.values()].map(({ group }) => group);
  assert.deepEqual(groups.map((group) => [group?.kind, group?.count]), [["stack", 10]]);
  assert.equal(root.ops.size, 1);
});

test("few constants stand for themselves", () => {
  const { tree: { root }, nodes } = modelOf(layers(2));
  const seen = [...root.ops].map((id) => nodes.get(id)?.name);
  assert.ok(2 * 2 <= MOST_CONSTANTS);
  assert.ok(seen.includes("c0") && seen.includes("c1"));
});

test("constants that nothing takes are one box, those of several another", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x", { shape: [4] });
  for (let k = 0; k < 8; k++) g.op("Const", `alone${k}`, { shape: [4] });
  const shared = Array.from({ length: 8 }, (_, k) => g.op("Const", `shared${k}`, { shape: [4] }));
  for (const one of shared) for (const type of ["Add", "Mul"]) g.op(type, type, { inputs: [x, one], shape: [4] });
  const titles = [...modelOf(g.nodes).tree.root.scopes.values()].map(({ group }) => group?.title);
  assert.ok(titles.includes("constants") && titles.includes("unused constants"), String(titles));
});

test("what lays constants out anew is one, what computes is none", () => {
  const g = new GraphBuilder();
  const w = g.op("Const", "w", { shape: [3, 4] });
  const order = g.op("Const", "order", { shape: [2], dtype: "int32" });
  const turned = g.op("Transpose", "turned", { inputs: [w, order], shape: [4, 3] });
  g.op("Tanh", "tanh", { inputs: [turned], shape: [4, 3] });
  const found = constantsOf(new Map(g.nodes.map((node) => [node.id, node])));
  assert.deepEqual([...found], [[w, true], [order, false], [turned, true]]);
});

test("boxes sum parameters, bytes and flops of what lies in them", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x", { shape: [2, 3] });
  const w = g.op("VarHandleOp", "layer/w", { shape: [3, 4] });
  const c = g.op("Const", "layer/c", { shape: [4], dtype: "float64" });
  g.op("Const", "layer/axis", { shape: [2], dtype: "int32" });
  const product = g.op("MatMul", "layer/product", { inputs: [x, w], shape: [2, 4], flops: 48 });
  g.op("Add", "layer/sum", { inputs: [product, c], shape: [2, 4] });
  const model = modelOf(g.nodes);
  const { sizes } = model;
  assert.deepEqual(sizes.of(scopeBox("layer")), { parameters: 16, bytes: 48 + 32, flops: 48 });
  assert.deepEqual(sizes.of(opBox(w)), { parameters: 12, bytes: 48, flops: 0 });
  assert.deepEqual(sizes.of(ROOT), sizes.all);
  assert.equal(sizes.of(opBox(x)), null);
  assert.deepEqual(cardOf(model, scopeBox("layer"))?.lines.slice(1).map(plain), ["16 parameters, 80 B, 48 FLOP"]);
});

test("figures are told in three digits, those asked for first", () => {
  const size = { parameters: 1_234_567, bytes: 4_938_268, flops: 3.1e9 };
  assert.equal(plain(sizeLine(size)), "1.23 M parameters, 4.94 MB, 3.10 GFLOP");
  assert.deepEqual(sizeParts(size, "flops").map(plain), ["3.10 GFLOP", "1.23 M", "4.94 MB"]);
  assert.deepEqual(sizeParts(null, "weights"), []);
  assert.deepEqual([countText(999), countText(999_600), flopText(12)].map(plain), ["999", "1.00 M", "12 FLOP"]);
  assert.equal(sizeLine(null), "");
});
