/**
 * Which scopes are open in a view. A choice of the user's, which all views share, beats the automatic one, which each view
 * makes once, for the first graph that it shows.
 */
import { MOST_BOXES } from "../rules/types.js";
import { isVariableScope } from "./bodies.js";
import type { GraphModel } from "./graph.js";
import type { Scope } from "./scopes.js";
import type { Store } from "./store.js";

/** Boxes that the first picture may have before scopes are left closed. */
const FIRST_PICTURE = 30;
/** Share of all operations that lie in a scope which says nothing of the model, as that of the function it was exported from. */
const NEARLY_ALL = 0.9;

export class OpenScopes {
  readonly #store: Store;
  readonly #view: object;
  #automatic: ReadonlySet<string> | null = null;

  /** `view` is who changes the store. */
  constructor(store: Store, view: object) {
    this.#store = store;
    this.#view = view;
  }

  isOpen(path: string): boolean {
    return path === "" || (this.#store.opened.get(path) ?? this.#automatic?.has(path) ?? false);
  }

  setOpen(path: string, open: boolean): void {
    if (path === "" || this.isOpen(path) === open) return;
    this.#store.setOpened(new Map(this.#store.opened).set(path, open), this.#view);
  }

  /** Opens every scope above a path, so that what lies there can be seen. */
  reveal(paths: Iterable<string>): void {
    const closed = [...paths].filter((path) => !this.isOpen(path));
    if (closed.length === 0) return;
    this.#store.setOpened(new Map([...this.#store.opened, ...closed.map((path) => [path, true] as const)]), this.#view);
  }

  /** Opens the parts of devices in a program that is cut, where they are small. */
  revealParts({ root }: GraphModel["tree"]): void {
    const parts = [...root.scopes.values()];
    const inside = parts.reduce((sum, part) => sum + part.scopes.size + part.ops.size, 0);
    if (inside <= 2 * FIRST_PICTURE) this.reveal(parts.map(({ path }) => path).filter((path) => !this.#store.opened.has(path)));
  }

  /** Decides which scopes are open at first; later calls change nothing. */
  begin(model: GraphModel): void {
    const { tree, bodies } = model;
    if (this.#automatic || tree.root.size === 0) return;
    // A closed group says what it is, and how often it repeats; of what serves the model it is enough that it is there, and
    // of a loop's condition too: most of what stands in it are the loop's variables, which stand in the body again.
    const isShut = (path: string): boolean => {
      const { group = null, lane = "model" } = tree.get(path) ?? {};
      const { isOfGradient = false, role = "" } = bodies.get(path) ?? {};
      return isOfGradient || role === "cond" || group !== null || lane !== "model" || isVariableScope(model, path);
    };
    this.#automatic = new Set(firstOpen(tree.root, FIRST_PICTURE, isShut));
  }

  /** Whether a scope was opened by itself, and the user has not chosen that. */
  isAutomatic(path: string): boolean {
    return (this.#automatic?.has(path) ?? false) && !this.#store.opened.has(path);
  }

  /** Closes scopes that were opened automatically. */
  close(paths: readonly string[]): void {
    const closed = new Set(paths);
    this.#automatic = new Set([...(this.#automatic ?? [])].filter((path) => !closed.has(path)));
  }
}

/** Opens whole depths while the picture has at most `most` boxes: like things look alike. A scope around nearly all may have a level of its own. */
export function firstOpen(root: Scope, most: number, isShut: (path: string) => boolean): string[] {
  const open: string[] = [];
  const below = (scope: Scope): Scope[] => [...scope.scopes.values()].filter(({ path }) => !isShut(path));
  let level = below(root);
  let boxes = root.scopes.size + root.ops.size;
  while (level.length > 0) {
    const inside = level.reduce((sum, scope) => sum + scope.scopes.size + scope.ops.size, 0);
    const isAroundAll = level.length === 1 && (level[0]?.size ?? 0) >= NEARLY_ALL * root.size;
    if (boxes + inside > (isAroundAll ? Math.max(most, boxes + MOST_BOXES) : most)) break;
    boxes += inside;
    open.push(...level.map((scope) => scope.path));
    level = level.flatMap(below);
  }
  return open;
}
