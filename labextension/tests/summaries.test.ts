/** Summaries, as views show them. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphModel } from "../src/model/graph.js";
import { byTag, chartOf, chartText, histogramText, imageText, levelsOf, runNames, stateText, SummariesModel, ticks } from "../src/model/summaries.js";
import type { HistogramSeries, ImageSeries, ScalarSeries, SessionState, Summaries, SummaryState, Table } from "../src/wire/messages.js";
import { GraphBuilder, snapshotOf } from "../dev/builder.js";

const STATE: SummaryState = { version: 4, nbytes: 2048, max_bytes: 32 << 20, dropped: 0 };
const SESSION: SessionState = { state: "idle", steps: 5, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, devices: [], is_simulated: false, scalars: [], summaries: STATE };

function table(columns: Record<string, readonly number[]>): Table {
  const numbers = Object.fromEntries(Object.entries(columns).map(([name, list]) => [name, Float64Array.from(list)]));
  return { rows: Object.values(columns)[0]?.length ?? 0, buffer: 0, columns: [], numbers } as Table;
}
const scalar = (run: string, tag: string, value: readonly number[], step: readonly number[] = value.map((_, k) => k)): ScalarSeries =>
  ({ run, tag, points: value.length, dropped: 0, values: table({ step, time: step.map((one) => one / 2), value }) });
const told = (request_id: number, more: Partial<Summaries> = {}): Summaries =>
  ({ request_id, error: "", version: 4, scalars: [], histograms: [], images: [], texts: [], left_out: 0, steps: table({ step: [0, 5, 10] }), view: 7, kind: "summaries", ...more });

function summaries(state: SummaryState | null = STATE): { model: GraphModel; one: SummariesModel } {
  const graph = new GraphBuilder();
  graph.op("Tanh", "h");
  const model = new GraphModel(false);
  model.applySnapshot(snapshotOf(graph.nodes, { ...SESSION, summaries: state }));
  return { model, one: new SummariesModel(model) };
}

test("what is new is asked for, once", () => {
  const { model, one } = summaries();
  const taken = (): Summaries | null => one.answer;
  assert.deepEqual(one.question(), { step: null });
  const request = one.await({ step: null });
  assert.equal(one.question(), null);
  one.take(told(request - 1));
  assert.equal(taken(), null, "that was an answer to an earlier question");
  one.take(told(request));
  assert.equal(taken()?.request_id, request);
  model.session = { ...SESSION, summaries: { ...STATE, version: 5 } };
  assert.deepEqual(one.question(), { step: null });
  assert.equal(summaries(null).one.question(), null);
});

test("a chosen step stays until the newest is chosen", () => {
  const { one } = summaries();
  one.take(told(one.await({ step: null })));
  assert.equal(one.row, 2);
  one.chooseRow(1);
  assert.deepEqual([one.row, one.question()], [1, { step: 5 }]);
  one.take(told(one.await({ step: 5 }), { steps: table({ step: [0, 5, 10, 15] }) }));
  assert.equal(one.row, 1);
  one.chooseRow(3);
  assert.deepEqual(one.question(), { step: null });
});

test("runs with one tag share a chart, and its scale", () => {
  const group = byTag([scalar("logs/a", "loss", [4, 2, 1]), scalar("logs/b", "loss", [3, NaN, 5]), scalar("logs/a", "rate", [1])]);
  assert.deepEqual(group.map(({ tag, series }) => [tag, series.length]), [["loss", 2], ["rate", 1]]);
  const chart = chartOf(group[0]?.series ?? [], "step", false);
  const [a, b] = chart.curves;
  assert.deepEqual(a?.lines[0]?.map(([x]) => x), [0, 0.5, 1]);
  assert.deepEqual([b?.lines.length, b?.wrong], [2, [0.5]], "what is not finite breaks the curve, and is marked");
  assert.deepEqual(chart.down.map(({ text }) => text), ["1", "2", "3", "4", "5"]);
  const names = runNames(["logs/a", "logs/b"]);
  assert.equal(chartText("loss", chart, names), "loss: a at 1.00; b at 5.00, not finite in places");
});

test("a logarithmic scale is taken where all values are above 0", () => {
  const chart = chartOf([scalar("", "loss", [0.001, 0.1, 10])], "time", true);
  assert.equal(chart.isLog, true);
  assert.deepEqual(chart.down.map(({ text }) => text), ["0.00100", "0.0100", "0.100", "1.00", "10.0"]);
  assert.equal(chart.curves[0]?.lines[0]?.[1]?.[1].toFixed(3), "0.500");
  assert.match(chart.across[0]?.text ?? "", /s$/);
  assert.equal(chartOf([scalar("", "loss", [0, 1])], "step", true).isLog, false);
});

test("a chart of one point, of equal values or of none can be drawn", () => {
  for (const values of [[], [3], [2, 2], [NaN], [-1.7e308, 1.7e308]]) {
    const { curves, down, across } = chartOf([scalar("", "x", values)], "step", false);
    for (const [x, y] of curves[0]?.lines.flat() ?? []) assert.ok(x >= 0 && x <= 1 && y >= 0 && y <= 1, String([x, y]));
    for (const { at } of [...down, ...across]) assert.ok(Number.isFinite(at));
  }
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(-1, 1, 4), [-1, -0.5, 0, 0.5, 1]);
});

test("runs are named without the folders that all have", () => {
  assert.deepEqual([...runNames(["/home/logs/a/x", "/home/logs/b/x", ""]).values()], ["a/x", "b/x", "no folder"]);
  assert.deepEqual([...runNames(["/home/logs"]).values()], ["logs"]);
});

test("histograms become columns of levels, the largest values on top", () => {
  const series: HistogramSeries = { run: "", tag: "w", points: 9, dropped: 2, low: -1, high: 1, bins: 2, values: table({ step: [0, 10], min: [-1, -1], max: [1, 1] }), shares: table({ share: [1, 0, 0.5, 0.5] }) };
  assert.deepEqual(levelsOf(series), { columns: 2, levels: [0, 127, 254, 127] });
  assert.equal(histogramText(series), "2 of 9 histograms, steps 0 to 10, 2 older ones dropped, from -1.00 to 1.00");
});

test("what is not shown is said", () => {
  assert.equal(stateText({ ...STATE, dropped: 1200 }, 3), "2.05\u00a0kB of 33.6\u00a0MB kept, 1\u00a0200 older points dropped, 3 series not shown");
  const image: ImageSeries = { run: "", tag: "p", points: 1, dropped: 0, step: 4, width: 9, height: 8, data: "", nbytes: 2_000_000 };
  assert.match(imageText(image), /step 4, 9 \u00d7 8: with 2.00.MB it is too large/);
});
