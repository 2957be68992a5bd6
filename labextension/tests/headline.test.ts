/** What the header says of how far things have come. */
import assert from "node:assert/strict";
import test from "node:test";
import { headline, loopRate } from "../src/model/headline.js";
import type { FrameState, RunState, SessionState } from "../src/wire/messages.js";

const SESSION: SessionState = { state: "running", steps: 3, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [] };
const GOING = { kind: "running", isGoing: true } as const;
const HALTED = { kind: "paused", isGoing: false } as const;
const LOOP: FrameState = {
  id: "train", loop: 7, name: "train/Loop", parent: null, parent_iteration: null, mode: "compiled", iteration: 250, limit: 1000,
  iterations_per_s: 50, parallel_iterations: 10, window: [], held: "", kept_bytes: null, kept_estimate_bytes: null,
};
const run = (...frames: FrameState[]): RunState => ({ frames, position: null, tokens: [], pace_s: 0 });

test("of a loop in Python the header tells count, share and time left", () => {
  const progress = { description: "training", done: 25, total: 100, elapsed_s: 5, eta_s: 15 };
  assert.deepEqual(headline({ ...SESSION, progress }, run(LOOP), GOING), { text: "training 25/100", share: 0.25, left_s: 15 });
  assert.equal(headline({ ...SESSION, progress: { ...progress, done: 100 } }, null, GOING)?.left_s, null, "at the end none is left");
});

test("in a long step it tells of the outermost loop: i/N, rate and time left", () => {
  const inner = { ...LOOP, id: "train:250/inner", parent: "train", parent_iteration: 250, loop: 9, iterations_per_s: 9000 };
  assert.deepEqual(headline(SESSION, run(inner, LOOP), GOING), { text: "train 250\u00a0/\u00a01\u00a0000", share: 0.25, left_s: 15 });
  assert.equal(loopRate(run(inner, LOOP), true), "50.0\u00a0it/s");
});

test("while a step is held there is no rate and no time left", () => {
  const paused = { ...SESSION, state: "paused" as const };
  assert.equal(headline(paused, run(LOOP), HALTED)?.left_s, null);
  assert.equal(loopRate(run(LOOP), false), "");
  const progress = { description: "training", done: 25, total: 100, elapsed_s: 5, eta_s: 15 };
  assert.equal(headline({ ...paused, progress }, null, HALTED)?.left_s, null, "what a pause takes is no part of it");
  assert.equal(headline({ ...SESSION, progress }, null, { kind: "idle", isGoing: false })?.left_s, 15, "between two steps the loop goes on");
});

test("a loop whose end is not known has a count alone; without loops there is nothing", () => {
  assert.deepEqual(headline(SESSION, run({ ...LOOP, limit: null }), GOING), { text: "train 250", share: null, left_s: null });
  assert.equal(headline(SESSION, null, GOING), null);
  assert.equal(headline(null, null, GOING), null);
});
