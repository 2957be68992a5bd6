/** The button that switches between the graph as written and the program as lowered. */
import type { GraphModel } from "../model/graph.js";
import type { BoxId } from "../model/ids.js";
import { button } from "./dom.js";
import type { SendCommand } from "./run_bar.js";

export class LevelSwitch {
  readonly button: HTMLButtonElement;
  readonly #send: SendCommand | null;
  readonly #go: (box: BoxId) => void;
  #isLowered = false;
  /** To be selected once the graph as written is there. */
  #wanted: BoxId | null = null;

  constructor(send: SendCommand | null, go: (box: BoxId) => void, until: AbortSignal) {
    this.#send = send;
    this.#go = go;
    this.button = button("Lowered", "lowered", () => this.#ask(!this.#isLowered), until);
    this.button.title = "The program of the latest step as lowered: Switch, Merge, Enter, Exit, NextIteration";
    this.button.setAttribute("aria-pressed", "false");
    this.button.disabled = send === null;
  }

  /** Takes a snapshot that has come; returns whether it is of another level. */
  update({ level }: GraphModel): boolean {
    const before = this.#isLowered;
    this.#isLowered = level === "lowered";
    this.button.setAttribute("aria-pressed", String(this.#isLowered));
    const wanted = this.#isLowered ? null : this.#wanted;
    this.#wanted = null;
    if (wanted !== null) this.#go(wanted);
    return this.#isLowered !== before;
  }

  /** Shows an operation in the graph as written. */
  showWritten(box: BoxId): void {
    this.#wanted = box;
    this.#ask(false);
  }

  #ask(isLowered: boolean): void {
    this.#send?.("level", isLowered ? "lowered" : "graph");
  }
}
