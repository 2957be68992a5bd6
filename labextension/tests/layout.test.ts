/** The layout: nothing overlaps, little moves, much is bearable. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";
import { chain, flat, mlp, star } from "../dev/graphs.js";
import { isotonic } from "../src/layout/coordinates.js";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import type { Positions, Rect } from "../src/layout/types.js";
import { between } from "../src/layout/tween.js";
import { walk } from "../src/layout/walk.js";
import { GraphModel } from "../src/model/graph.js";
import { ROOT } from "../src/model/ids.js";
import { visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import type { Node } from "../src/wire/messages.js";

interface Laid {
  readonly graph: VisibleGraph;
  readonly positions: Positions;
}

function lay(nodes: readonly Node[], open: readonly string[] | "all", memory = new LayoutMemory()): Laid {
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(nodes));
  const graph = visibleGraph(model, (path) => path === "" || open === "all" || open.includes(path));
  return { graph, positions: layoutTree(layoutJob(graph, roughMeasure).root, memory) };
}

const rectOf = ({ positions }: Laid, id: string): Rect => {
  const rect = positions.boxes.get(id);
  assert.ok(rect, `no place for ${id}`);
  return rect;
};

function overlap(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function assertApart(laid: Laid): void {
  for (const box of laid.graph.boxes.values()) {
    const rects = box.children.map((id) => ({ id, ...rectOf(laid, id) })).sort((a, b) => a.y - b.y);
    const outer = rectOf(laid, box.id);
    rects.forEach((a, i) => {
      assert.ok(a.x >= outer.x && a.x + a.w <= outer.x + outer.w, `${a.id} leaves ${box.id} sideways`);
      assert.ok(a.y >= outer.y && a.y + a.h <= outer.y + outer.h, `${a.id} leaves ${box.id}`);
      for (const b of rects.slice(i + 1)) {
        if (b.y >= a.y + a.h) break;
        assert.ok(!overlap(a, b), `${a.id} and ${b.id} overlap`);
      }
    });
  }
}

const graphs = {
  "closed mlp": () => lay(mlp(), []),
  "open mlp": () => lay(mlp(), "all"),
  "star of 60": () => lay(star(60), "all"),
  "flat 300": () => lay(flat(300), "all"),
  "flat 2000": () => lay(flat(2000), "all"),
} as const;

for (const [name, make] of Object.entries(graphs)) {
  test(`siblings lie apart and inside their scope: ${name}`, () => assertApart(make()));
}

test("data runs in reading order, and every line joins its ends", () => {
  const laid = lay(mlp(), "all");
  const place = new Map([...laid.positions.boxes.keys()].map((id, k) => [id, k]));
  for (const [id, route] of laid.positions.routes) {
    const [scope = "", from = "", to = ""] = id.split("|");
    if (from && to) assert.ok((place.get(from) ?? NaN) < (place.get(to) ?? NaN), `${from} is not before ${to}`);
    const start = rectOf(laid, from || scope);
    const end = rectOf(laid, to || scope);
    assert.ok(touchesWall(start, route[0] ?? NaN, route[1] ?? NaN), `${id} does not start at a wall`);
    assert.ok(touchesWall(end, route.at(-2) ?? NaN, route.at(-1) ?? NaN), `${id} does not end at a wall`);
  }
});

function touchesWall({ x, y, w, h }: Rect, px: number, py: number): boolean {
  const isOnWall = Math.abs(py - y) < 1 || Math.abs(py - y - h) < 1;
  return isOnWall && px >= x - 1 && px <= x + w + 1;
}

test("what no data joins to the main flow stands beside it, each part by itself", () => {
  const g = new GraphBuilder();
  const chain = (name: string, size: number): void => {
    let last = g.op("Placeholder", `${name}0`);
    for (let k = 1; k < size; k++) last = g.op("Neg", `${name}${k}`, { inputs: [last] });
  };
  chain("small", 2);
  chain("main", 6);
  chain("other", 3);
  g.op("NoOp", "init");
  const laid = lay(g.nodes, "all");
  assertApart(laid);
  const rects = (from: number, to: number): Rect[] => g.nodes.slice(from, to).map(({ id }) => rectOf(laid, `o${id}`));
  const whole = (list: readonly Rect[]): Rect => {
    const [x, y] = [Math.min(...list.map((r) => r.x)), Math.min(...list.map((r) => r.y))];
    return { x, y, w: Math.max(...list.map((r) => r.x + r.w)) - x, h: Math.max(...list.map((r) => r.y + r.h)) - y };
  };
  const parts = [rects(2, 8), rects(0, 2), rects(8, 11), rects(11, 12)].map(whole);
  parts.forEach((a, i) => parts.slice(i + 1).forEach((b) => assert.ok(!overlap(a, b))));
  assert.equal(laid.positions.routes.size, 1 + 5 + 2);
});

test("the lines meet at the ports of a wall", () => {
  const { positions } = lay(mlp(), "all");
  const inner = [...positions.routes].find(([id]) => id.startsWith("s:layer1||"))?.[1];
  const outer = positions.routes.get("s:|o0|s:layer1|o0");
  assert.ok(inner && outer, "the links of x into layer1 exist");
  assert.deepEqual(outer.slice(-2), inner.slice(0, 2));
});

test("opening one scope leaves the others in their order, and closing it leaves all as it was", () => {
  const memory = new LayoutMemory();
  const before = lay(mlp(), [], memory);
  const after = lay(mlp(), ["loss"], memory);
  assert.equal(flips(before, after), 0);
  assert.deepEqual(lay(mlp(), [], memory).positions, before.positions);
});

/** Pairs of boxes of one scope that stand in another order of reading. */
test("a view that was opened later shows the same drawing, in whichever order scopes were opened", () => {
  const nodes = mlp();
  const memory = new LayoutMemory();
  const paths = [...lay(nodes, "all").graph.boxes.values()].flatMap(({ id, isOpen }) => (isOpen && id !== "s:" ? [id.slice(2)] : []));
  assert.ok(paths.length > 5);
  const some = paths.filter((_, k) => k % 2 === 0);
  for (const open of [[], paths.slice(-6), paths, paths.slice(2), some].map((inner) => ["", ...inner])) {
    assert.deepEqual(lay(nodes, open, memory).positions, lay(nodes, open).positions, open.join());
  }
});

