/** What runs: figures of frames, the edge paths of values, and what is drawn over the picture. */
import assert from "node:assert/strict";
import test from "node:test";
import { snapshotOf } from "../dev/builder.js";
import { loops } from "../dev/graphs.js";
import { PlayedRun } from "../dev/running.js";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import type { Positions } from "../src/layout/types.js";
import { Store } from "../src/model/store.js";
import { GraphModel } from "../src/model/graph.js";
import {
  belongsTo, bytesText, chipText, chipsOf, countText, depthOf, inFlight, inOrder, isOver, iterationText, keptText, nameText, paceText,
  readable, shareOf,
} from "../src/model/running.js";
import { endFinder, visibleGraph } from "../src/model/visible.js";
import { EdgePaths } from "../src/model/edge_paths.js";
import { runningMarks, STILL, type MovingToken } from "../src/render/running.js";
import { scene } from "../src/render/scene.js";
import { toSvg } from "../src/render/svg.js";
import { LIGHT } from "../src/render/theme.js";
import { pointAt, sampled } from "../src/render/trace.js";
import { TokenMotion } from "../src/view/token_motion.js";
import { Channel } from "../src/wire/channel.js";
import type { Delta, FrameState, Iteration, RunState, Token } from "../src/wire/messages.js";
import { matchSnapshot } from "./snapshots.js";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

const FRAME: FrameState = {
  id: "while", loop: 0, name: "while/Loop", parent: null, parent_iteration: null, mode: "tokens", iteration: 412, limit: 1000,
  iterations_per_s: 1234.5, parallel_iterations: 8, window: [], held: "", kept_bytes: null, kept_estimate_bytes: null,
};
const RUN: RunState = { frames: [], position: null, tokens: [], pace_s: 0 };
const iteration = (number: number, state: Iteration["state"], finished = 3): Iteration => ({ number, state, finished, total: 7 });
const deltaOf = (run: RunState | null): Delta => ({ kind: "delta", skipped: 0, trace: null, view: 0, seq: 1, graph: null, session: null, run });

class Picture {
  readonly model = new GraphModel();
  readonly edgePaths: EdgePaths;
  readonly positions: Positions;
  readonly svg: (run: Parameters<typeof runningMarks>[0]) => string;

  constructor(...open: string[]) {
    this.model.applySnapshot(snapshotOf(loops()));
    const isOpen = (path: string): boolean => path === "" || open.includes(path);
    const graph = visibleGraph(this.model, isOpen);
    this.edgePaths = new EdgePaths(this.model, graph, endFinder(this.model, isOpen));
    const { root, links } = layoutJob(graph, roughMeasure);
    this.positions = layoutTree(root, new LayoutMemory());
    const none = new Set<string>();
    const still = scene({
      graph, links, devices: new Map(), selection: null, related: none, marked: none, stale: none,
    }, this.positions, null, LIGHT);
    this.svg = (run) => toSvg({ ...still, marks: [...still.marks, ...runningMarks(run, this.positions, LIGHT)] });
  }

  id(name: string): number {
    return this.model.tree.idOf(name) ?? -1;
  }

  /** The names of scopes and boxes that a value passes. */
  way(source: string, output: number, target: string): string[] {
    return this.edgePaths.find(this.id(source), output, this.id(target)).map((link) => link.split("|").slice(0, 3).join("|"));
  }
}

const OPEN = ["while", "while/cond", "while/body"];

