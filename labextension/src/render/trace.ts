/**
 * From a route to pen strokes, the same for canvas and SVG: straight along an axis, rounded where
 * two straight parts meet, swung with upright ends in between.
 */
export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  bezierCurveTo(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void;
  quadraticCurveTo(x1: number, y1: number, x: number, y: number): void;
}

const CORNER_PX = 8;

export function trace(pen: Pen, route: readonly number[]): void {
  let x = route[0] ?? 0;
  let y = route[1] ?? 0;
  pen.moveTo(x, y);
  for (let k = 2; k < route.length; k += 2) {
    const nx = route[k] ?? x;
    const ny = route[k + 1] ?? y;
    if (nx !== x && ny !== y) {
      const middle = (y + ny) / 2;
      pen.bezierCurveTo(x, middle, nx, middle, nx, ny);
    } else {
      straight(pen, x, y, nx, ny, route[k + 2], route[k + 3]);
    }
    x = nx;
    y = ny;
  }
}

/** A straight part; if the next one turns by a right angle, the corner is rounded. */
function straight(
  pen: Pen, x: number, y: number, nx: number, ny: number, tx: number | undefined, ty: number | undefined,
): void {
  const isTurn = tx !== undefined && ty !== undefined
    && ((nx === x && ty === ny && tx !== nx) || (ny === y && tx === nx && ty !== ny));
  if (!isTurn) return pen.lineTo(nx, ny);
  const along = Math.abs(nx - x) + Math.abs(ny - y);
  const after = Math.abs(tx - nx) + Math.abs(ty - ny);
  const r = Math.min(CORNER_PX, along / 2, after / 2);
  pen.lineTo(nx - Math.sign(nx - x) * r, ny - Math.sign(ny - y) * r);
  pen.quadraticCurveTo(nx, ny, nx + Math.sign(tx - nx) * r, ny + Math.sign(ty - ny) * r);
}

/** When far away: straight from point to point. */
export function traceStraight(pen: Pen, route: readonly number[]): void {
  pen.moveTo(route[0] ?? 0, route[1] ?? 0);
  for (let k = 2; k < route.length; k += 2) pen.lineTo(route[k] ?? 0, route[k + 1] ?? 0);
}

/** Corners of the arrow head at a route's end: x, y of tip, left and right. */
export function arrowHead(route: readonly number[], size: number): readonly number[] {
  const n = route.length;
  const [tx, ty] = [route[n - 2] ?? 0, route[n - 1] ?? 0];
  const [px, py] = [route[n - 4] ?? tx, route[n - 3] ?? ty];
  // A swung line arrives upright, whatever lies between its ends.
  const isSwung = px !== tx && py !== ty;
  const angle = isSwung ? Math.sign(ty - py) * (Math.PI / 2) : Math.atan2(ty - py, tx - px);
  const corner = (turn: number): [number, number] => [
    tx - size * Math.cos(angle + turn), ty - size * Math.sin(angle + turn),
  ];
  return [tx, ty, ...corner(0.42), ...corner(-0.42)];
}

/** A drawn route as many short straight parts. */
export function sampled(route: readonly number[]): number[] {
  const pen = new SamplingPen();
  trace(pen, route);
  return pen.points;
}

/** The point of a polyline after a share of its length. */
export function pointAt(points: readonly number[], share: number): { readonly x: number; readonly y: number } {
  const lengths: number[] = [];
  for (let k = 2; k < points.length; k += 2) {
    lengths.push(Math.hypot((points[k] ?? 0) - (points[k - 2] ?? 0), (points[k + 1] ?? 0) - (points[k - 1] ?? 0)));
  }
  let left = lengths.reduce((sum, one) => sum + one, 0) * Math.min(1, Math.max(0, share));
  for (let k = 0; k < lengths.length; k++) {
    const length = lengths[k] ?? 0;
    if (left <= length && length > 0) {
      const t = left / length;
      const mix = (i: number): number => (points[i] ?? 0) + ((points[i + 2] ?? 0) - (points[i] ?? 0)) * t;
      return { x: mix(2 * k), y: mix(2 * k + 1) };
    }
    left -= length;
  }
  return { x: points[points.length - 2] ?? 0, y: points[points.length - 1] ?? 0 };
}

/** Parts that a swing is cut into. */
const PARTS = 10;

class SamplingPen implements Pen {
  readonly points: number[] = [];

  moveTo(x: number, y: number): void {
    this.points.push(x, y);
  }

  lineTo(x: number, y: number): void {
    this.points.push(x, y);
  }

  bezierCurveTo(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void {
    const [x0, y0] = this.#last();
    for (let k = 1; k <= PARTS; k++) {
      const t = k / PARTS;
      const mix = (a: number, b: number, c: number, d: number): number =>
        (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
      this.points.push(mix(x0, x1, x2, x), mix(y0, y1, y2, y));
    }
  }

  /** Corners are small: straight through the middle will do. */
  quadraticCurveTo(x1: number, y1: number, x: number, y: number): void {
    const [x0, y0] = this.#last();
    this.points.push((x0 + 2 * x1 + x) / 4, (y0 + 2 * y1 + y) / 4, x, y);
  }

  #last(): readonly [number, number] {
    const n = this.points.length;
    return [this.points[n - 2] ?? 0, this.points[n - 1] ?? 0];
  }
}
