/** Scene to SVG, compared with pictures that were looked at. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { functions, loops, mlp, star } from "../dev/graphs.js";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import { GraphModel } from "../src/model/graph.js";
import { edgePathsOf } from "../src/model/links.js";
import { markedBoxes, staleBoxes } from "../src/model/marked.js";
import { relatedBoxes } from "../src/model/bodies.js";
import { endFinder, visibleGraph } from "../src/model/visible.js";
import { fitText } from "../src/render/fit.js";
import { scene, type Picture } from "../src/render/scene.js";
import { escape, toSvg } from "../src/render/svg.js";
import { devicesIn, meaningsIn } from "../src/render/meanings.js";
import { deviceColor, DARK, LIGHT, plain, tint, type Theme } from "../src/render/theme.js";
import { arrowHead } from "../src/render/trace.js";
import type { Node } from "../src/wire/messages.js";
import { matchSnapshot } from "./snapshots.js";

function svg(
  nodes: readonly Node[], open: readonly string[], selection: string | null = null, theme: Theme = LIGHT,
  marked: readonly number[] = [],
): string {
  const model = new GraphModel();
  const snapshot = snapshotOf(nodes);
  model.applySnapshot({ ...snapshot, graph: { ...snapshot.graph, marked } });
  const isOpen = (path: string): boolean => path === "" || open.includes(path);
  const graph = visibleGraph(model, isOpen);
  const related = relatedBoxes(model, selection, endFinder(model, isOpen));
  const { root, links } = layoutJob(graph, roughMeasure);
  const devices = new Map([["/device:CPU:0", 0], ["/device:GPU:0", 1]]);
  const picture = { graph, links, devices, selection, related, marked: markedBoxes(model), stale: staleBoxes(model) };
  last = picture;
  return toSvg(scene(picture, layoutTree(root, new LayoutMemory()), null, theme));
}

/** What was drawn last. */
let last: Picture | null = null;

test("the classifier, closed", () => matchSnapshot("mlp-closed", "svg", svg(mlp(), [])));
test("the classifier, open and dark, one scope selected", () => {
  const open = ["layer1", "layer1/w", "layer2", "loss", "train"];
  matchSnapshot("mlp-open-dark", "svg", svg(mlp(), open, "s:layer2", DARK));
});
test("a fan of 30", () => matchSnapshot("star-30", "svg", svg(star(30), [])));

test("a function, its calls and its gradient, the body selected", () => {
  matchSnapshot("function", "svg", svg(functions(), ["layer", "gradients"], "s:layer"));
});

test("a loop open with its returns, and a branch with one side closed", () => {
  matchSnapshot("loops", "svg", svg(loops(), ["while", "while/cond", "while/body", "choose", "choose/then"]));
});
test("an edge has a line, or a tick at both of its ends, whatever is open; words say what it is", () => {
  const states: readonly (readonly [readonly Node[], readonly string[]])[] = [
    [mlp(), []], [mlp(), ["layer1", "layer1/w", "layer2", "loss", "train"]], [star(30), []], [functions(), ["layer", "gradients"]],
    [loops(), ["while", "while/cond", "while/body", "choose", "choose/then"]],
  ];
  let stubs = 0;
  for (const [nodes, open] of states) {
    const model = new GraphModel(false);
    model.applySnapshot(snapshotOf([...nodes]));
    const graph = visibleGraph(model, (path) => path === "" || open.includes(path));
    const { root, links } = layoutJob(graph, roughMeasure);
    const positions = layoutTree(root, new LayoutMemory());
    const picture = { graph, links, devices: new Map<string, number>(), selection: null, related: new Set<string>(), marked: new Set<string>(), stale: new Set<string>() };
    const { marks } = scene(picture, positions, null, LIGHT);
    const drawn = new Set(marks.flatMap((mark) => (mark.kind === "path" ? [mark.id] : [])));
    const pathOf = edgePathsOf(graph);
    for (const edge of graph.edges) {
      if (edge.kind !== "data" && edge.kind !== "control") continue;
      if (edge.kind === "data" && !edge.isStub && pathOf(edge).every((id) => drawn.has(id))) continue;
      stubs += 1;
      const more = edge.kind === "control" ? ", control" : "";
      assert.ok(drawn.has(`out of ${edge.from}${more}`) && drawn.has(`into ${edge.to}${more}`), `${edge.from} > ${edge.to} ${edge.kind}`);
    }
    const texts = marks.flatMap((mark) => (mark.kind === "text" ? [mark.text] : []));
    assert.ok(!texts.some((text) => /^after (?!\d+ box)|\bx\d|\u00d7\d+$/.test(text) && !/^\u00d7\d+$/.test(text)), texts.join("; "));
  }
  assert.ok(stubs > 10, `${stubs} edges without a line`);
});

