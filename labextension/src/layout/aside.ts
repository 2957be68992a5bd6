/** Boxes without data links stand aside: on the right, near the boxes that they wait for. */
import { isotonic } from "./coordinates.js";
import { at, type Drawing, type Vertex } from "./drawing.js";
import { placeRows, rowWidth } from "./grid.js";
import type { Extent } from "./scope.js";
import { SPACE } from "./types.js";

const GAP = 16;

export function placeAside(
  drawing: Drawing, control: readonly (readonly [string, string])[], extent: Extent, lines: number,
): void {
  const boxes = drawing.aside.map((i) => at(drawing.vertices, i));
  if (boxes.length === 0) return;
  if (boxes.length === drawing.vertices.length) {
    placeRows(boxes, 0, 0, rowWidth(boxes, SPACE.sibling), SPACE.sibling);
    return;
  }
  const left = Math.max(extent.right, lines) + 2 * SPACE.sibling;
  const height = Math.max(extent.bottom - extent.top, 160);
  const need = boxes.reduce((sum, box) => sum + box.h + GAP, 0);
  if (need <= height) return placeColumn(boxes, wishes(drawing, control, extent), left, extent.top);
  const area = boxes.reduce((sum, box) => sum + (box.w + GAP) * (box.h + GAP), 0);
  const widest = boxes.reduce((most, box) => Math.max(most, box.w), 0);
  placeRows(boxes, left, extent.top, Math.max(widest, area / height), GAP);
}

/** For each box the height at which its control neighbours stand on average. */
function wishes(
  drawing: Drawing, control: readonly (readonly [string, string])[], extent: Extent,
): Map<Vertex, number> {
  const aside = new Set(drawing.aside);
  const byId = new Map(drawing.vertices.map((vertex, i) => [vertex.id, { vertex, isAside: aside.has(i) }]));
  const heights = new Map<Vertex, number[]>();
  for (const pair of control) {
    const [from, to] = [byId.get(pair[0]), byId.get(pair[1])];
    if (!from || !to || from.isAside === to.isAside) continue;
    const [box, other] = from.isAside ? [from.vertex, to.vertex] : [to.vertex, from.vertex];
    heights.set(box, [...(heights.get(box) ?? []), other.y + other.h / 2]);
  }
  // What waits for nothing here begins where the others do.
  const middle = (list: readonly number[] | undefined, { h }: Vertex): number =>
    list ? list.reduce((sum, y) => sum + y, 0) / list.length : extent.top + h / 2;
  return new Map(drawing.aside.map((i) => {
    const vertex = at(drawing.vertices, i);
    return [vertex, middle(heights.get(vertex), vertex)];
  }));
}

function placeColumn(boxes: readonly Vertex[], wish: ReadonlyMap<Vertex, number>, left: number, least: number): void {
  const top = (box: Vertex): number => (wish.get(box) ?? 0) - box.h / 2;
  const order = [...boxes].sort((a, b) => top(a) - top(b));
  const offsets: number[] = [];
  order.forEach((box, k) => {
    const above = order[k - 1];
    offsets.push(above ? (offsets[k - 1] ?? 0) + (above.h + box.h) / 2 + GAP : 0);
  });
  const places = Float64Array.from(order, (box, k) => (wish.get(box) ?? 0) - (offsets[k] ?? 0));
  isotonic(places, new Float64Array(order.length).fill(1));
  const down = Math.max(0, least - ((places[0] ?? 0) - (order[0]?.h ?? 0) / 2));
  order.forEach((box, k) => {
    box.x = left + box.w / 2;
    box.y = Math.round((places[k] ?? 0) + (offsets[k] ?? 0) - box.h / 2 + down);
  });
}