test("a frame's figures are read with three digits and units", () => {
  assert.equal(chipText(FRAME), "i = 412");
  const flying = { ...FRAME, window: [iteration(410, "done"), iteration(411, "running"), iteration(412, "running"), iteration(413, "waiting", 0)] };
  assert.equal(inFlight(flying), 2);
  assert.equal(chipText(flying), "i = 412, 2 in flight");
  assert.deepEqual([countText(FRAME), countText({ ...FRAME, limit: null })].map(plain), ["412 / 1 000", "412"]);
  assert.deepEqual([shareOf(FRAME), shareOf({ ...FRAME, limit: null }), shareOf({ ...FRAME, limit: 0 }), shareOf({ ...FRAME, iteration: 2000 })],
    [0.412, null, null, 1]);
  assert.deepEqual(["while/Loop", "outer/body/inner/Loop", "gradients/while_grad", "Loop"].map((name) => nameText({ ...FRAME, name })),
    ["while", "inner", "while_grad", "Loop"]);
  assert.deepEqual([paceText(1234.5), paceText(0.644), paceText(0), paceText(null)].map(plain), ["1 230 it/s", "0.644 it/s", "", ""]);
  const kept = (kept_bytes: number | null, kept_estimate_bytes: number | null): string => plain(keptText({ ...FRAME, kept_bytes, kept_estimate_bytes }));
  assert.deepEqual([kept(null, null), kept(1500, null), kept(0, 4e7), kept(null, 2e9)],
    ["", "1.50 kB kept", "0 B kept of 40.0 MB", "will keep 2.00 GB"]);
  assert.equal(plain(bytesText(999.9)), "1.00 kB");
});

test("an iteration's state is told in words", () => {
  assert.deepEqual((["waiting", "running", "done", "dead"] as const).map((state) => plain(iterationText(iteration(5, state)))),
    ["iteration 5: waiting, 3 of 7 ops", "iteration 5: running, 3 of 7 ops", "iteration 5: done", "iteration 5: dead"]);
});

test("frames lie in iterations of other frames", () => {
  const inner = { ...FRAME, id: "while:3/inner", parent: "while", parent_iteration: 3 };
  const innermost = { ...FRAME, id: "while:3/inner:0/more", parent: "while:3/inner", parent_iteration: 0 };
  const byId = new Map([FRAME, inner, innermost].map((frame) => [frame.id, frame]));
  assert.deepEqual([FRAME, inner, innermost].map((frame) => depthOf(frame, byId)), [0, 1, 2]);
  assert.deepEqual([3, 4].map((number) => belongsTo(innermost, { frame: "while", number }, byId)), [true, false]);
  assert.ok(!belongsTo(FRAME, { frame: "while", number: 3 }, byId));
  const loop = { ...FRAME, parent: "while" };
  assert.ok(depthOf(loop, new Map([["while", loop]])) > 0, "a frame that names itself ends");
});

test("frames are listed as a tree, older iterations first", () => {
  const inner = (number: number): FrameState => ({ ...FRAME, id: `while:${number}/inner`, loop: 1, parent: "while", parent_iteration: number });
  const deep = { ...FRAME, id: "while:3/inner:0/deep", loop: 2, parent: "while:3/inner", parent_iteration: 0 };
  const lost = { ...FRAME, id: "lost", loop: 9, parent: "gone", parent_iteration: 0 };
  assert.deepEqual(inOrder([FRAME, inner(4), inner(3), deep, lost]).map(({ id }) => id),
    ["while", "while:3/inner", "while:3/inner:0/deep", "while:4/inner", "lost"]);
});

test("of many frames those near the root are listed, of these the busiest", () => {
  const inner = (number: number, iterations_per_s: number): FrameState =>
    ({ ...FRAME, id: `while:${number}/inner`, loop: 1, parent: "while", parent_iteration: number, iterations_per_s });
  const deep = { ...FRAME, id: "while:3/inner:0/deep", loop: 2, parent: "while:3/inner", parent_iteration: 0, iterations_per_s: 1e6 };
  const frames = [deep, inner(5, 9), inner(4, 1), inner(3, 10), FRAME];
  const told = (most: number): [string[], number] => {
    const { shown, more } = readable(frames, most);
    return [shown.map(({ id }) => id), more];
  };
  assert.deepEqual(told(3), [["while", "while:3/inner", "while:5/inner"], 2]);
  assert.deepEqual(told(4), [["while", "while:3/inner", "while:4/inner", "while:5/inner"], 1]);
  assert.deepEqual(told(5)[1], 0);
});

test("one chip stands for all frames in a box", () => {
  const run = { ...RUN, frames: [FRAME, { ...FRAME, id: "b", loop: 1, iteration: 7 }, { ...FRAME, id: "c", loop: 2 }] };
  const chips = chipsOf(run, (loop) => (loop === 2 ? null : "s:closed"), { frame: "while", number: 410 });
  assert.deepEqual(chips, [{ box: "s:closed", text: "i = 412, 410 chosen, 1 more" }]);
  assert.deepEqual(chipsOf(null, () => "s:"), []);
  assert.ok(isOver(null) && isOver(RUN) && !isOver(run));
});

