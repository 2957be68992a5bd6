/** The outline as rows, of which those around a place are shown. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { GraphModel } from "../src/model/graph.js";
import { rowsOf, windowAround } from "../src/model/outline_rows.js";
import { visibleGraph } from "../src/model/visible.js";

test("rows stand as the tree is read, with level and place, and none is left out", () => {
  const made = new GraphBuilder();
  for (let i = 0; i < 2000; i++) made.op("Add", `flat/add${i}`);
  made.op("Mul", "last");
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(made.nodes));
  const graph = visibleGraph(model, () => true);
  const rows = rowsOf(graph);
  assert.equal(rows.length, graph.boxes.size - 1);
  const scope = rows.findIndex(({ id }) => graph.boxes.get(id)?.name === "flat");
  assert.equal(rows[scope]?.level, 1);
  assert.deepEqual(rows.slice(scope + 1, scope + 3).map(({ level, place }) => [level, place]), [[2, 1], [2, 2]]);
  assert.ok(rows[scope + 2000]?.level === 2 && rows[scope + 2001]?.level !== 2);
});

test("the window lies around the place and within the rows", () => {
  assert.deepEqual([0, 150, 1000, 1999].map((at) => windowAround(at, 2000, 300)), [0, 50, 900, 1700]);
  assert.equal(windowAround(5, 20, 300), 0);
});
