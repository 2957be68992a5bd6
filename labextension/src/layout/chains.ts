/** Way points for long lines, and the hops between neighbouring ranks. */
import { at, lowerOf, upperOf, type Drawing, type Hop, type Wire } from "./drawing.js";
import { PULL } from "./types.js";

/** Way points that one scope may have; the longest lines go without first. */
const MOST_POINTS = 12_000;

/** Adds way points to the drawing's vertices, sets each wire's path, returns all hops; what has too many becomes a stub. */
export function makeChains(drawing: Drawing): Hop[] {
  const points = new Map<string, number>();
  const hops = new Map<string, Hop>();
  const running = drawing.wires.filter(({ course }) => course === "down" || course === "up");
  const fans = fanSizes(running);
  const span = (wire: Wire): number => at(drawing.vertices, lowerOf(wire).i).rank - at(drawing.vertices, upperOf(wire).i).rank;
  for (const wire of [...running].sort((a, b) => span(a) - span(b))) {
    if (span(wire) > 1 && points.size + span(wire) > MOST_POINTS) {
      wire.course = "stub";
      continue;
    }
    // A fan shares the way points of its busier end.
    const [upper, lower] = [`u${endKey(upperOf(wire))}${wire.course}`, `l${endKey(lowerOf(wire))}${wire.course}`];
    const name = (fans.get(upper) ?? 0) >= (fans.get(lower) ?? 0) ? upper : lower;
    wire.path = pathOf(drawing, wire, name, points);
    addHops(wire, hops, drawing);
  }
  return [...hops.values()];
}

const endKey = ({ i, dx }: { i: number; dx: number }): string => `${i},${dx}`;

/** How many lines begin or end at a place. */
function fanSizes(wires: readonly Wire[]): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const wire of wires) {
    for (const key of [`u${endKey(upperOf(wire))}${wire.course}`, `l${endKey(lowerOf(wire))}${wire.course}`]) {
      sizes.set(key, (sizes.get(key) ?? 0) + 1);
    }
  }
  return sizes;
}

function pathOf(drawing: Drawing, wire: Wire, name: string, points: Map<string, number>): number[] {
  const { vertices } = drawing;
  const [upper, lower] = [upperOf(wire).i, lowerOf(wire).i];
  const path = [upper];
  for (let rank = at(vertices, upper).rank + 1; rank < at(vertices, lower).rank; rank++) {
    const key = `${name}@${rank}`;
    let point = points.get(key);
    if (point === undefined) {
      point = vertices.length;
      points.set(key, point);
      vertices.push({ kind: "point", id: "", parts: [], w: 2, h: 0, rank, level: 0, x: 0, y: 0, seed: NaN });
    }
    path.push(point);
  }
  path.push(lower);
  return path;
}

function addHops(wire: Wire, hops: Map<string, Hop>, drawing: Drawing): void {
  for (let k = 1; k < wire.path.length; k++) {
    const upper = at(wire.path, k - 1);
    const lower = at(wire.path, k);
    const upperDx = k === 1 ? upperOf(wire).dx : 0;
    const lowerDx = k === wire.path.length - 1 ? lowerOf(wire).dx : 0;
    const key = `${upper},${upperDx},${lower},${lowerDx}`;
    if (hops.has(key)) continue;
    hops.set(key, { upper, lower, upperDx, lowerDx, weight: weightOf(drawing, upper, lower) });
  }
}

/** The middle of a long line and the step from box to box want to be straight; ends of lines bend. */
function weightOf(drawing: Drawing, upper: number, lower: number): number {
  const boxes = [upper, lower].filter((i) => at(drawing.vertices, i).kind === "box").length;
  return boxes === 0 ? PULL.points : boxes === 1 ? PULL.end : PULL.boxes;
}