test("the model keeps a run until another is told, in its own numbers", () => {
  const model = new GraphModel();
  const nodes = loops();
  model.applySnapshot({ ...snapshotOf(nodes), run: { ...RUN, pace_s: 1 } });
  assert.equal(model.run?.pace_s, 1);
  model.applyDelta(deltaOf(null));
  assert.equal(model.run?.pace_s, 1);
  const loop = nodes.find(({ type }) => type === "Loop")!;
  model.applyDelta({ ...deltaOf(null), graph: {
    version: 3, added: [{ ...loop, id: 100 }], placed: [], changed: [], removed: [loop.id], marked: [], fetches: [],
  } });
  const position = { op: 100, frame: "while", iterations: [1], what: "" };
  const token: Token = { source: 100, output: 0, target: 100, frame: "", iterations: [], is_dead: false };
  model.applyDelta(deltaOf({ ...RUN, frames: [{ ...FRAME, loop: 100 }], position, tokens: [token] }));
  assert.deepEqual([model.run?.frames[0]?.loop, model.run?.position?.op, model.run?.tokens[0]?.source], [loop.id, loop.id, loop.id]);
});

test("a choice of an iteration is told once", () => {
  const store = new Store();
  const told: string[] = [];
  store.changed.connect(({ what }) => told.push(what));
  store.chooseIteration({ frame: "while", number: 3 }, store);
  store.chooseIteration({ frame: "while", number: 3 }, store);
  store.chooseIteration(null, store);
  store.chooseIteration(null, store);
  assert.deepEqual(told, ["iteration", "iteration"]);
});

test("a pace is sent with its value, a step without", () => {
  const channel = new Channel();
  channel.take({ kind: "open" });
  channel.take({ kind: "message", message: snapshotOf([]), at_ms: 0 });
  const sent = (name: "pace" | "step_op", value?: number): unknown =>
    channel.take({ kind: "command", name, at_ms: 0, ...(value === undefined ? {} : { value }) });
  assert.deepEqual(sent("pace", 0.25), [{ kind: "send", message: { kind: "command", command_id: 1, name: "pace", value: 0.25, view: 1 } }]);
  assert.deepEqual(sent("step_op"), [{ kind: "send", message: { kind: "command", command_id: 2, name: "step_op", value: null, view: 1 } }]);
});

test("a value takes the lines from its operation to the one that takes it, through parameters", () => {
  const picture = new Picture(...OPEN);
  const box = (name: string): string => `o${picture.id(name)}`;
  assert.deepEqual(picture.way("while/body/mul", 0, "while/body/tanh"), [`s:while/body|${box("while/body/mul")}|${box("while/body/tanh")}`]);
  const [body, frame, wall, last] = picture.way("while/body/tanh", 0, "while/body/mul");
  assert.deepEqual([body, frame, wall, last], [
    `s:while/body|${box("while/body/tanh")}|`, "s:while|s:while/body|s:while/body",
    `s:while/body||${box("while/body/y")}`, `s:while/body|${box("while/body/y")}|${box("while/body/mul")}`,
  ]);
  assert.equal(picture.way("x", 0, "while/body/mul").at(0), "s:|" + box("x") + "|s:while");
  assert.deepEqual(picture.way("while/Loop", 1, "sum").at(0), `s:while/body|${box("while/body/tanh")}|`, "out of the result");
  assert.deepEqual(picture.way("sum", 0, "while/body/mul"), [], "no lines lead there");
});

test("in a closed frame a value moves unseen, and from outside to the frame", () => {
  const picture = new Picture();
  assert.deepEqual(picture.way("while/body/mul", 0, "while/body/tanh"), []);
  assert.deepEqual(picture.way("x", 0, "while/body/mul"), [`s:|o${picture.id("x")}|s:while`]);
  assert.equal(picture.edgePaths.frameOf(picture.id("while/Loop")), "s:while");
  assert.equal(new Picture(...OPEN).edgePaths.frameOf(picture.id("while/Loop")), "s:while");
  assert.equal(picture.edgePaths.boxOf(9999), null);
});

