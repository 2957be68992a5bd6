/** What a saved notebook keeps of a graph, read with care. */
import assert from "node:assert/strict";
import test from "node:test";
import { deflateSync } from "node:zlib";
import { readSavedView, snapshotIn } from "../src/plugin/saved_view.js";
import type { Snapshot } from "../src/wire/messages.js";
import { ratioFor } from "../src/view/save.js";
import { numbersOf } from "../src/wire/packing.js";
import { finish } from "../src/wire/sliced.js";
import vector from "./vectors/packed.json" with { type: "json" };

async function snapshotOf(told: unknown): Promise<Snapshot> {
  const view = readSavedView(told);
  return finish(snapshotIn(view, view.packed === "" ? null : await numbersOf(view.packed)));
}

const pack = (text: string | Uint8Array): string => deflateSync(text).toString("base64");

test("a packed snapshot is read as Python has written it", async () => {
  const snapshot = await snapshotOf({ packed: vector.packed });
  assert.deepEqual(snapshot.graph.added.map(({ name }) => name), vector.names);
  const [x, y] = snapshot.graph.added;
  assert.deepEqual([x?.type, x?.outputs[0]?.shape, y?.inputs], ["Placeholder", [null, 3], [[0, 0]]]);
  assert.deepEqual([snapshot.run, snapshot.silence_s, snapshot.view], [null, 0, 0]);
});

test("what older versions have written is read, and nothing is nothing", async () => {
  const plain = { kind: "snapshot", graph: { added: [{ id: 0, name: "a" }] } };
  assert.equal((await snapshotOf({ snapshot: plain })).graph.added[0]?.name, "a");
  for (const told of [null, {}, { packed: 3, snapshot: "x" }]) await assert.rejects(snapshotOf(told), /no snapshot/);
});

test("a text of another form is refused", async () => {
  const bad = ["%%%", "AAAA", pack("no line"), pack("{]\n"), pack("3\n"), pack('{"kind":"snapshot","graph":{"added":{"buffer":0,"rows":9}}}\n')];
  for (const packed of bad) await assert.rejects(snapshotOf({ packed }), packed);
});

test("a text that holds too much is given up", async () => {
  await assert.rejects(numbersOf(pack(new Uint8Array(65 << 20))), /too much/);
});

test("an image has twice the picture's size, as far as browsers can draw it", () => {
  assert.equal(ratioFor(800, 600), 2);
  assert.ok(ratioFor(40_000, 300) * 40_000 <= 16_000);
  assert.ok(ratioFor(15_000, 15_000) ** 2 * 15_000 ** 2 <= 200_000_001);
});
