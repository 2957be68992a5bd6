/** Which panels are open that open on demand: each gives the view's root the class `fs-with-ID`. */
import { Signal } from "../model/signal.js";

export type DrawerId = "outline" | "keys";

export class Drawers {
  readonly changed = new Signal<DrawerId>();
  readonly #open = new Set<DrawerId>();

  isOpen(id: DrawerId): boolean {
    return this.#open.has(id);
  }

  toggle(id: DrawerId): void {
    if (!this.#open.delete(id)) this.#open.add(id);
    this.changed.emit(id);
  }
}
