/** How the panels of the docked panel stand. */
import assert from "node:assert/strict";
import test from "node:test";
import { firstLayout, idsOf, known, type Area } from "../src/plugin/dock_layout.js";

const IDS = ["stage", "inspector", "frames", "outline"];
const read = (area: unknown): Area | null => known(area, new Set(IDS));

test("at first the graph, the inspector and the loops are there; beside each other where there is room", () => {
  const [wide, narrow] = [firstLayout(1200), firstLayout(480)];
  assert.deepEqual([...idsOf(wide)].sort(), ["frames", "inspector", "stage"]);
  assert.deepEqual([wide, narrow].map((area) => area.type === "split-area" && area.orientation), ["horizontal", "vertical"]);
  assert.deepEqual(read(wide), wide);
});

test("of a remembered layout is taken what names panels that there are, each once", () => {
  const tabs = (...widgets: string[]): Area => ({ type: "tab-area", widgets, currentIndex: 0 });
  const split = { type: "split-area", orientation: "vertical", children: [tabs("stage", "gone"), tabs("gone"), tabs("stage", "frames")], sizes: [0.5, 0.2, 0.3] };
  assert.deepEqual(read(split), { type: "split-area", orientation: "vertical", children: [tabs("stage"), tabs("frames")], sizes: [0.5, 0.3] });
  assert.deepEqual(read({ ...split, children: [tabs("gone"), tabs("outline")], sizes: [1, 1] }), tabs("outline"));
});

test("what is no layout is none", () => {
  for (const bad of [null, 3, {}, { type: "tab-area" }, { type: "split-area", children: "x", sizes: [] }, { type: "tab-area", widgets: [1] }]) {
    assert.equal(read(bad), null);
  }
});
