/** The layout on random graphs: boxes lie apart, lines keep out of boxes, little moves, the same comes out each time. */
import assert from "node:assert/strict";
import test from "node:test";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import type { BoxInput, LinkInput, Positions, Rect, Room, ScopeInput } from "../src/layout/types.js";
import { sampled } from "../src/render/trace.js";
import type { Lane } from "../src/rules/types.js";

/** Numbers from 0 to 1 that look random. Source: mulberry32. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const ROOMS: readonly Room[] = [{ w: 1212, h: 498 }, { w: 532, h: 498 }, { w: 800, h: 700 }];

/** A scope of up to 40 boxes with gradients, optimizers and boxes aside; with `inner` one box is an open scope. */
function scopeOf(seed: number, inner: ScopeInput | null): ScopeInput {
  const next = random(seed);
  const below = (n: number): number => Math.floor(next() * n);
  const count = 1 + below(28);
  const boxes: BoxInput[] = [];
  const links: LinkInput[] = [];
  const add = (id: string, lane: Lane, beside: string | null = null): void => {
    boxes.push({ id, w: 76 + 2 * below(60), h: 38 + 4 * below(2), inner: null, lane, beside });
  };
  const link = (from: string, to: string): void => {
    if (!links.some((one) => one.id === `s|${from}|${to}`)) links.push({ id: `s|${from}|${to}`, source: from, from, to });
  };
  for (let k = 0; k < count; k++) {
    add(`m${k}`, "model");
    for (let n = below(3); n > 0 && k > 0; n--) link(`m${Math.max(0, k - 1 - below(1 + below(8)))}`, `m${k}`);
  }
  const gradients = below(2) * below(count);
  for (let k = 0; k < gradients; k++) {
    // Some boxes have several gradients beside them.
    add(`g${k}`, "gradient", next() < 0.8 ? `m${k % 4 === 0 ? k : k - (k % 4) + 1}` : null);
    link(`m${k}`, `g${k}`);
    if (k > 0) link(`g${k}`, `g${k - 1}`);
  }
  for (let k = below(3); k > 0; k--) {
    add(`t${k}`, "optimizer");
    for (let n = 0; n < gradients; n++) link(`g${n}`, `t${k}`);
    link(`m${below(count)}`, `t${k}`);
  }
  for (let k = below(4); k > 0; k--) {
    add(`a${k}`, "aside");
    link(`m${below(count)}`, `a${k}`);
  }
  const whole = boxes.map((box) => (inner && box.id === "m0" ? { ...box, inner } : box));
  return { path: "s", boxes: whole, links, header: 0, room: ROOMS[seed % ROOMS.length] ?? { w: 900, h: 500 } };
}

const inside = (seed: number): ScopeInput => ({
  ...scopeOf(seed, null), path: "m0", header: 140,
  boxes: scopeOf(seed, null).boxes.map((box) => ({ ...box, id: `i${box.id}`, beside: box.beside ? `i${box.beside}` : null })),
  links: scopeOf(seed, null).links.map((one) => ({ ...one, id: `m0|${one.id}`, source: `i${one.source}`, from: `i${one.from}`, to: `i${one.to}` })),
});

const SEEDS = Array.from({ length: 250 }, (_, k) => k + 1);

