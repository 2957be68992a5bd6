/** How a view's room is divided: what gives way, in which order, and that nothing lies on top of anything. */
import assert from "node:assert/strict";
import test from "node:test";
import { divide, heightIn, keptIn, PICTURE_LEAST, RAIL_PX, TITLE_PX, unfolded, type Wish } from "../src/view/division.js";
import { PANELS, panelsIn } from "../src/view/registry.js";
import { TABS, MORE, PICTURE_ACTS, taskOf } from "../src/view/tabs.js";
import { COMMANDS } from "../src/view/commands.js";

const SECTIONS: readonly Wish[] = [...panelsIn("panels"), ...panelsIn("about")].map(({ id, least, region }) => ({ id, least: least ?? { w: 240, h: 120 }, isAbout: region === "about" }));
const wishes = (...ids: string[]): Wish[] => ids.map((id) => SECTIONS.find((one) => one.id === id)!);

/** A stream of numbers from 0 to 1 that is the same in every run. */
function* random(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    yield state / 2 ** 31;
  }
}

test("a docked panel, a cell and a page at twice the size have the same rule", () => {
  const told = (w: number, h: number, ...ids: string[]): string => divide(w, h, wishes(...ids)).mode;
  assert.deepEqual(
    [told(1200, 486), told(1200, 486, "inspector"), told(1200, 486, "debug", "inspector"), told(860, 486, "debug", "inspector"), told(480, 650, "debug", "inspector"), told(480, 330, "debug"), told(300, 650, "debug")],
    ["alone", "beside", "columns", "beside", "under", "over", "over"],
  );
});

test("the picture and what is open have at least what they can be read in, in every room, and no more than there is", () => {
  const next = random(7);
  const pick = (): number => next.next().value as number;
  for (let i = 0; i < 4000; i++) {
    const [w, h] = [240 + pick() * 1700, 180 + pick() * 1000];
    const open = SECTIONS.filter(() => pick() < 0.25);
    const wanted = pick() < 0.5 ? { w: null, h: null } : { w: pick() * 2000, h: pick() * 1200 };
    const { mode, size_px, about_px } = divide(w, h, open, wanted);
    const told = `${mode} ${w} x ${h} ${open.map(({ id }) => id)}`;
    const [panels, about] = [open.filter(({ isAbout }) => !isAbout), open.filter(({ isAbout }) => isAbout)];
    const most = (list: readonly Wish[]): number => Math.max(0, ...list.map(({ least }) => least.w));
    if (mode === "columns") {
      assert.ok(size_px >= most(panels) && about_px >= most(about), told);
      assert.ok(w - RAIL_PX - size_px - about_px >= PICTURE_LEAST.w - 1e-6, told);
    } else if (mode === "beside") {
      assert.ok(size_px >= most(open) && w - RAIL_PX - size_px >= PICTURE_LEAST.w - 1e-6, told);
    } else if (mode === "under") {
      assert.ok(size_px > 0 && h - size_px >= PICTURE_LEAST.h - 1e-6, told);
    } else assert.ok(mode === "over" ? w - RAIL_PX < (h < 400 ? PICTURE_LEAST.w : 0) + most(open) : open.length === 0, told);
  }
});

test("what was opened last stands unfolded, the others as long as they have room; all titles are seen", () => {
  assert.deepEqual([...unfolded(452, wishes("debug", "inspector"))], ["debug", "inspector"]);
  assert.deepEqual([...unfolded(300, wishes("value", "debug", "inspector"))], ["value"]);
  assert.deepEqual([...unfolded(452, wishes("value", "timeline", "inspector", "frames"))], ["value", "timeline"]);
  for (let h = 0; h < 900; h += 13) {
    const open = wishes("value", "timeline", "run", "inspector", "frames");
    const [newest, ...others] = unfolded(h, open);
    assert.equal(newest, "value", "what was asked for is seen in any height");
    const taken = others.reduce((sum, id) => sum + wishes(id)[0]!.least.h, wishes("value")[0]!.least.h);
    if (others.length > 0) assert.ok(taken + open.length * TITLE_PX <= h);
  }
});

test("a view in a page has its height from the window once, between two bounds", () => {
  assert.deepEqual([400, 800, 1200].map(heightIn), [360, 512, 640]);
});

test("what was kept is read with care", () => {
  const ids = new Set(["debug", "run"]);
  assert.deepEqual(keptIn({ open: ["run", "gone", "run", 3], wanted: { w: 410, h: "x" } }, ids), { open: ["run"], wanted: { w: 410, h: null } });
  for (const bad of [null, 3, {}, { type: "tab-area", widgets: [] }, { open: "run" }]) assert.equal(keptIn(bad, ids), null);
  assert.deepEqual(keptIn({ open: [] }, ids), { open: [], wanted: { w: null, h: null } }, "all may be closed");
});

test("each section tells the least that it can be read in, and is opened by a button that has a word", () => {
  const acts = new Set([...TABS.flatMap((tab) => tab.acts), ...MORE]);
  for (const { id, least } of [...panelsIn("panels"), ...panelsIn("about")]) {
    assert.ok(least && least.w >= 180 && least.h >= 60, id);
    assert.ok([...acts].some((act) => act === id || act === `${id}-panel`), `${id} is opened by no button`);
  }
  assert.deepEqual(TABS.map(({ word }) => word), ["Run", "Time", "Values", "Place"]);
  assert.equal(TABS.flatMap(({ panels }) => panels).length, panelsIn("panels").length);
});

test("keys are grouped by what they are for, in groups that can be looked over", () => {
  const groups = new Map<string, string[]>();
  for (const { id, keys } of COMMANDS) if (keys.length > 0) groups.set(taskOf(id), [...(groups.get(taskOf(id)) ?? []), id]);
  assert.deepEqual([...groups.keys()].sort(), ["Find", "Picture", "Place", "Run", "Select", "Time", "Values", "View"]);
  for (const [task, ids] of groups) assert.ok(ids.length <= 20, `${task}: ${ids}`);
  assert.deepEqual(groups.get("Picture"), ["zoom-in", "zoom-out", "fit"]);
});

test("what had a button at the picture's edge has one still", () => {
  const before = [
    "zoom-in", "zoom-out", "fit", "outline", "run-panel", "lowered", "partitions", "record", "heat", "devices", "timeline", "costs", "variables",
    "debug", "past", "summaries", "cluster", "save", "keys",
  ];
  const now = [...TABS.flatMap((tab) => tab.acts), ...MORE, ...PICTURE_ACTS];
  assert.deepEqual(before.filter((id) => !now.includes(id)), []);
  assert.equal(new Set(now).size, now.length, "each once");
  for (const id of now) assert.ok(COMMANDS.some((command) => command.id === id), id);
  assert.ok(PANELS.length > 0);
});
