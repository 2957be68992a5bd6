/**
 * The room that the app takes in the page: it grows with what is opened, and with what is shown
 * below the stage, never shrinks, and stays as the user has dragged it.
 */
import { growthOf } from "./camera.js";

/** A stage does not grow beyond this by itself, nor beyond this share of the window. */
const MOST_PX = 560;
const MOST_SHARE = 0.62;

export class Room {
  readonly #root: HTMLElement;
  readonly #stage: HTMLElement;
  /** Height that the stage has, or is growing to. */
  #height = 0;

  /** Height that a picture leaves free at the top of the stage. */
  readonly #top: number;

  /** `below` is what stands above and under the stage, and takes no room from it. */
  constructor(root: HTMLElement, stage: HTMLElement, below: readonly HTMLElement[], top: number, until: AbortSignal) {
    this.#root = root;
    this.#stage = stage;
    this.#top = top;
    const observer = new ResizeObserver(() => this.#apply());
    for (const element of below) observer.observe(element);
    root.addEventListener("transitionend", ({ target }) => {
      if (target === root) root.classList.remove("fs-growing");
    }, { signal: until });
    until.addEventListener("abort", () => observer.disconnect(), { once: true });
  }

  /** Makes room for a picture of this size; returns the height that the stage will have. */
  growFor(picture: { readonly w: number; readonly h: number }): number {
    const most = Math.min(MOST_PX, MOST_SHARE * innerHeight);
    const wanted = Math.min(most, growthOf(picture.w, picture.h, this.#stage.clientWidth, this.#top));
    this.#height = Math.max(this.#height, this.#stage.clientHeight, Math.ceil(wanted));
    this.#apply();
    return this.#isGiven ? this.#stage.clientHeight : this.#height;
  }

  /** Whether the user has dragged the corner - the browser writes that -, or the view fills a panel or the screen. */
  get #isGiven(): boolean {
    return document.fullscreenElement === this.#root || this.#root.style.height !== "" || this.#root.classList.contains("fs-docked");
  }

  #apply(): void {
    if (this.#isGiven || this.#stage.clientHeight === 0) return;
    this.#height = Math.max(this.#height, this.#stage.clientHeight);
    const now = this.#root.offsetHeight;
    const height = now - this.#stage.clientHeight + this.#height;
    if (height <= now) return;
    this.#root.classList.add("fs-growing");
    this.#root.style.setProperty("--fs-height", `${height}px`);
  }
}
