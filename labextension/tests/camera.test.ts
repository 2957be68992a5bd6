/** How the picture lies on the stage: what was opened, and what is sought, can be read. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Rect } from "../src/layout/types.js";
import type { Camera } from "../src/render/paint.js";
import { fitIn, showNear, showOpened } from "../src/view/camera.js";

const [WIDTH, HEIGHT, LEGIBLE] = [800, 400, 0.6];
const LIFE: Camera = { x: 0, y: 0, zoom: 1 };

/** Where a box is seen. */
function seen({ x, y, zoom }: Camera, rect: Rect): Rect {
  return { x: x + rect.x * zoom, y: y + rect.y * zoom, w: rect.w * zoom, h: rect.h * zoom };
}

function isInside(camera: Camera, rect: Rect, margin: number): boolean {
  const { x, y, w, h } = seen(camera, rect);
  const e = 1e-6;
  return x >= margin - e && y >= margin - e && x + w <= WIDTH - margin + e && y + h <= HEIGHT - margin + e;
}

test("a picture that is fitted stands in the middle, and all of it is on the stage", () => {
  assert.deepEqual(fitIn(200, 100, WIDTH, HEIGHT), { zoom: 1.5, x: 250, y: 125 });
  assert.deepEqual(fitIn(200, 368, WIDTH, HEIGHT), { zoom: 1, x: 300, y: 16 });
  for (const [w, h] of [[200, 1000], [90_000, 300], [40, 70_000]] as const) {
    assert.ok(isInside(fitIn(w, h, WIDTH, HEIGHT), { x: 0, y: 0, w, h }, 16), `${w} x ${h}`);
  }
});

test("a picture that would be too small to be read is first shown from its upper left corner", () => {
  assert.deepEqual(fitIn(5000, 1000, WIDTH, HEIGHT, LEGIBLE), { zoom: LEGIBLE, x: 16, y: 16 });
});

test("a box that was opened stays where it was, if it fits there", () => {
  assert.deepEqual(showOpened(LIFE, { x: 100, y: 50, w: 300, h: 300 }, WIDTH, HEIGHT, LEGIBLE), LIFE);
});

test("a box that was opened and has room moves as little as brings it into sight", () => {
  const box = { x: 100, y: 250, w: 300, h: 300 };
  assert.deepEqual(showOpened(LIFE, box, WIDTH, HEIGHT, LEGIBLE), { x: 0, y: -166, zoom: 1 });
});

test("a box that is larger than the stage is seen from farther away, as long as it can be read", () => {
  const large = { x: 100, y: 50, w: 300, h: 500 };
  const camera = showOpened(LIFE, large, WIDTH, HEIGHT, LEGIBLE);
  assert.ok(isInside(camera, large, 16));
  assert.equal(camera.zoom, 368 / 500);
  const huge = { ...large, h: 5000 };
  const far = showOpened(LIFE, huge, WIDTH, HEIGHT, LEGIBLE);
  assert.equal(far.zoom, LEGIBLE);
  assert.ok(Math.abs(seen(far, huge).y - 16) < 1e-6, "its header is in sight");
});

test("a picture that the user sees from afar is not brought nearer by opening", () => {
  const camera = { x: 0, y: 0, zoom: 0.3 };
  const box = { x: 100, y: 50, w: 300, h: 9000 };
  assert.equal(showOpened(camera, box, WIDTH, HEIGHT, LEGIBLE).zoom, 0.3);
});

test("what is sought is seen with what is around it, large enough to be read", () => {
  const box = { x: 2000, y: 900, w: 100, h: 40 };
  for (const zoom of [0.1, 0.9, 3]) {
    const camera = showNear({ x: 0, y: 0, zoom }, box, WIDTH, HEIGHT, 0.85);
    assert.ok(isInside(camera, box, 90), `at zoom ${zoom}`);
    assert.ok(Math.abs(camera.zoom - Math.max(zoom, 0.85)) < 1e-9);
  }
  assert.deepEqual(showNear(LIFE, { x: 300, y: 150, w: 100, h: 40 }, WIDTH, HEIGHT, 0.85), LIFE);
});