test("a closed loop has a double wall", () => {
  assert.equal(svg(loops(), ["choose"]).split(`fill="none" stroke="${LIGHT.body}" stroke-width="0.75"`).length - 1, 2);
});

test("what a cell's re-run has changed has a dot, what is stale a ring, and so have the scopes around", () => {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x");
  const y = g.op("Neg", "s/y", { inputs: [x] });
  g.op("Exp", "z", { inputs: [y] });
  const nodes = g.nodes.map((node) => (node.name === "z" ? { ...node, stale: "re-run cell 3" } : node));
  const dots = (text: string): number => text.split(LIGHT.mark).length - 1;
  assert.equal(dots(svg(nodes, [])), 1, "a ring at z");
  assert.equal(dots(svg(nodes, [], null, LIGHT, [x, y])), 3);
  assert.equal(dots(svg(nodes, ["s"], null, LIGHT, [x, y])), 3);
  const inside = g.nodes.map((node) => (node.name === "s/y" ? { ...node, stale: "re-run cell 3" } : node));
  assert.equal(dots(svg(inside, [], null, LIGHT, [y])), 2, "both at s");
  assert.ok(svg(nodes, []).includes("stale: Exp"));
});

test("names that look like markup stay text", () => {
  const g = new GraphBuilder();
  g.op("Const", `<script>alert("&")</script>`);
  g.op("Neg", "a' onload='x", { inputs: [0] });
  const text = svg(g.nodes, ["<script>alert(\"&\")<"]);
  assert.ok(!text.includes("<script"), "no element comes from a name");
  assert.equal(escape("\u0000<&'\">"), "\ufffd&lt;&amp;&#39;&quot;&gt;");
});

test("a long text is cut to its room", () => {
  const width = (text: string): number => text.length;
  assert.equal(fitText("abcdef", 6, width), "abcdef");
  assert.equal(fitText("abcdefg", 4, width), "abc\u2026");
});

test("an arrow head points along the last part of its line", () => {
  const [tipX, tipY, leftX, leftY] = arrowHead([0, 0, 0, 10], 5).map(Math.round);
  assert.deepEqual([tipX, tipY], [0, 10]);
  assert.ok((leftY ?? 0) < 10 && leftX !== 0);
});

test("each colour of a picture has its meaning, and under an overlay none is left that needs one", () => {
  const colours = (theme: Theme): string[] => [theme.feedFill, theme.stateFill, theme.body, theme.bodyFill, theme.mark, ...[1, 2, 3, 4, 5, 6].map((one) => tint(one, theme))];
  const over = { isPlain: false, isHeld: false, hasFailed: false, hasTokens: false };
  for (const theme of [LIGHT, DARK]) {
    const [first] = mlp().filter(({ name }) => name.startsWith("layer1/")).map(({ id }) => id);
    const text = svg(mlp(), ["layer1", "layer1/w"], "s:layer2", theme, [first ?? 0]);
    assert.ok(last);
    const used = new Set(colours(theme).filter((colour) => text.includes(colour)));
    const told = new Set<string>(meaningsIn(last, over));
    assert.equal(used.has(theme.feedFill), told.has("fed"));
    assert.equal(used.has(theme.stateFill), told.has("state"));
    assert.ok(used.has(theme.mark) && told.has("changed") && told.has("selected"));
    assert.deepEqual(devicesIn(last).map(([name]) => name).filter((name) => !text.includes(deviceColor(last?.devices.get(name) ?? -1))), []);
    const bare = svg(mlp(), ["layer1", "layer1/w"], "s:layer2", plain(theme));
    assert.deepEqual([...colours(theme), theme.feed, theme.state, deviceColor(0), deviceColor(1)].filter((colour) => bare.includes(colour) && ![theme.paper, theme.background].includes(colour)), []);
    assert.deepEqual(meaningsIn(last, { ...over, isPlain: true, isHeld: true }), ["held", "selected"]);
  }
  const text = svg(loops(), [], null);
  assert.equal(meaningsIn(last ?? assert.fail(), over).includes("body"), text.includes(LIGHT.body));
});
