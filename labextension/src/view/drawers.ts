/** Which panels are open. */
import { Signal } from "../model/signal.js";

export class Drawers {
  readonly changed = new Signal<string>();
  readonly #open = new Set<string>();
  /** Of those, which nobody has asked for. */
  readonly #offered = new Set<string>();

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  setOpen(id: string, isOpen: boolean): void {
    if (isOpen === this.#open.has(id)) return;
    if (isOpen) this.#open.add(id);
    else [this.#open, this.#offered].forEach((ids) => ids.delete(id));
    this.changed.emit(id);
  }

  /** Opens what nobody has asked for: it takes no room from what somebody has, and does not stand in the place of the picture. */
  offer(id: string): void {
    if (this.isOpen(id)) return;
    this.#offered.add(id);
    this.setOpen(id, true);
  }

  isOffered(id: string): boolean {
    return this.#offered.has(id);
  }

  /** Somebody asks for what was offered. */
  ask(id: string): void {
    this.#offered.delete(id);
  }

  toggle(id: string): void {
    this.setOpen(id, !this.isOpen(id));
  }
}
