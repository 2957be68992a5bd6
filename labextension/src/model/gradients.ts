/**
 * Gradients leave the scope that `fs.gradients` made for them, and stand beside what they are the gradient of: which
 * scopes are dissolved so, where to, and who gets what. Pure.
 */
import { isPlace, type Item, type Place, type Places } from "./places.js";

/** Scopes lie no deeper than this where they are dissolved. */
export const DEEPEST = 3;
const MADE = /^gradients(_\d+)?$/;
/** What the name of a gradient's operation says of what it is the gradient of. */
const FORWARD = /(?:^|\/)gradients(?:_\d+)?\/(.+?)_grad(?:_\d+)?(?:\/|$)/;

/** The name of the operation that another one, by its name, is the gradient of; undefined of others. */
export function forwardName(name: string): string | undefined {
  return FORWARD.exec(name)?.[1];
}

/** Scopes of gradients, and the place among whose items theirs are to stand: that which holds what they are the gradients of. */
export function dissolvedScopes(places: Places, idOf: (name: string) => number | undefined, isFixed: (path: string) => boolean): Map<Place, Place> {
  const found = new Map<Place, Place>();
  for (const place of places.ordered(({ depth }) => depth <= DEEPEST)) {
    if (!MADE.test(place.scope.name) || !place.above) continue;
    const forward = forwardOf(place, places, idOf);
    const home = forward === null ? undefined : places.homeOf(forward);
    const target = home && targetOf(place, home, places);
    if (target && !isFixed(target.scope.path)) found.set(place, target);
  }
  return found;
}

/** The innermost place around both; null where a scope of the user's between would be left empty. */
function targetOf(place: Place, home: Place, places: Places): Place | null {
  for (let at = place.above; at; at = at.above) {
    if (isUnder(home, at)) return at;
    if (places.itemsOf(at).length < 2) return null;
  }
  return null;
}

function isUnder(place: Place, above: Place): boolean {
  let at: Place | null = place;
  while (at && at !== above && at.depth > above.depth) at = at.above;
  return at === above;
}

/** The first operation that something in an item is the gradient of; null where there is none. */
function forwardOf(item: Item, places: Places, idOf: (name: string) => number | undefined): number | null {
  const stack: Item[] = [item];
  for (let at = stack.pop(); at; at = stack.pop()) {
    if (isPlace(at)) {
      // In the order of making: the last put is looked at first.
      stack.push(...[...places.itemsOf(at)].reverse());
      continue;
    }
    const name = forwardName(at.name);
    const id = name === undefined ? undefined : idOf(name);
    if (id !== undefined) return id;
  }
  return null;
}

/**
 * Divides the items of a dissolved scope among those of the place where they are to stand: number of an item there ->
 * numbers of items here. What is the gradient of nothing goes with what takes it, else with what gives it, else it stands by
 * itself.
 */
export function dividedItems(
  scope: Place, target: Place, places: Places, idOf: (name: string) => number | undefined, numberOf: (item: Item) => number | undefined,
): Map<number | null, number[]> {
  const items = places.itemsOf(scope);
  const owner: (number | undefined)[] = items.map((item) => {
    const forward = forwardOf(item, places, idOf);
    return forward === null ? undefined : numberOf(itemIn(forward, target, places));
  });
  const index = new Map(items.map((item, k) => [isPlace(item) ? item.number : item.id, k]));
  const wires: [number, number][] = [];
  for (let k = 0; k < scope.wires.length; k += 2) wires.push([index.get(scope.wires[k]!) ?? -1, index.get(scope.wires[k + 1]!) ?? -1]);
  spread(owner, wires.map(([from, to]) => [to, from] as const));
  spread(owner, wires);
  const found = new Map<number | null, number[]>();
  owner.forEach((one, k) => {
    const known = found.get(one ?? null);
    if (known) known.push(k);
    else found.set(one ?? null, [k]);
  });
  return found;
}

/** What has no owner takes over that of what is joined to it. */
function spread(owner: (number | undefined)[], pairs: readonly (readonly [number, number])[]): void {
  for (let isGrowing = true; isGrowing;) {
    isGrowing = false;
    for (const [from, to] of pairs) {
      if (owner[to] !== undefined || owner[from] === undefined) continue;
      owner[to] = owner[from];
      isGrowing = true;
    }
  }
}

/** The item of a place that an operation lies in, or is. */
function itemIn(id: number, target: Place, places: Places): Item {
  let at: Place | undefined | null = places.homeOf(id);
  let item: Item | undefined = places.nodeOf(id);
  while (at && at !== target) [item, at] = [at, at.above];
  if (!item) throw new Error(`gradients: no operation ${id}`);
  return item;
}

/** "gradient" of what "gradients" held, "gradient 1" of "gradients_1". */
export const gradientTitle = (name: string): string => name.replace(/^gradients_?/, "gradient ").trim();

