/** Way points for long lines, and the hops between neighbouring ranks. */
import { at, type Drawing, type Hop, type Wire } from "./drawing.js";
import { neighbours } from "./ranks.js";

/** Way points that one scope may have; the longest lines go without first. */
const MOST_POINTS = 12_000;

/** Adds way points to the drawing's vertices, sets each wire's path, returns all hops. */
export function makeChains(drawing: Drawing): Hop[] {
  const near = neighbours(drawing);
  const points = new Map<string, number>();
  const hops = new Map<string, Hop>();
  const forward = drawing.wires.filter((wire) => !wire.isBack);
  const span = (wire: Wire): number => at(drawing.vertices, wire.to).rank - at(drawing.vertices, wire.from).rank;
  for (const wire of [...forward].sort((a, b) => span(a) - span(b))) {
    if (span(wire) > 1 && points.size + span(wire) > MOST_POINTS) continue;
    // A fan shares the way points of its busier end.
    const bySource = at(near.out, wire.from).length >= at(near.into, wire.to).length;
    const name = bySource ? `s${wire.from},${wire.fromDx}` : `t${wire.to},${wire.toDx}`;
    wire.path = pathOf(drawing, wire, name, points);
    addHops(drawing, wire, hops);
  }
  return [...hops.values()];
}

function pathOf(drawing: Drawing, wire: Wire, name: string, points: Map<string, number>): number[] {
  const { vertices } = drawing;
  const path = [wire.from];
  for (let rank = at(vertices, wire.from).rank + 1; rank < at(vertices, wire.to).rank; rank++) {
    const key = `${name}@${rank}`;
    let point = points.get(key);
    if (point === undefined) {
      point = vertices.length;
      points.set(key, point);
      vertices.push({ kind: "point", id: "", w: 2, h: 0, rank, x: 0, y: 0, seed: NaN });
    }
    path.push(point);
  }
  path.push(wire.to);
  return path;
}

function addHops(drawing: Drawing, wire: Wire, hops: Map<string, Hop>): void {
  for (let k = 1; k < wire.path.length; k++) {
    const upper = at(wire.path, k - 1);
    const lower = at(wire.path, k);
    const upperDx = k === 1 ? wire.fromDx : 0;
    const lowerDx = k === wire.path.length - 1 ? wire.toDx : 0;
    const key = `${upper},${upperDx},${lower},${lowerDx}`;
    if (hops.has(key)) continue;
    hops.set(key, { upper, lower, upperDx, lowerDx, weight: weightOf(drawing, upper, lower) });
  }
}

/** The middle of a long line and the step from box to box want to be straight; ends of lines bend. */
function weightOf(drawing: Drawing, upper: number, lower: number): number {
  const boxes = [upper, lower].filter((i) => at(drawing.vertices, i).kind === "box").length;
  return boxes === 0 ? 6 : boxes === 1 ? 0.6 : 3;
}
