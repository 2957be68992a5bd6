/** The timeline: rows that nest, what is seen of them at any zoom, and what is said of slices. */
import assert from "node:assert/strict";
import test from "node:test";
import { spansOf, tableOf, type SpanRow } from "../dev/recording.js";
import { arrowsInSight, arrowsOf, MOST_ARROWS } from "../src/model/arrows.js";
import { placeLanes, see, SeenRow, tickStep, zoomTime } from "../src/layout/timeline.js";
import { isComplete, recordingOf, type Recording } from "../src/model/recording.js";
import { iterationOf, opOfNode, sentText, sliceCard } from "../src/model/slice_facts.js";
import { firstAfter, rowsOf, type Slices } from "../src/model/timeline_rows.js";
import { laneLabel, laneName, nameOf, namesWidthOf, tickText } from "../src/render/timeline.js";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");
const same = (id: number): number => id;

function recorded(...told: Parameters<typeof spansOf>): Recording {
  const found = recordingOf(spansOf(...told), same);
  assert.ok(found);
  return found;
}

/** A loop of three iterations between two operations, with a loop of two in each. */
function nest(): Recording {
  const rows: SpanRow[] = [[0, 0, -1, 0, 0, 10], [0, 1, -1, 0, 10, 100, 1, 1]];
  for (let i = 0; i < 3; i++) {
    const at = 10 + 30 * i;
    rows.push([0, 2, 0, i, at, at + 5], [0, 3, 0, i, at + 5, at + 29]);
    for (let k = 0; k < 2; k++) rows.push([0, 4, 1 + i, k, at + 5 + 12 * k, at + 15 + 12 * k]);
  }
  rows.push([0, 5, -1, 0, 100, 110], [1, -1, -1, 0, 0, 1]);
  const names = ["first", "outer/Loop", "outer/body/add", "outer/body/inner/Loop", "outer/body/inner/body/mul", "last"];
  const frames = tableOf({ loop: [1, 3, 3, 3], parent: [-1, 0, 0, 0], iteration: [0, 0, 1, 2] });
  return recorded(rows, names.map((name) => ({ name })), { frames });
}

function texts(recording: Recording, slices: Slices): string {
  return Array.from({ length: slices.count }, (_, i) => nameOf(recording, slices, i)).join(" ");
}

test("loops hold their iterations, and these what ran in them", () => {
  const recording = nest();
  const rows = rowsOf(recording);
  assert.deepEqual(rows.map(({ lane, depth, slices }) => [lane, depth, plain(texts(recording, slices))]), [
    [0, 0, "first Loop last"], [0, 1, "i = 0 i = 1 i = 2"], [0, 2, "add Loop add Loop add Loop"],
    [0, 3, "i = 0 i = 1 i = 0 i = 1 i = 0 i = 1"], [0, 4, "mul mul mul mul mul mul"], [1, 0, "feeds"],
  ]);
  assert.deepEqual(recording.frames.map(({ path }) => path), ["outer", "outer:0/inner", "outer:1/inner", "outer:2/inner"]);
  assert.deepEqual(iterationOf(recording, rows[4]!.slices, 3), { frame: "outer:1/inner", number: 1 });
  assert.deepEqual(iterationOf(recording, rows[1]!.slices, 2), { frame: "outer", number: 2 });
  assert.equal(iterationOf(recording, rows[0]!.slices, 0), null);
  const { lanes } = placeLanes(rows);
  assert.deepEqual(lanes.map(({ lane, rows: own }) => [lane, own.length]), [[0, 5], [1, 1]]);
});

test("what goes from one device to another tells bytes and bytes a second, in a lane between the two", () => {
  const sent = { lanes: [{ name: "", kind: "transfer" }] } as const;
  const recording = recorded([[0, 0, -1, 0, 0, 10, 1, 0, 65536]], [{ name: "y/to_GPU:1", type: "Transfer" }], sent);
  const [row] = rowsOf(recording);
  assert.ok(row);
  assert.deepEqual(sliceCard(recording, row.slices, 0, 0, 0).lines.map(plain)[1], "65.5 kB, 6 550 MB/s");
  // Each value has bytes of its own; those that are too narrow to be told apart tell theirs together.
  const grows = recorded([[0, 0, -1, 0, 0, 10, 1, 0, 8000], [0, 0, -1, 0, 10, 20, 1, 0, 16000], [0, -1, -1, 0, 20, 30, 5, 0, 30000]], [{}], sent);
  const [three] = rowsOf(grows);
  const linesOf = (first: number, last: number): string[] => sliceCard(grows, three!.slices, first, last, 0).lines.map(plain);
  assert.equal(linesOf(1, 1)[1], "16.0 kB, 1 600 MB/s");
  assert.equal(linesOf(2, 2)[0], "30.0 kB, 3 000 MB/s");
  assert.equal(linesOf(0, 2)[0], "54.0 kB, 1 800 MB/s");
  const unknown = recorded([[0, 0, -1, 0, 0, 10]], [{ type: "Transfer" }], sent);
  assert.ok(!sliceCard(unknown, row.slices, 0, 0, 0).lines.some((line) => line.includes("MB/s")), "nothing is known");
  const waits = recorded([[0, 0, -1, 0, 0, 10]], [{}]);
  assert.ok(!sliceCard(waits, row.slices, 0, 0, 0).lines.some((line) => line.includes("MB/s")), "a Recv that waits");
  assert.equal(plain(sentText(4, 0)), "4 B");
  const device = (name: string): string => `/job:localhost/replica:0/task:0/device:${name}`;
  assert.equal(laneName(`${device("GPU:0")} \u2192 ${device("CPU:0")}`), "GPU:0 \u2192 CPU:0");
});

