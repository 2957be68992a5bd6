/** Explanations, as views ask for them and show them. */
import assert from "node:assert/strict";
import test from "node:test";
import { DebugModel } from "../src/model/debug.js";
import { ExplanationModel, NEEDS_KERNEL, partsOf, savedExplanation, whyUnexplained } from "../src/model/explanation.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import { COMMANDS, keysText } from "../src/view/commands.js";
import type { Explanation, SessionState } from "../src/wire/messages.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const SESSION: SessionState = { state: "idle", steps: 0, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [] };
const told = (request_id: number, name: string, text = "x"): Explanation =>
  ({ request_id, error: "", name, sentences: [{ topic: "computes", text }], tensors: [], view: 1, kind: "explanation" });

function made(): { model: GraphModel; debug: DebugModel; one: ExplanationModel } {
  const graph = new GraphBuilder();
  const x = graph.op("Placeholder", "x");
  graph.op("Tanh", "layer/h", { inputs: [x] });
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(graph.nodes, SESSION));
  return { model, debug: new DebugModel(model), one: new ExplanationModel() };
}

test("an operation is asked for once, and again when its step has gone on", () => {
  const { model, debug, one } = made();
  const wish = one.question("x", model, debug, 0);
  assert.equal(wish?.name, "x");
  assert.equal(one.question("x", model, debug, 5000), null, "nothing runs");
  model.session = { ...SESSION, state: "running", steps: 1 };
  assert.notEqual(one.question("x", model, debug, 6000), null);
  assert.equal(one.question("x", model, debug, 6500), null);
  assert.notEqual(one.question("x", model, debug, 7500), null, "while steps run it follows");
  assert.equal(one.question("layer/h", model, debug, 7600)?.name, "layer/h");
});

test("only the answer to the latest question is shown, of its own operation", () => {
  const { model, debug, one } = made();
  let changes = 0;
  one.changed.connect(() => changes++, new AbortController().signal);
  const first = one.question("x", model, debug, 0)?.request_id ?? 0;
  const second = one.question("layer/h", model, debug, 0)?.request_id ?? 0;
  one.take(told(first, "x"));
  assert.equal(one.of("x"), null);
  one.take(told(second, "layer/h"));
  one.take(told(second, "layer/h"));
  assert.deepEqual([one.of("layer/h")?.name, one.of("x"), changes], ["layer/h", null, 1]);
  one.forget();
  one.take(told(second, "layer/h"));
  assert.equal(one.of("layer/h"), null);
});

test("without a kernel the snapshot tells what it can, and what needs the kernel", () => {
  const { model } = made();
  const node = [...model.nodes.values()].find(({ name }) => name === "layer/h");
  assert.ok(node);
  const saved = savedExplanation(model, node);
  assert.match(saved.sentences[0]?.text ?? "", /^"layer\/h" has the op type Tanh/);
  assert.ok(saved.sentences.some(({ text }) => text === NEEDS_KERNEL));
  assert.deepEqual(saved.tensors.map(({ role, name, value }) => [role, name, value]), [["input", "x:0", null], ["output", "layer/h:0", null]]);
});

test("sentences stand below headings, in one order", () => {
  const parts = partsOf([{ topic: "made", text: "c" }, { topic: "step", text: "a" }, { topic: "step", text: "b" }]);
  assert.deepEqual(parts, [["In the step", "a b"], ["Made by", "c"]]);
});

test("where nothing is explained it says what to do", () => {
  const { model } = made();
  const op = [...model.nodes.keys()][0] ?? 0;
  assert.match(whyUnexplained(model, null), /^Select an operation/);
  assert.equal(whyUnexplained(model, opBox(op)), "");
  const scope = scopeBox("layer");
  assert.match(whyUnexplained(model, scope), /select an operation in it/);
});

test("it has a key of its own", () => {
  const command = COMMANDS.find(({ id }) => id === "explain");
  assert.ok(command);
  assert.equal(keysText(command), "E");
  assert.equal(COMMANDS.filter(({ keys, where }) => where === undefined && keys.includes("E")).length, 1);
});
