/** Header, buttons and words are functions of one state: the table of all that can come together. */
import assert from "node:assert/strict";
import test from "node:test";
import { ALLOWED, viewState, type Link, type ViewKind } from "../src/model/view_state.js";
import type { DebugState, SessionState, StopState } from "../src/wire/messages.js";

const STATES = ["idle", "running", "pausing", "paused", "stopping", "stopped", "closed"] as const;
const POINT = { breakpoint: 1, is_past: false };
const HAND = { breakpoint: null, is_past: false };
const PAST = { breakpoint: null, is_past: true };

const stopOf = (rest: Partial<StopState>, step = 4): StopState => ({ id: `s${step}`, step, op: 2, frame: "", iterations: [], breakpoint: null, is_past: false, device: "", sent: "", sender: "", culprit: null, ...rest });
const sessionOf = (state: SessionState["state"], ...stops: StopState[]): SessionState => {
  const debug: DebugState = { breakpoints: [], stops, waiting: [] };
  return { state, steps: 3, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [] };
};
const nameOf = (op: number): string | null => (op === 2 ? "layer/fc0" : null);
const shown = (link: Link, state: SessionState["state"] | null, rest: Partial<StopState> | null = null): ReturnType<typeof viewState> => {
  const stop = rest === null ? null : stopOf(rest);
  return viewState(link, state === null ? null : sessionOf(state, ...(stop ? [stop] : [])), stop, null, nameOf);
};

test("every session's state, with and without a step that stands, has one kind", () => {
  const table: readonly (readonly [SessionState["state"], ViewKind, ViewKind, ViewKind, ViewKind])[] = [
    // state, no stop, at a breakpoint, by hand, of the past
    ["idle", "idle", "idle", "idle", "past"],
    ["running", "running", "running", "running", "past"],
    ["pausing", "pausing", "pausing", "pausing", "past"],
    ["paused", "paused", "held", "paused", "past"],
    ["stopping", "stopping", "stopping", "stopping", "past"],
    ["stopped", "stopped", "stopped", "stopped", "past"],
    ["closed", "closed", "closed", "closed", "closed"],
  ];
  assert.deepEqual(table.map(([state]) => state), [...STATES], "none is left out");
  for (const [state, ...kinds] of table) {
    assert.deepEqual([null, POINT, HAND, PAST].map((stop) => shown("heard", state, stop).kind), kinds, state);
  }
});

test("what is not heard can do nothing, whatever it was told last", () => {
  for (const link of ["saved", "recording", "silent"] as const) {
    for (const state of [null, ...STATES]) {
      for (const stop of [null, POINT, PAST]) {
        const { pause, canMove, canStop, isHeld, isGoing } = shown(link, state, stop);
        assert.deepEqual([pause, canMove, canStop, isHeld, isGoing], [null, false, false, false, false], `${link} ${state}`);
      }
    }
  }
  assert.deepEqual((["saved", "recording", "silent"] as const).map((link) => shown(link, "running").text), ["saved", "recording", "not connected"]);
  assert.equal(shown("heard", null).text, "no session");
});

test("the words say where the step stands, and never that a past one is idle", () => {
  assert.equal(shown("heard", "paused", POINT).text, "held at fc0");
  assert.equal(shown("heard", "paused", { ...POINT, op: null }).text, "held");
  assert.equal(shown("heard", "paused", { ...POINT, op: 99 }).text, "held", "what has no name here");
  assert.equal(shown("heard", "paused", HAND).text, "paused");
  assert.equal(shown("heard", "idle", PAST).text, "past: step 4");
  const [now, past] = [stopOf(POINT, 7), stopOf(PAST, 5)];
  assert.equal(viewState("heard", sessionOf("paused", now, past), past, null, nameOf).text, "past: step 5, step 7 is held");
});

test("what is not live says why and what to do, and nothing else does", () => {
  for (const link of ["saved", "recording", "silent", "heard"] as const) {
    for (const state of [null, ...STATES]) {
      const { kind, why } = shown(link, state);
      assert.equal(why !== "", ["saved", "recording", "lost", "none", "closed"].includes(kind), kind);
      assert.equal(why === "" || /run|make/i.test(why), true, "it names something to do");
    }
  }
});

test("a recorded step that is shown is named beside every state, and changes nothing that can be done", () => {
  for (const link of ["saved", "recording", "silent", "heard"] as const) {
    for (const state of [null, ...STATES]) {
      const session = state === null ? null : sessionOf(state);
      const [then, now] = [9, null].map((step) => viewState(link, session, null, step, nameOf));
      assert.deepEqual(then, { ...now, shown: 9, text: `${now?.text}; step 9 shown` });
    }
  }
  const past = stopOf(PAST, 5);
  assert.equal(viewState("heard", sessionOf("idle", past), past, 5, nameOf).text, "past: step 5");
});

test("only what stands goes on, and only the past is left", () => {
  const actions = (state: SessionState["state"], stop: Partial<StopState> | null): unknown[] => {
    const { pause, canMove, isHeld, canStop } = shown("heard", state, stop);
    return [pause, canMove, isHeld, canStop];
  };
  assert.deepEqual(actions("idle", null), ["pause", false, false, false]);
  assert.deepEqual(actions("running", null), ["pause", true, false, true]);
  assert.deepEqual(actions("paused", null), ["continue", true, false, true]);
  assert.deepEqual(actions("paused", POINT), ["continue", true, true, true]);
  assert.deepEqual(actions("paused", HAND), ["continue", true, true, true]);
  assert.deepEqual(actions("idle", PAST), ["leave past", true, true, false]);
  assert.deepEqual(actions("paused", PAST), ["leave past", true, true, true], "the step that is held can be stopped");
  assert.deepEqual(actions("stopping", null), [null, false, false, false]);
});

test("time left is told of what goes on alone", () => {
  for (const [kind, { isGoing }] of Object.entries(ALLOWED)) assert.equal(isGoing, kind === "running", kind);
});