test("slices of a row never overlap, whatever is told", () => {
  let seed = 5;
  const random = (n: number): number => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const rows = Array.from({ length: 400 }, (): SpanRow => {
    const begin = random(1000);
    return [0, 0, random(2) - 1, random(5), begin, begin + random(60)];
  });
  const frames = tableOf({ loop: [0], parent: [-1], iteration: [0] });
  let count = 0;
  for (const { slices } of rowsOf(recorded(rows, [{}], { frames }))) {
    for (let i = 0; i < slices.count; i++) {
      if ((slices.span[i] ?? -1) >= 0) count += 1;
      if (i > 0) assert.ok((slices.end_ns[i - 1] ?? 0) <= (slices.begin_ns[i] ?? 0));
    }
    assert.equal(firstAfter(slices, -1), 0);
    assert.equal(firstAfter(slices, Infinity), slices.count);
  }
  assert.equal(count, 400, "every span is in one row");
});

test("what is narrower than a pixel is merged, and nothing is lost", () => {
  const many = recorded(Array.from({ length: 100_000 }, (_, i): SpanRow => [0, i % 7, -1, 0, i, i + 0.8]), Array.from({ length: 7 }, () => ({})));
  const [row] = rowsOf(many);
  const seen = new SeenRow();
  for (const width of [1, 37, 1000]) {
    see(row!.slices, { begin_ns: 0, ns_per_px: 100_000_000 / width }, width, seen);
    let count = 0;
    for (let i = 0; i < seen.count; i++) count += (seen.last[i] ?? 0) - (seen.first[i] ?? 0) + 1;
    assert.equal(count, 100_000);
    assert.ok(seen.count <= width + 1, `${seen.count} marks in ${width} pixels`);
  }
  see(row!.slices, { begin_ns: 50_000_000, ns_per_px: 100 }, 1000, seen);
  assert.deepEqual([seen.count, seen.first[0], seen.x[0], seen.w[0]], [100, 50_000, 0, 8], "zoomed in each is itself");
  assert.deepEqual([seen.at(4), seen.at(9.9), seen.at(10.5)], [0, -1, 1]);
});

test("a picture of 100 000 slices is found in a few milliseconds", () => {
  const many = recorded(Array.from({ length: 100_000 }, (_, i): SpanRow => [0, 0, -1, 0, i, i + 0.8]), [{}]);
  const [row] = rowsOf(many);
  const seen = new SeenRow();
  const start = performance.now();
  for (let k = 0; k < 20; k++) see(row!.slices, { begin_ns: 0, ns_per_px: 100_000 / (1 + k) }, 1200, seen);
  assert.ok((performance.now() - start) / 20 < 8, "16 ms are there for all of a frame");
});

test("the time under the pointer stays there, and the whole is the most that is seen", () => {
  const from = { begin_ns: 1000, ns_per_px: 10 };
  const to = zoomTime(from, 4, 50, 1e9);
  assert.equal(to.begin_ns + 50 * to.ns_per_px, 1500);
  assert.equal(zoomTime(from, 1e-9, 50, 20).ns_per_px, 20);
  assert.ok(zoomTime(from, 1e9, 50, 20).ns_per_px >= 0.5);
  assert.deepEqual([tickStep(1, 84), tickStep(1000, 84), tickStep(30, 84)], [100, 100_000, 5000]);
  assert.deepEqual([tickText(200_000, 100_000), tickText(12_345_000, 1000)].map(plain), ["200 \u00b5s", "12.345 ms"]);
});

