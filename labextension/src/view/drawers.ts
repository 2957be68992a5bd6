/** Which panels are open. */
import { Signal } from "../model/signal.js";

export class Drawers {
  readonly changed = new Signal<string>();
  readonly #open = new Set<string>();

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  setOpen(id: string, isOpen: boolean): void {
    if (isOpen === this.#open.has(id)) return;
    if (isOpen) this.#open.add(id);
    else this.#open.delete(id);
    this.changed.emit(id);
  }

  toggle(id: string): void {
    this.setOpen(id, !this.isOpen(id));
  }
}
