/** What is typed to set breakpoints and watchpoints. */
import assert from "node:assert/strict";
import test from "node:test";
import { selectedTarget, targetText, wished, type Typed } from "../src/model/break_form.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const TYPED: Typed = { side: "before", kind: "selection", text: "", when: "", iteration: "", step: "", hits: "", exceptions: "", raises: false };
const NOTHING = { op: null, scope: null, op_type: null, line: null, cell: null, file: null };
const AT_OP = { ...NOTHING, op: "layer/act" };

const problemOf = (typed: Partial<Typed>): string => {
  const found = wished({ ...TYPED, ...typed }, AT_OP);
  return found.name === "problem" ? found.problem : "";
};
const wishOf = (typed: Partial<Typed>): Record<string, unknown> => {
  const found = wished({ ...TYPED, ...typed }, AT_OP);
  assert.ok(found.name !== "problem", found.name === "problem" ? found.problem : "");
  return { ...found.wish };
};

test("the selection is an operation, or all that a scope holds", () => {
  const graph = new GraphBuilder();
  graph.op("Tanh", "layer/act");
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(graph.nodes));
  assert.equal(targetText(selectedTarget(model, opBox(0))), "layer/act");
  assert.deepEqual(selectedTarget(model, scopeBox("layer")), { ...NOTHING, scope: "layer" });
  assert.equal(targetText(selectedTarget(model, scopeBox("layer"))), "layer/");
  assert.deepEqual([selectedTarget(model, null), selectedTarget(model, scopeBox("none"))], [null, null]);
});

test("a breakpoint stands at what is selected or typed, with its conditions", () => {
  assert.deepEqual(wishOf({ side: "after", when: " max > 3 ", iteration: "0", step: " 12 ", hits: "3" }), {
    ...AT_OP, is_after: true, when: "max > 3", iteration: 0, step: 12, hits: 3,
  });
  assert.equal(wishOf({ kind: "scope", text: "layer/" }).scope, "layer");
  assert.deepEqual([wishOf({ kind: "type", text: "MatMul" }).op_type, wishOf({}).hits], ["MatMul", 1]);
  const lines = ["12", "cell 3:12", "Cell 3: 12", "C:\\a b\\model.py:12"].map((text) => wishOf({ kind: "line", text }));
  assert.deepEqual(lines.map(({ cell, file, line }) => [cell, file, line]), [
    [null, null, 12], [3, null, 12], [3, null, 12], [null, "C:\\a b\\model.py", 12],
  ]);
});

test("a watchpoint is of everything or of some, with exceptions", () => {
  const all = wished({ ...TYPED, side: "watch", kind: "everything", exceptions: "mask/, log_p  x", raises: true }, null);
  assert.deepEqual(all, { name: "watch", wish: { ...NOTHING, when: "", exceptions: ["mask", "log_p", "x"], raises: true } });
  assert.deepEqual(wishOf({ side: "watch" }), { ...AT_OP, when: "", exceptions: [], raises: false });
});

test("what is missing or wrong is said before anything is sent", () => {
  assert.match(problemOf({ kind: "everything" }), /stands somewhere/);
  assert.match(problemOf({ kind: "scope", text: " " }), /type one, such as encoder/);
  for (const text of ["0", "cell x:3", "three", ":4"]) assert.match(problemOf({ kind: "line", text }), /expected 12, cell 3:12/, text);
  for (const step of ["-1", "1.5", "x"]) assert.match(problemOf({ step }), /step: expected a whole number/);
  assert.match(problemOf({ hits: "?" }), /from hit: expected/);
  const none = wished(TYPED, null);
  assert.match(none.name === "problem" ? none.problem : "", /select an operation or a scope/);
});
