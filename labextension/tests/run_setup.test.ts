/** What is to be fetched and fed, as views tell it. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphModel } from "../src/model/graph.js";
import { opBox, scopeBox } from "../src/model/ids.js";
import { fetchesOf, figuresText, NO_SETUP, notesOf, setupFrom, statusText, toggled, wouldRun } from "../src/model/run_setup.js";
import { noteMarks } from "../src/render/notes.js";
import { LIGHT } from "../src/render/theme.js";
import type { Fetched, Need, RunSetup } from "../src/wire/messages.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const VALUE: Fetched = { name: "layer/y:0", dtype: "float32", shape: [64, 3], text: "", minimum: -1, maximum: 2.5, mean: 0.25, histogram: [1, 0, 3], not_finite: 0 };
const NEED: Need = { name: "x:0", dtype: "float32", shape: [null, 3], text: "", value: "", problem: "", candidates: [] };

function model(): GraphModel {
  const graph = new GraphBuilder();
  const x = graph.op("Placeholder", "x");
  const w = graph.op("VarHandleOp", "layer/w");
  const y = graph.op("MatMul", "layer/y", { inputs: [x, w] });
  graph.op("Sum", "loss", { inputs: [y] });
  graph.op("NoOp", "train");
  const made = new GraphModel(false);
  made.applySnapshot(snapshotOf(graph.nodes));
  return made;
}

const setup = (told: Partial<RunSetup>): RunSetup => ({ ...NO_SETUP, ...told });

test("an operation is fetched by its outputs, a scope by the one tensor that it hands on", () => {
  const graph = model();
  assert.deepEqual(fetchesOf(graph, opBox(3)), ["loss:0"]);
  assert.deepEqual(fetchesOf(graph, opBox(4)), ["train"]);
  assert.deepEqual(fetchesOf(graph, scopeBox("layer")), ["layer/y:0"]);
  assert.deepEqual([fetchesOf(graph, null), fetchesOf(graph, scopeBox(""))], [[], []]);
  graph.level = "lowered";
  assert.deepEqual(fetchesOf(graph, opBox(3)), [], "what is lowered has no names to fetch");
});

test("fetches are added, and taken away where all are there", () => {
  assert.deepEqual(toggled(["a:0"], ["b:0", "b:1"]), ["a:0", "b:0", "b:1"]);
  assert.deepEqual(toggled(["a:0", "b:0", "b:1"], ["b:0", "b:1"]), ["a:0"]);
  assert.deepEqual(toggled(["a:0", "b:1"], ["b:0", "b:1"]), ["a:0", "b:0", "b:1"]);
});

test("a state of another form is none", () => {
  for (const told of [null, undefined, 3, "x", {}, { fetches: "a" }]) assert.deepEqual(setupFrom(told), NO_SETUP);
  assert.deepEqual(setupFrom({ fetches: ["a"] }).fetches, ["a"]);
});

test("what would run comes in rows of numbers", () => {
  assert.deepEqual([...wouldRun(model(), setup({ would_run: [[0, 1], [3, 3]] }))], [0, 1, 3]);
});

test("notes say what is fetched, fed and missing, then the values and where it failed", () => {
  const graph = model();
  const chosen = setup({ fetches: ["layer/y:0", "gone:0"], needs: [NEED] });
  assert.deepEqual(notesOf(graph, chosen).map(({ op, text, badge }) => [op, text, badge]), [[0, "feed?", "missing"], [2, "fetch", "fetch"]]);
  const latest = { number: 1, seconds: 0.01, fetched: [VALUE], fed: [], error: "", failed_at: "loss" };
  const ran = setup({ ...chosen, needs: [{ ...NEED, text: "batch", value: "float32[2,3]" }], latest });
  assert.deepEqual(notesOf(graph, ran).map(({ op, text, badge }) => [op, text, badge]), [
    [0, "= batch", "feed"], [2, "float32[64,3]", "value"], [3, "failed", "failed"],
  ]);
});

test("figures of an array are told once", () => {
  assert.equal(figuresText(VALUE), "-1.00 to 2.50, mean 0.250");
  assert.equal(figuresText({ ...VALUE, text: "[1, 2]", not_finite: 2 }), "2\u00a0elements not finite");
});

test("one line tells what is to be done", () => {
  const ready = setup({ fetches: ["loss:0"] });
  const latest = { number: 3, seconds: 0.0012, fetched: [], fed: [], error: "", failed_at: "" };
  const told: readonly [RunSetup, RegExp][] = [
    [NO_SETUP, /select a box and press Fetch/], [setup({ fetches: ["a"], problem: "give a value for x" }), /^Give a value for x$/],
    [{ ...ready, state: "waiting" }, /waits for the running cell/], [ready, /^Ready/], [{ ...ready, latest }, /^Run 3, 1\.20.ms$/],
    [{ ...ready, latest: { ...latest, error: "E: no" } }, /^Run 3 failed: E: no$/],
  ];
  for (const [one, text] of told) assert.match(statusText(one), text);
});

test("a note lies at the lower edge of its box and grows from afar", () => {
  const rect = { x: 100, y: 50, w: 80, h: 30 };
  const note = { rect, text: "0.69", badge: "value" as const };
  const [outline, label] = noteMarks([note], LIGHT, 1);
  assert.ok(outline?.kind === "shape" && outline.x < rect.x && outline.w > rect.w);
  assert.ok(label?.kind === "shape" && label.y < rect.y + rect.h && label.y + label.h > rect.y + rect.h);
  const far = noteMarks([note], LIGHT, 0.4)[1];
  assert.ok(far?.kind === "shape" && label.kind === "shape" && far.w > label.w);
  const full = noteMarks([{ ...note, figures: { text: "-1 to 2", histogram: [1, 0, 3] } }], LIGHT, 1);
  assert.equal(full.filter((mark) => mark.kind === "text").length, 2);
  assert.equal(full.length, 2 + 2 + 2, "an empty part has no bar");
});
