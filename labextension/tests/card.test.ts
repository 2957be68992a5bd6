/** What is said of a box under the pointer. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { cardOf } from "../src/model/card.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, scopeBox } from "../src/model/ids.js";

test("a card tells dtype and shape, device and why, and the line; of a scope its size", () => {
  const made = new GraphBuilder();
  const x = made.op("Placeholder", "dense/x", { shape: [null, 4] });
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(made.nodes));
  const card = cardOf(model, opBox(x));
  assert.equal(card?.title, "dense/x");
  assert.deepEqual(card?.lines.slice(0, 3), ["Placeholder", "float32[?,4]", "on /device:CPU:0: nothing was asked for"]);
  assert.match(card?.lines[3] ?? "", /^cell 3, line 1$/);
  assert.equal(cardOf(model, scopeBox("dense"))?.lines[0], "1\u00a0op");
  assert.equal(cardOf(model, opBox(99)), null);
});