test("a slice says what, when and how long, and merged ones what takes longest", () => {
  const recording = nest();
  const rows = rowsOf(recording);
  const card = (row: number, first: number, last = first): string[] => {
    const { title, lines } = sliceCard(recording, rows[row]!.slices, first, last, 0);
    return [title, ...lines].map(plain);
  };
  assert.deepEqual(card(0, 1), ["outer/Loop", "Add, forward", "90.0 \u00b5s, 82 % of the step", "begins at 10.0 \u00b5s", "on the critical path"]);
  assert.deepEqual(card(1, 1), ["iteration 1 of outer", "29.0 \u00b5s, 26 % of the step", "begins at 40.0 \u00b5s"]);
  assert.deepEqual(card(4, 0, 5), [
    "6 slices, each narrower than a pixel", "60.0 \u00b5s together", "outer/body/inner/body/mul: 60.0 \u00b5s in 6 runs", "zoom in to see them",
  ]);
  const merged = recorded([[0, -1, -1, 0, 0, 10, 250]], []);
  assert.match(plain(sliceCard(merged, rowsOf(merged)[0]!.slices, 0, 0, 0).title), /^250 slices, too narrow/);
  assert.deepEqual([isComplete(recording), isComplete(merged)], [true, false]);
});

test("a node stands for its own operation", () => {
  const names = new Map([[1, "loop/Loop"], [2, "loop/body/mul"]]);
  const node = { name: "loop/body/mul", type: "Mul", device: "", phase: "", ops: [1, 2] };
  assert.equal(opOfNode(node, (id) => names.get(id)), 2);
  assert.equal(opOfNode({ ...node, name: "made/by/planning" }, (id) => names.get(id)), 1);
  assert.equal(opOfNode({ ...node, ops: [9] }, (id) => names.get(id)), null);
});

test("lanes of other processes name the worker, and how wrong its clock may be", () => {
  const task = "/job:worker/replica:0/task:1";
  assert.equal(laneName("/job:localhost/replica:0/task:0/device:CPU:1"), "CPU:1");
  assert.equal(laneName(`${task}/device:CPU:0 \u00b1 41 \u00b5s`), "worker 1 \u00b1 41 \u00b5s");
  assert.equal(laneLabel(`${task}/device:CPU:0 \u00b1 41 \u00b5s`, 140), "worker 1 \u00b1 41 \u00b5s");
  assert.equal(laneLabel(`${task}/device:CPU:0 \u00b1 41 \u00b5s`, 70), "worker 1");
  const lanes = [`/job:client/replica:0/task:0/device:CPU:0 \u2192 ${task}/device:CPU:0`, "CPU:0"].map((name) => ({ name, kind: "transfer", id: 0 }) as never);
  assert.equal(namesWidthOf({ lanes }, 76, 112), 112);
  assert.equal(namesWidthOf({ lanes: lanes.slice(1) }, 76, 112), 76);
  assert.ok(namesWidthOf({ lanes }, 112, 250) > 150);
  assert.equal(laneName(`/job:client/replica:0/task:0/device:CPU:0 \u2192 ${task}/device:GPU:0`), "this notebook \u2192 GPU:0 of worker 1");
});

test("arrows lead from the lane that sends to the one that receives", () => {
  const lanes = [
    { name: "/device:CPU:0", kind: "device" }, { name: "/device:CPU:0 \u2192 /device:CPU:1", kind: "transfer" },
    { name: "/device:CPU:1 \u00b1 3 \u00b5s", kind: "device" }, { name: "/device:CPU:1 \u2192 /device:GPU:0", kind: "transfer" },
  ] as const;
  // The last one is sent to a device that has no lane; those that are told as one have no ends.
  const rows: SpanRow[] = [[0, 0, -1, 0, 0, 10], [1, 1, -1, 0, 10, 14], [2, 2, -1, 0, 14, 20], [1, -1, -1, 0, 20, 22, 7], [3, 1, -1, 0, 22, 24]];
  const recording = recorded(rows, [{ name: "a" }, { name: "a/to_CPU:1", type: "Transfer" }, { name: "b" }], { lanes });
  const arrows = arrowsOf(recording);
  assert.deepEqual(arrows.map(({ span, node, from, to, begin_ns, end_ns }) => [span, node, from, to, begin_ns, end_ns]), [[1, 1, 0, 2, 10_000, 14_000]]);
  assert.equal(arrowsInSight(arrows, 12_000, 99_000, () => false).length, 1);
  assert.equal(arrowsInSight(arrows, 15_000, 99_000, () => true).length, 0);
});

test("of more arrows than can be told apart those that are marked are drawn", () => {
  const many = Array.from({ length: MOST_ARROWS + 1 }, (_, i) => ({ span: i, node: i % 2, from: 0, to: 1, begin_ns: i, end_ns: i + 1 }));
  assert.equal(arrowsInSight(many, 0, 1000, () => false).length, 0);
  assert.deepEqual(arrowsInSight(many, 0, 1000, ({ span }) => span === 5).map(({ span }) => span), [5]);
  assert.equal(arrowsInSight(many, 0, 20, () => false).length, 21);
});
