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