test("a point runs along a drawn line", () => {
  const points = sampled([0, 0, 0, 10, 20, 30]);
  assert.deepEqual(pointAt(points, 0), { x: 0, y: 0 });
  assert.deepEqual(pointAt(points, 1), { x: 20, y: 30 });
  const { x, y } = pointAt(points, 0.5);
  assert.ok(x > 2 && x < 18 && y > 10 && y < 25);
  assert.deepEqual(pointAt([0, 0, 0, 100], 0.25), { x: 0, y: 25 });
});

test("chips, the held operation and values over the picture", () => {
  const picture = new Picture(...OPEN);
  const [mul, tanh, y] = ["while/body/mul", "while/body/tanh", "while/body/y"].map((name) => picture.id(name));
  const token = (source: number | undefined, target: number | undefined, rest: Partial<MovingToken>): MovingToken => ({
    links: picture.edgePaths.find(source ?? -1, 0, target ?? -1), from: `o${source}`, to: `o${target}`, text: "41", isDead: false,
    isFaint: false, share: 0.5, ...rest,
  });
  matchSnapshot("loops-running", "svg", picture.svg({
    chips: [{ box: "s:while", text: "i = 412, 8 in flight" }], held: `o${tanh}`,
    tokens: [token(mul, tanh, {}), token(tanh, y, { share: 0.6 }), token(tanh, y, { share: 0.3, text: "1042", isDead: true })],
  }));
  assert.deepEqual(runningMarks(STILL, picture.positions, LIGHT), []);
  assert.deepEqual(runningMarks({ ...STILL, held: "o999", chips: [{ box: "s:no", text: "" }] }, picture.positions, LIGHT), []);
});

test("a value without lines goes straight, and from afar all is drawn larger", () => {
  const { positions } = new Picture();
  const token: MovingToken = { links: [], from: "o0", to: "s:choose", text: "", isDead: false, isFaint: false, share: 0 };
  const [near] = runningMarks({ ...STILL, tokens: [token] }, positions, LIGHT);
  const [far] = runningMarks({ ...STILL, tokens: [token] }, positions, LIGHT, 0.5);
  assert.ok(near?.kind === "shape" && far?.kind === "shape");
  const from = positions.boxes.get("o0")!;
  assert.deepEqual([near.x + near.w / 2, near.y + near.h / 2], [from.x + from.w / 2, from.y + from.h]);
  assert.equal(far.w, 2 * near.w);
});

test("dots start, travel, rest, and leave when the step runs freely", () => {
  const picture = new Picture(...OPEN);
  const run = new PlayedRun(loops());
  run.hear({ kind: "command", command_id: 1, name: "step_op", value: null, view: 1 });
  const state = { ...run.run(), pace_s: 1 };
  const motion = new TokenMotion();
  motion.take(state, 1000);
  assert.equal(motion.count, state.tokens.length);
  const at = (now: number, isStill = false): number[] => motion.at(now, picture.edgePaths, null, isStill).map(({ share }) => share);
  assert.equal(at(1000)[0], 0);
  assert.ok(motion.moves(1001));
  assert.ok((at(1300)[0] ?? 0) > 0 && (at(1300)[0] ?? 1) < 1);
  assert.deepEqual(at(3000), state.tokens.map(() => 1), "they rest");
  assert.ok(!motion.moves(3000));
  assert.deepEqual(at(3000, true), state.tokens.map(() => 0.5), "without motion they stand half way");
  motion.take({ ...state, tokens: [] }, 3100);
  assert.equal(motion.count, state.tokens.length, "nothing new has moved");
  const { frame, iterations } = state.tokens[0]!;
  const isFaint = (number: number): boolean | undefined => motion.at(3000, picture.edgePaths, { frame, number }, false)[0]?.isFaint;
  assert.deepEqual([isFaint(iterations[0]!), isFaint(99)], [false, true]);
  motion.take({ ...RUN, frames: [FRAME] }, 3200);
  assert.equal(motion.count, 0);
});