function overlap(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function assertApart(seed: number, { boxes }: Positions, ids: readonly string[]): void {
  const rects = ids.map((id) => ({ id, rect: boxes.get(id) }));
  rects.forEach(({ id, rect }, k) => {
    assert.ok(rect, `${seed}: no place for ${id}`);
    for (const other of rects.slice(k + 1)) {
      assert.ok(other.rect && !overlap(rect, other.rect), `${seed}: ${id} and ${other.id} overlap`);
    }
  });
}

test("250 random graphs: boxes lie apart, and inside the picture", () => {
  for (const seed of SEEDS) {
    const scope = scopeOf(seed, null);
    const positions = layoutTree(scope, new LayoutMemory());
    assertApart(seed, positions, scope.boxes.map(({ id }) => id));
    for (const [id, { x, y, w, h }] of positions.boxes) {
      assert.ok(x >= 0 && y >= 0 && x + w <= positions.w && y + h <= positions.h, `${seed}: ${id} leaves the picture`);
    }
  }
});

test("250 random graphs: lines join their boxes and run outside of all others", () => {
  for (const seed of SEEDS) {
    const scope = scopeOf(seed, null);
    const { boxes, routes } = layoutTree(scope, new LayoutMemory());
    for (const { id, from, to } of scope.links) {
      const route = routes.get(id);
      if (!route) continue;
      const points = sampled(route);
      assert.ok(isOnWall(boxes.get(from ?? ""), route[0], route[1]), `${seed}: ${id} begins beside ${from}`);
      assert.ok(isOnWall(boxes.get(to ?? ""), route.at(-2), route.at(-1)), `${seed}: ${id} ends beside ${to}`);
      for (const [box, rect] of boxes) {
        if (box === "s") continue;
        const isEnd = box === from || box === to;
        for (let k = 0; k + 1 < points.length; k += 2) {
          assert.ok(!isWithin(rect, points[k] ?? 0, points[k + 1] ?? 0, isEnd ? 2 : 0), `${seed}: ${id} runs through ${box}`);
        }
      }
    }
  }
});

function isOnWall(rect: Rect | undefined, px = NaN, py = NaN): boolean {
  if (!rect) return false;
  const isInside = px > rect.x + 2 && px < rect.x + rect.w - 2 && py > rect.y + 2 && py < rect.y + rect.h - 2;
  const isNear = px >= rect.x - 2 && px <= rect.x + rect.w + 2 && py >= rect.y - 2 && py <= rect.y + rect.h + 2;
  return isNear && !isInside;
}

function isWithin({ x, y, w, h }: Rect, px: number, py: number, by: number): boolean {
  return px > x + by && px < x + w - by && py > y + by && py < y + h - by;
}

test("250 random graphs: nothing changes its place in the order of reading when a box is opened", () => {
  for (const seed of SEEDS) {
    const memory = new LayoutMemory();
    const [closed, open] = [scopeOf(seed, null), scopeOf(seed, inside(seed + 1000))];
    const before = layoutTree(closed, memory);
    const after = layoutTree(open, memory);
    const ids = closed.boxes.map(({ id }) => id);
    const order = ({ boxes }: Positions): string[] => [...boxes.keys()].filter((id) => ids.includes(id));
    assert.deepEqual(order(after), order(before), `${seed}`);
    assertApart(seed, after, ids);
    assert.deepEqual(layoutTree(closed, memory), before, `${seed}: closed again, all is as it was`);
  }
});

test("250 random graphs: the same is open in the same drawing, whatever was opened before", () => {
  for (const seed of SEEDS) {
    const [closed, open] = [scopeOf(seed, null), scopeOf(seed, inside(seed + 1000))];
    const memory = new LayoutMemory();
    const [first, opened, again] = [closed, open, closed].map((root) => layoutTree(root, memory));
    assert.deepEqual(layoutTree(open, new LayoutMemory()), opened, `seed ${seed}: opened in another view at once`);
    assert.deepEqual(again, first, `seed ${seed}: closed again`);
  }
});

test("the same graph gives the same picture", () => {
  for (const seed of SEEDS.slice(0, 40)) {
    assert.deepEqual(layoutTree(scopeOf(seed, null), new LayoutMemory()), layoutTree(scopeOf(seed, null), new LayoutMemory()));
  }
});

test("a level of 40 boxes is laid out in a few hundredths of a second", () => {
  const start = process.cpuUsage();
  for (const seed of SEEDS) layoutTree(scopeOf(seed, null), new LayoutMemory());
  assert.ok(process.cpuUsage(start).user < SEEDS.length * 60e3);
});
