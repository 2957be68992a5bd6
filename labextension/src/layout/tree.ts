/**
 * Lays out nested scopes from the inside outwards and puts them together. What was laid out before is taken from the memory
 * where nothing changed. The order of a scope's boxes comes from a layout of it with all boxes closed, which an earlier one of
 * the scope seeds: whatever was opened in whichever order, the same boxes are open in the same drawing, in every view.
 */
import { layoutScope } from "./scope.js";
import type { Positions, Rect, ScopeInput, ScopeLayout } from "./types.js";

/** Layouts that a memory keeps by content before it forgets the oldest. */
const MOST_KEPT = 200;

export class LayoutMemory {
  readonly #byContent = new Map<string, ScopeLayout>();
  readonly #closed = new Map<string, { readonly boxes: string; readonly layout: ScopeLayout }>();

  find(content: string): ScopeLayout | undefined {
    return this.#byContent.get(content);
  }

  /** The layout of a scope with all its boxes closed. */
  closed(scope: ScopeInput): ScopeLayout {
    const boxes = scope.boxes.map(({ id }) => id).join(" ");
    const known = this.#closed.get(scope.path);
    if (known?.boxes === boxes) return known.layout;
    const whole = layoutScope(closedOf(scope), new Map(), known?.layout ?? null);
    // What passes a wall is named by what it comes from, which differs with what is open.
    const layout = { ...whole, order: new Map(scope.boxes.flatMap(({ id }) => [[id, whole.order.get(id) ?? NaN] as const])) };
    this.#closed.set(scope.path, { boxes, layout });
    return layout;
  }

  keep(content: string, layout: ScopeLayout): void {
    this.#byContent.delete(content);
    this.#byContent.set(content, layout);
    const [oldest] = this.#byContent.keys();
    if (this.#byContent.size > MOST_KEPT && oldest !== undefined) this.#byContent.delete(oldest);
  }
}

export function layoutTree(root: ScopeInput, memory: LayoutMemory): Positions {
  const layouts = new Map<string, ScopeLayout>();
  for (const scope of innermostFirst(root)) {
    const content = contentOf(scope, layouts);
    const layout = memory.find(content) ?? layoutScope(scope, layouts, memory.closed(scope));
    memory.keep(content, layout);
    layouts.set(scope.path, layout);
  }
  return assemble(root, layouts);
}

/** A scope with all boxes closed: between two boxes, and from or to a wall, there is one line. */
function closedOf(scope: ScopeInput): ScopeInput {
  const boxes = scope.boxes.map((box) => ({ ...box, inner: null }));
  const links = new Map(scope.links.map((link) => [`${link.from ?? link.source} ${link.to ?? link.source} ${link.isReturn ?? false}`, link]));
  return { ...scope, boxes, links: [...links.values()] };
}

function innermostFirst(root: ScopeInput): ScopeInput[] {
  const found: ScopeInput[] = [];
  const stack = [root];
  for (let scope = stack.pop(); scope; scope = stack.pop()) {
    found.push(scope);
    for (const box of scope.boxes) if (box.inner) stack.push(box.inner);
  }
  return found.reverse();
}

/** Two scopes with the same content text have the same layout. */
function contentOf(scope: ScopeInput, layouts: ReadonlyMap<string, ScopeLayout>): string {
  const parts: (string | number)[] = [scope.path, scope.header, scope.room?.w ?? 0, scope.room?.h ?? 0];
  for (const box of scope.boxes) {
    const inner = layouts.get(box.id);
    parts.push(box.id, box.lane ?? "", box.beside ?? "", inner?.w ?? box.w, inner?.h ?? box.h);
    if (inner) parts.push(...flat(inner.inPorts), "/", ...flat(inner.outPorts));
  }
  for (const link of scope.links) parts.push(link.id);
  return parts.join(" ");
}

function flat(ports: ReadonlyMap<string, number>): (string | number)[] {
  return [...ports].flat();
}

/** Moves every scope's inside to its place in the picture. */
function assemble(root: ScopeInput, layouts: ReadonlyMap<string, ScopeLayout>): Positions {
  const boxes = new Map<string, Rect>();
  const routes = new Map<string, readonly number[]>();
  const whole = layouts.get(root.path);
  if (!whole) throw new Error("layout: the root was not laid out");
  boxes.set(root.path, { x: 0, y: 0, w: whole.w, h: whole.h });
  const stack = [root];
  for (let scope = stack.pop(); scope; scope = stack.pop()) {
    const corner = boxes.get(scope.path);
    const layout = layouts.get(scope.path);
    if (!corner || !layout) throw new Error(`layout: "${scope.path}" has no place`);
    const { x, y } = corner;
    for (const [id, rect] of layout.boxes) boxes.set(id, { ...rect, x: rect.x + x, y: rect.y + y });
    for (const [id, route] of layout.routes) {
      routes.set(id, route.map((value, k) => value + (k % 2 === 0 ? x : y)));
    }
    for (const box of scope.boxes) if (box.inner) stack.push(box.inner);
  }
  return { w: whole.w, h: whole.h, boxes, routes };
}
