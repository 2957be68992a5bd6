/**
 * What the user has chosen: open scopes, the selection, an iteration of a running loop. A choice of the user's beats the
 * automatic one, which is made once, for the first graph that is seen.
 */
import type { Body } from "./bodies.js";
import type { BoxId } from "./ids.js";
import type { ChosenIteration } from "./running.js";
import type { Scope, ScopeTree } from "./scopes.js";
import { Signal } from "./signal.js";

/** Boxes that the first picture may have before scopes are left closed. */
const FIRST_PICTURE = 30;

export class Choices {
  readonly changed = new Signal<"open" | "selection" | "iteration">();
  #user = new Map<string, boolean>();
  #automatic: ReadonlySet<string> | null = null;
  #selection: BoxId | null = null;
  #iteration: ChosenIteration | null = null;

  /** The iteration of a running loop that the user has chosen, or null. */
  get iteration(): ChosenIteration | null {
    return this.#iteration;
  }

  chooseIteration(iteration: ChosenIteration | null): void {
    const known = this.#iteration;
    if (known?.frame === iteration?.frame && known?.number === iteration?.number) return;
    this.#iteration = iteration;
    this.changed.emit("iteration");
  }

  get selection(): BoxId | null {
    return this.#selection;
  }

  select(box: BoxId | null): void {
    if (box === this.#selection) return;
    this.#selection = box;
    this.changed.emit("selection");
  }

  /** The scopes that the user has opened or closed. */
  get byHand(): ReadonlyMap<string, boolean> {
    return this.#user;
  }

  /** Takes over what was opened and closed before, or elsewhere. */
  restore(byHand: ReadonlyMap<string, boolean>): void {
    this.#user = new Map(byHand);
    this.changed.emit("open");
  }

  /** Whether the user has opened or closed anything. */
  get hasChosen(): boolean {
    return this.#user.size > 0;
  }

  isOpen(path: string): boolean {
    return path === "" || (this.#user.get(path) ?? this.#automatic?.has(path) ?? false);
  }

  setOpen(path: string, open: boolean): void {
    if (path === "" || this.isOpen(path) === open) return;
    this.#user.set(path, open);
    this.changed.emit("open");
  }

  /** Opens every scope above a path, so that what lies there can be seen. */
  reveal(paths: Iterable<string>): void {
    let moved = false;
    for (const path of paths) {
      if (this.isOpen(path)) continue;
      this.#user.set(path, true);
      moved = true;
    }
    if (moved) this.changed.emit("open");
  }

  /** Decides which scopes are open at first; later calls change nothing. */
  begin(tree: ScopeTree, bodies: ReadonlyMap<string, Body>): void {
    if (this.#automatic || tree.root.size === 0) return;
    this.#automatic = new Set(firstOpen(tree.root, FIRST_PICTURE, (path) => bodies.get(path)?.isOfGradient ?? false));
  }

  /** Closes what was opened automatically; whether that changed anything. */
  retreat(): boolean {
    const hadOpen = this.#user.size === 0 && (this.#automatic?.size ?? 0) > 0;
    if (hadOpen) this.#automatic = new Set();
    return hadOpen;
  }
}

/** Opens whole depths while the picture has at most `most` boxes: like things look alike. */
export function firstOpen(root: Scope, most: number, isShut: (path: string) => boolean): string[] {
  const open: string[] = [];
  const below = (scope: Scope): Scope[] => [...scope.scopes.values()].filter(({ path }) => !isShut(path));
  let level = below(root);
  let boxes = root.scopes.size + root.ops.size;
  while (level.length > 0) {
    const inside = level.reduce((sum, scope) => sum + scope.scopes.size + scope.ops.size, 0);
    if (boxes + inside > most) break;
    boxes += inside;
    open.push(...level.map((scope) => scope.path));
    level = level.flatMap(below);
  }
  return open;
}
