/**
 * Parts of a scope that no data joins to the rest. Each is laid out by itself and then stands aside
 * as one box: so the main flow is not drawn out to a ribbon by what merely lies beside it. Pure.
 */
import { columnsOf } from "./columns.js";
import type { BoxInput, LinkInput, Rect, ScopeInput, ScopeLayout } from "./types.js";
import { SPACE } from "./types.js";

export interface Parts {
  /** The scope with a box in the place of each island. */
  readonly main: ScopeInput;
  readonly islands: readonly Island[];
}

export interface Island {
  /** Id of the box that stands for it. */
  readonly id: string;
  readonly input: ScopeInput;
}

export type LayOut = (input: ScopeInput) => ScopeLayout;

/** The biggest part stays, with all that reaches a wall, and so do boxes without links. */
export function splitIslands(whole: ScopeInput): Parts {
  const input = withoutStubs(whole);
  const part = joined(input);
  const members = new Map<string, BoxInput[]>();
  for (const box of input.boxes) {
    const list = members.get(part(box.id));
    if (list) list.push(box);
    else members.set(part(box.id), [box]);
  }
  const free = [...members].filter(([name, boxes]) => boxes.length > 1 && name !== part(WALL));
  const biggest = members.has(part(WALL)) ? 0 : Math.max(0, ...free.map(([, boxes]) => boxes.length));
  const stays = free.find(([, boxes]) => boxes.length === biggest)?.[0];
  const apart = free.filter(([name]) => name !== stays);
  const links = linksByPart(input.links, new Map(apart.map(([name]) => [name, []])), part);
  const islands = apart.map(([name, boxes]): Island => ({
    id: `island ${boxes[0]?.id ?? ""}`,
    input: { path: input.path, header: 0, boxes, links: links.get(name) ?? [], ...(input.room ? { room: input.room } : {}) },
  }));
  return { main: islands.length === 0 ? input : without(input, islands), islands };
}

/** What stands aside is joined to nothing by a line. */
function withoutStubs(input: ScopeInput): ScopeInput {
  const aside = new Set(columnsOf(input).aside.map(({ id }) => id));
  const isDrawn = (id: string | null): boolean => id === null || !aside.has(id);
  return aside.size === 0 ? input : { ...input, links: input.links.filter(({ from, to }) => isDrawn(from) && isDrawn(to)) };
}

function linksByPart(
  links: readonly LinkInput[], into: ReadonlyMap<string, LinkInput[]>, part: (id: string) => string,
): ReadonlyMap<string, readonly LinkInput[]> {
  for (const link of links) into.get(part(endOf(link)))?.push(link);
  return into;
}

/** Stands for the scope's walls. */
const WALL = "";

const endOf = (link: LinkInput): string => link.from ?? link.to ?? WALL;

/** A function from a box to the name of its part. */
function joined({ boxes, links }: ScopeInput): (id: string) => string {
  const above = new Map<string, string>([WALL, ...boxes.map(({ id }) => id)].map((id) => [id, id]));
  const top = (id: string): string => {
    let at = id;
    for (let next = above.get(at) ?? at; next !== at; next = above.get(at) ?? at) {
      above.set(at, above.get(next) ?? next);
      at = next;
    }
    return at;
  };
  for (const { from, to } of links) above.set(top(from ?? WALL), top(to ?? WALL));
  for (const { id, beside } of boxes) if (beside != null && above.has(beside)) above.set(top(id), top(beside));
  return top;
}

function without(input: ScopeInput, islands: readonly Island[]): ScopeInput {
  const standIn = new Map(islands.flatMap(({ id, input: { boxes } }) => boxes.map((box) => [box.id, id])));
  return {
    ...input,
    boxes: input.boxes.filter(({ id }) => !standIn.has(id)),
    links: input.links.filter((link) => !standIn.has(endOf(link))),
  };
}

/** Lays out the islands, then the scope with a box for each, and puts them there. */
export function layOutIslands({ main, islands }: Parts, layOutPart: LayOut): ScopeLayout {
  const insides = islands.map(({ id, input }) => ({ id, layout: layOutPart(input) }));
  const standIns = insides.map(({ id, layout: { w, h } }): BoxInput => (
    { id, w: w - SPACE.padding, h: h - SPACE.padding, inner: null, lane: "aside" }
  ));
  const whole = layOutPart({ ...main, boxes: [...main.boxes, ...standIns] });
  const boxes = new Map(whole.boxes);
  const routes = new Map(whole.routes);
  const order = new Map(whole.order);
  for (const { id, layout } of insides) {
    const at = boxes.get(id);
    if (!at) throw new Error(`layout: "${id}" has no place`);
    boxes.delete(id);
    // Half of the padding goes: there is no wall.
    const [dx, dy] = [at.x - SPACE.padding / 2, at.y - SPACE.padding / 2];
    for (const [box, rect] of layout.boxes) boxes.set(box, moved(rect, dx, dy));
    for (const [box, place] of layout.order) order.set(box, place);
    for (const [link, route] of layout.routes) routes.set(link, route.map((v, k) => v + (k % 2 === 0 ? dx : dy)));
  }
  return { ...whole, boxes, routes, order };
}

function moved(rect: Rect, dx: number, dy: number): Rect {
  return { ...rect, x: rect.x + dx, y: rect.y + dy };
}
