/** A run of `loops()` that is played: what the engine would tell of it. */
import type { Command, Iteration, Node, RunState, SessionState, Token } from "../src/wire/messages.js";

const IN_FLIGHT = 8;

export class PlayedRun {
  state: SessionState["state"] = "running";
  #pace_s = 0;
  #iteration = 0;
  #at = 0;
  readonly #loop: Node | undefined;
  readonly #ops: readonly Node[];

  constructor(nodes: readonly Node[]) {
    this.#loop = nodes.find(({ type }) => type === "Loop");
    this.#ops = nodes.filter(({ body, type }) => body.startsWith("while") && type !== "Parameter");
  }

  hear({ name, value }: Command): void {
    if (name === "pause") this.state = "paused";
    if (name === "resume") this.state = "running";
    if (name === "stop") this.state = "idle";
    if (name === "pace") this.#pace_s = Number(value ?? 0);
    if (name === "step_op") this.#step();
    if (name === "step_iteration") [this.#iteration, this.#at] = [this.#iteration + 1, 0];
    if (name.startsWith("step")) this.state = "paused";
  }

  /** What an eighth of a second brings. */
  tick(): void {
    if (this.state !== "running") return;
    if (this.#pace_s > 0) this.#step();
    else this.#iteration += 37;
  }

  #step(): void {
    this.#at += 1;
    if (this.#at % this.#ops.length === 0) this.#iteration += 1;
  }

  run(): RunState {
    const op = this.#ops[this.#at % this.#ops.length];
    if (this.state === "idle" || !this.#loop || !op) return { frames: [], position: null, tokens: [], pace_s: this.#pace_s };
    const isSlow = this.state === "paused" || this.#pace_s > 0;
    const position = { op: op.id, frame: "while", iterations: [this.#iteration], what: `before ${op.name}, iteration ${this.#iteration} of while` };
    return {
      frames: [{
        id: "while", loop: this.#loop.id, name: this.#loop.name, parent: null, parent_iteration: null, mode: "tokens",
        iteration: this.#iteration, limit: 20_000, iterations_per_s: 296.2, parallel_iterations: IN_FLIGHT, window: this.#window(),
        held: `parallel_iterations = ${IN_FLIGHT} are in flight, the oldest waits for "while/body/mul"`,
        kept_bytes: this.#iteration * 16_000, kept_estimate_bytes: 320_000_000,
      }],
      position: isSlow ? position : null, tokens: isSlow ? this.#tokens(op) : [], pace_s: this.#pace_s,
    };
  }

  #window(): Iteration[] {
    const first = Math.max(0, this.#iteration - IN_FLIGHT - 1);
    return Array.from({ length: IN_FLIGHT + 3 }, (_, k) => {
      const number = first + k;
      const state = k < 2 ? "done" : number > this.#iteration ? "waiting" : k === 4 ? "dead" : "running";
      return { number, state, finished: state === "done" ? 4 : state === "running" ? Math.max(0, 4 - (k >> 1)) : 0, total: 4 };
    });
  }

  #tokens({ id, inputs }: Node): Token[] {
    return inputs.map(([source, output], k) => (
      { source, output, target: id, frame: "while", iterations: [this.#iteration], is_dead: k === 1 }
    ));
  }
}
