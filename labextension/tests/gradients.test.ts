/** Gradients stand beside what they are the gradient of. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import { GraphModel } from "../src/model/graph.js";
import { linksOf } from "../src/model/links.js";
import { visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import { stubsOf } from "../src/render/stubs.js";
import type { Node } from "../src/wire/messages.js";

/** Scopes that compute something, one after the other, and their gradients in a scope that is named so; then an update. */
function chain(count: number, scope = "gradients"): Node[] {
  const g = new GraphBuilder();
  let at = g.op("Placeholder", "x");
  const forward: number[] = [];
  for (let k = 0; k < count; k++) {
    const inner = g.op("Exp", `part${k}/exp`, { inputs: [at] });
    forward.push(at = g.op(k % 2 ? "Tanh" : "Neg", `part${k}/end`, { inputs: [inner] }));
  }
  let grad = g.op("Const", `${scope}/grad_ys_0`);
  for (let k = count - 1; k >= 0; k--) {
    grad = g.op("Mul", `${scope}/part${k}/end_grad/mul`, { inputs: [grad, forward[k]!] });
    grad = g.op("Mul", `${scope}/part${k}/exp_grad/mul`, { inputs: [grad, forward[k]! - 1, k > 0 ? forward[k - 1]! : 0] });
  }
  g.op("ApplyGradientDescent", "train/update", { inputs: [grad], attributes: { group: "train" } });
  g.op("Const", "train/rate");
  return g.nodes;
}

function see(nodes: readonly Node[], ...open: string[]): VisibleGraph {
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes));
  return visibleGraph(model, (path) => path === "" || open.includes(path));
}

const pairs = ({ boxes }: VisibleGraph): string[] => (
  [...boxes.values()].filter(({ gradientOf }) => gradientOf !== null).map(({ name, gradientOf }) => `${name} beside ${boxes.get(gradientOf ?? "")?.name}`).sort()
);

test("each box has its gradient beside it, and the scope that held them is gone", () => {
  for (const scope of ["gradients", "train/gradients"]) {
    const graph = see(chain(3, scope));
    assert.deepEqual(pairs(graph), ["gradient of part0 beside part0", "gradient of part1 beside part1", "gradient of part2 beside part2"], scope);
    assert.ok(![...graph.boxes.keys()].some((id) => id.endsWith("gradients")), scope);
    assert.equal(graph.boxes.get("s:")?.children.length, 8);
    const sizes = [...graph.boxes.values()].filter(({ group }) => group?.kind === "gradient").map(({ scope: one }) => one?.size);
    assert.deepEqual(sizes.sort(), [2, 2, 3], "what is the gradient of nothing goes with what takes it");
    assert.equal(graph.boxes.get("s:train")?.scope?.size, 2);
  }
});

test("a scope of the user's that holds gradients alone keeps them, and so does a level of many boxes", () => {
  const nodes = chain(3, "mine/gradients");
  assert.ok(see(nodes).boxes.has("s:mine"));
  const many = see(chain(14));
  assert.equal([...many.boxes.values()].filter(({ lane }) => lane === "gradient").length, 1);
});

test("the tree follows when the scope is no longer the only one", () => {
  const model = new GraphModel();
  const nodes = chain(3, "mine/gradients");
  model.applySnapshot(snapshotOf(nodes));
  assert.ok(model.tree.get("mine"));
  const extra = { ...nodes[nodes.length - 1]!, id: nodes.length, name: "mine/rate" };
  model.applyDelta({
    kind: "delta", view: 0, seq: 1, skipped: 0, session: null, run: null, trace: null,
    graph: { version: 1, added: [extra], placed: [], changed: [], removed: [], marked: [], fetches: [] },
  });
  const told = visibleGraph(model, (path) => path === "");
  const anew = see([...nodes, extra]);
  assert.deepEqual(pairs(told), pairs(anew));
  assert.equal(pairs(told).length, 3);
  assert.deepEqual([...told.boxes.keys()].sort(), [...anew.boxes.keys()].sort());
});

test("gradients stand on the right, level with their boxes; what both read is not drawn twice", () => {
  const graph = see(chain(4));
  const { root } = layoutJob(graph, roughMeasure);
  const positions = layoutTree(root, new LayoutMemory());
  for (const { id, gradientOf } of graph.boxes.values()) {
    if (gradientOf === null) continue;
    const [gradient, box] = [positions.boxes.get(id)!, positions.boxes.get(gradientOf)!];
    assert.ok(gradient.x >= box.x + box.w);
    assert.equal(gradient.y + gradient.h / 2, box.y + box.h / 2);
  }
  const drawn = linksOf(graph).filter(({ id }) => positions.routes.has(id));
  for (const { from, to } of drawn) {
    const owner = graph.boxes.get(to ?? "")?.gradientOf ?? null;
    const isForward = graph.boxes.get(from ?? "")?.lane === "model";
    assert.ok(!isForward || owner === null || owner === from, `${from} to ${to}`);
  }
  const told = [...stubsOf(graph, positions)].filter(([id]) => graph.boxes.get(id)?.lane === "gradient");
  assert.deepEqual(told.flatMap(([, { from }]) => from), []);
});
