/** The keys of the stage. */
import type { Direction } from "../layout/walk.js";

export interface KeyActions {
  walk(direction: Direction): void;
  toggle(): void;
  up(): void;
  pause(): void;
  step(what: "op" | "iteration"): void;
  fit(): void;
  zoom(factor: number): void;
}

const STEP = 1.25;

export function listenToKeys(element: HTMLElement, actions: KeyActions, until: AbortSignal): void {
  const keys: Readonly<Record<string, () => void>> = {
    ArrowUp: () => actions.walk("up"),
    ArrowDown: () => actions.walk("down"),
    ArrowLeft: () => actions.walk("left"),
    ArrowRight: () => actions.walk("right"),
    Enter: () => actions.toggle(),
    Escape: () => actions.up(),
    " ": () => actions.pause(),
    ".": () => actions.step("op"),
    ">": () => actions.step("iteration"),
    f: () => actions.fit(),
    "+": () => actions.zoom(STEP),
    "=": () => actions.zoom(STEP),
    "-": () => actions.zoom(1 / STEP),
  };
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }, { signal: until });
}