function flips(before: Laid, after: Laid): number {
  const order = ({ positions }: Laid): Map<string, number> => new Map([...positions.boxes.keys()].map((id, k) => [id, k]));
  const [first, then] = [order(before), order(after)];
  let count = 0;
  for (const { children } of before.graph.boxes.values()) {
    const known = children.filter((id) => then.has(id)).sort((a, b) => (first.get(a) ?? 0) - (first.get(b) ?? 0));
    known.forEach((a, k) => {
      for (const b of known.slice(k + 1)) if ((then.get(a) ?? 0) > (then.get(b) ?? 0)) count += 1;
    });
  }
  return count;
}

test("equal input gives an equal picture", () => {
  assert.deepEqual(lay(mlp(), "all").positions, lay(mlp(), "all").positions);
});

test("a cycle between closed scopes is drawn by a line that goes back outside", () => {
  const { graph, positions } = cycle();
  const back = [...positions.routes.values()].filter((route) => (route[1] ?? 0) > (route.at(-1) ?? 0));
  assert.equal(graph.edges.length, 2);
  assert.equal(back.length, 1);
});

function cycle(): Laid {
  const [a, b, c] = chain(3);
  assert.ok(a && b && c);
  return lay([{ ...a, name: "p/a" }, { ...b, name: "q/b" }, { ...c, name: "p/c" }], []);
}

test("a wide rank is wrapped into rows under each other", () => {
  const laid = lay(star(60), "all");
  const rows = new Set(Array.from({ length: 60 }, (_, i) => rectOf(laid, `o${i + 1}`).y));
  assert.ok(rows.size >= 3, `${rows.size} rows`);
  assert.ok(laid.positions.w < 2500, `${laid.positions.w} px wide`);
});

test("a chain of 10 000 operations can be laid out", () => {
  const laid = lay(chain(10_000), "all");
  assert.equal(laid.positions.boxes.size, 10_001);
});

test("2 000 operations in one scope take little of the processor", () => {
  lay(flat(200), "all");
  // The processor's time, for other programs may run beside; it counts the thread of the compiler too.
  const start = process.cpuUsage();
  lay(flat(2000), "all");
  assert.ok(process.cpuUsage(start).user < 1.5e6);
});

test("isotonic regression pools what is out of order", () => {
  const values = Float64Array.of(1, 5, 3, 4, 9);
  isotonic(values, Float64Array.of(1, 1, 1, 1, 1));
  assert.deepEqual([...values], [1, 4, 4, 4, 9]);
});

test("a movement starts at the old places and ends at the new ones", () => {
  const memory = new LayoutMemory();
  const before = lay(mlp(), [], memory);
  const after = lay(mlp(), ["loss"], memory);
  const start = between(after.graph, before.positions, after.positions, 0);
  const end = between(after.graph, before.positions, after.positions, 1);
  assert.deepEqual(start.boxes.get("s:loss"), before.positions.boxes.get("s:loss"));
  assert.deepEqual(end.boxes, after.positions.boxes);
});

test("arrow keys walk along data", () => {
  const { graph, positions } = lay(mlp(), []);
  assert.equal(walk(graph, positions, null, "down"), "o0");
  assert.equal(walk(graph, positions, "o0", "down"), "s:layer1");
  assert.equal(walk(graph, positions, "s:layer1", "up"), "o0");
  assert.notEqual(walk(graph, positions, "s:layer1", "down"), ROOT);
});
