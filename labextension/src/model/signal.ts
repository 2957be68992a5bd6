/** A list of listeners that a change is told to; a listener leaves when its AbortSignal fires. */
export class Signal<T> {
  readonly #listeners = new Set<(value: T) => void>();

  connect(listener: (value: T) => void, until?: AbortSignal): void {
    if (until?.aborted) return;
    this.#listeners.add(listener);
    until?.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  emit(value: T): void {
    for (const listener of [...this.#listeners]) listener(value);
  }
}
