/** What of a fitted picture can be read, and what is closed so that it can. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { scopesToClose, WHOLE_ZOOM } from "../src/layout/closing.js";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import type { Positions } from "../src/layout/types.js";
import { GraphModel } from "../src/model/graph.js";
import { scopeBox } from "../src/model/ids.js";
import { visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import { LEAST_TEXT_PX, seenText } from "../src/render/legible.js";
import type { TextMark } from "../src/render/marks.js";

const NAME: TextMark = {
  kind: "text", id: "o1", text: "attention_output", x: 0, y: 0, size: 12, weight: 600, fill: "", anchor: "middle", room: 120, halo: "", from: 0,
};
const DETAIL: TextMark = { ...NAME, text: "340 ops", size: 11, weight: 400 };
const widthOf = (text: string, size: number): number => text.length * size * 0.6;

test("a name grows against the picture, and is cut in the middle then", () => {
  for (const zoom of [1.5, 1, 0.8, 0.62, 0.5]) {
    const seen = seenText(NAME, zoom, widthOf);
    assert.ok(seen && seen.size * zoom >= LEAST_TEXT_PX, `at ${zoom}`);
  }
  assert.equal(seenText(NAME, 1, widthOf)?.text, NAME.text);
  assert.match(seenText(NAME, 0.62, widthOf)?.text ?? "", /^att.*\u2026.*ut$/);
});

test("a second line is seen whole and large enough, or not at all", () => {
  assert.deepEqual(seenText(DETAIL, 1, widthOf), { text: "340 ops", size: 11, dx: 0 });
  assert.ok((seenText({ ...NAME, anchor: "start" }, 0.62, widthOf)?.dx ?? 0) < 0, "what begins at the left wall grows towards it");
  assert.equal(seenText(DETAIL, 0.62, widthOf)?.text, "340 ops");
  assert.ok((seenText(DETAIL, 0.62, widthOf)?.size ?? 0) * 0.62 >= LEAST_TEXT_PX);
  assert.equal(seenText({ ...DETAIL, room: 40 }, 0.62, widthOf), null, "grown it would be cut");
  assert.equal(seenText(DETAIL, 0.3, widthOf), null, "too far away");
  assert.equal(seenText({ ...DETAIL, id: "" }, 0.7, widthOf), null, "the label of a line does not grow");
});

/** Five open scopes one after the other, with an inner one each. */
function picture(): { graph: VisibleGraph; positions: Positions } {
  const g = new GraphBuilder();
  let at = g.op("Placeholder", "x");
  for (let k = 0; k < 5; k++) {
    at = g.op("Neg", `part${k}/neg`, { inputs: [at] });
    at = g.op("Exp", `part${k}/inner/exp`, { inputs: [at] });
    at = g.op("Tanh", `part${k}/inner/tanh`, { inputs: [at] });
  }
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(g.nodes));
  const graph = visibleGraph(model, () => true);
  return { graph, positions: layoutTree(layoutJob(graph, roughMeasure).root, new LayoutMemory()) };
}

test("what does not fit is closed: the farthest first, inner scopes before outer ones, no more than needed", () => {
  const { graph, positions } = picture();
  const room = { w: positions.w * WHOLE_ZOOM, h: positions.h * WHOLE_ZOOM };
  const all = (): boolean => true;
  assert.deepEqual(scopesToClose(graph, positions, room, null, all), [], "it fits");
  const [first, ...rest] = scopesToClose(graph, positions, { w: room.w * 0.9, h: room.h * 0.9 }, scopeBox("part0"), all);
  assert.match(first ?? "", /^part\d\/inner$/);
  const middle = (path: string): number => { const r = positions.boxes.get(scopeBox(path)); return r ? Math.hypot(r.x, r.y) : 0; };
  assert.ok(middle(first ?? "") > middle("part0/inner"));
  assert.ok(rest.length < 5);
  const every = scopesToClose(graph, positions, { w: 10, h: 10 }, scopeBox("part2/inner"), all);
  assert.ok(!every.includes("part2") && !every.includes("part2/inner"), "what is around the selection stays open");
  assert.equal(every.length, 8);
  for (const k of [0, 1, 3, 4]) assert.ok(every.indexOf(`part${k}/inner`) < every.indexOf(`part${k}`));
});

test("what the user has opened is not closed", () => {
  const { graph, positions } = picture();
  const closed = scopesToClose(graph, positions, { w: 10, h: 10 }, null, (path) => !path.startsWith("part4"));
  assert.ok(closed.length > 0 && closed.every((path) => !path.startsWith("part4")));
});
