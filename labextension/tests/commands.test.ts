/** The tables of commands and of panels. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { CommandTable, commandOfKey } from "../src/view/command_table.js";
import { COMMANDS, keysText } from "../src/view/commands.js";
import type { ViewContext } from "../src/view/context.js";
import { DebugModel } from "../src/model/debug.js";
import { Drawers } from "../src/view/drawers.js";
import { GraphModel } from "../src/model/graph.js";
import { PANELS, panelsIn } from "../src/view/registry.js";
import { Store } from "../src/model/store.js";
import { SessionLink } from "../src/view/session_link.js";
import { snapshotOf } from "../dev/builder.js";
import type { SessionState } from "../src/wire/messages.js";

const SESSION: SessionState = {
  state: "running", steps: 1, steps_per_s: null, step_time_s: null, progress: null, queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [],
};

/** The parts of a view that steer the run. */
function steering(): { readonly table: CommandTable; readonly sent: string[]; tell(state: SessionState["state"]): void; readonly drawers: Drawers; readonly session: SessionLink } {
  const sent: string[] = [];
  const model = new GraphModel();
  const session = new SessionLink((name, value) => sent.push(value === undefined ? name : `${name} ${value}`));
  const drawers = new Drawers();
  const view: Partial<ViewContext> = { model, session, drawers, debug: new DebugModel(model), store: new Store() };
  const table = new CommandTable(() => view as ViewContext, new AbortController().signal);
  return { table, sent, drawers, session, tell: (state) => model.applySnapshot(snapshotOf([], { ...SESSION, state })) };
}

test("no two commands have the same id, label or key", () => {
  const keys = COMMANDS.flatMap(({ keys: own, where }) => own.map((key) => `${where ?? ""} ${key}`));
  for (const told of [COMMANDS.map(({ id }) => id), COMMANDS.map(({ label }) => label), keys]) {
    assert.equal(new Set(told).size, told.length, told.join(", "));
  }
});

test("every command is reached by a key or by a button that is shown", () => {
  const sources = readdirSync("src/view").map((name) => (name === "commands.ts" ? "" : readFileSync(`src/view/${name}`, "utf8"))).join("\n");
  for (const { id, keys, icon } of COMMANDS) {
    const hasButton = icon !== undefined && sources.includes(`"${id}"`);
    assert.ok(keys.length > 0 || hasButton, id);
    assert.equal(icon !== undefined, hasButton, `${id} has an icon and no button`);
  }
});

test("keys are found and written as people know them", () => {
  assert.deepEqual([" ", "=", "?", "z"].map((key) => commandOfKey(key)?.id), ["pause", "zoom-in", "keys", undefined]);
  assert.deepEqual(["pause", "zoom-in", "walk-up"].map((id) => keysText(COMMANDS.find((one) => one.id === id)!)), ["Space", "+ =", "\u2191"]);
});

test("a place with keys of its own hears these first, and those of the view besides", () => {
  const ids = (where: "stage" | "timeline"): (string | undefined)[] => ["a", "w", "s", "t", "ArrowLeft", "Escape"].map((key) => commandOfKey(key, where)?.id);
  assert.deepEqual(ids("stage"), ["isolate", "variables", undefined, "timeline", "walk-left", "leave"]);
  assert.deepEqual(ids("timeline"), ["time-left", "time-in", "time-out", "timeline", "slice-left", "time-leave"]);
});

test("a command runs only while it can", () => {
  const { table, sent, tell, session } = steering();
  tell("running");
  for (const id of ["pause", "stop", "lowered"]) table.run(id);
  assert.deepEqual(sent, ["level lowered"], "nothing that steers the run is heard yet");
  session.setHeard(true);
  for (const id of ["pause", "stop"]) table.run(id);
  tell("paused");
  for (const id of ["pause", "step-op" ]) assert.ok(table.isEnabled(id), id);
  table.run("pause");
  tell("closed");
  for (const id of ["pause", "stop", "step-op", "step-iteration"]) table.run(id);
  assert.deepEqual(sent, ["level lowered", "pause", "stop", "resume"]);
  assert.throws(() => table.run("fly"), /there is no fly/);
});

test("Escape closes the help before it leaves a selection", () => {
  const { table, drawers } = steering();
  table.run("keys");
  assert.ok(drawers.isOpen("keys"));
  table.run("leave");
  assert.ok(!drawers.isOpen("keys"));
});

test("no two panels have the same id, nor the same place", () => {
  assert.equal(new Set(PANELS.map(({ id }) => id)).size, PANELS.length);
  assert.equal(new Set(PANELS.map(({ region, order }) => `${region} ${order}`)).size, PANELS.length);
  assert.deepEqual(panelsIn("stage").map(({ id }) => id), ["minimap", "keys", "more", "save", "card", "speech"]);
  assert.deepEqual(panelsIn("strip").map(({ id }) => id), ["find", "heat", "devices"]);
});
