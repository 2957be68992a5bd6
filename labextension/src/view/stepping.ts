/** The part of the run bar that steps: one operation, one iteration, slow motion, and where a step is held. */
import { opBox, type BoxId } from "../model/ids.js";
import type { GraphModel } from "../model/graph.js";
import { isOver } from "../model/running.js";
import { button, make, OWN_KEYS, setText } from "./dom.js";
import type { SendCommand } from "./run_bar.js";

/** Seconds per operation, 0 for full speed. */
const PACES: readonly (readonly [number, string])[] = [
  [0, "full speed"], [0.05, "0.05 s per op"], [0.25, "0.25 s per op"], [1, "1 s per op"],
];
const CAN_STEP: readonly string[] = ["running", "pausing", "paused"];

/** What moves the picture to where a step is. */
export interface FollowActions {
  /** Selects an operation and shows it as `follow` does. */
  select(box: BoxId): void;
  /** Opens what an operation lies in, and shows it with what is around it. */
  follow(box: BoxId): void;
  /** Brings an operation into sight that is not hidden, if the user has not moved the picture since. */
  keepInSight(box: BoxId): void;
  /** The user has asked for a step, and wants to see it. */
  letGo(): void;
}

export class Stepping {
  readonly buttons: readonly HTMLButtonElement[];
  readonly pace = make("select", { class: "fs-pace", "aria-label": "Slow motion", title: "Slow motion", ...OWN_KEYS });
  readonly position = make("button", {
    type: "button", class: "fs-link fs-position", "data-testid": "fs-position", "aria-pressed": "false",
    title: "Show where the step is, and follow it", ...OWN_KEYS,
  });
  readonly #op: HTMLButtonElement;
  readonly #iteration: HTMLButtonElement;
  readonly #actions: FollowActions;
  #held: BoxId | null = null;
  #isFollowing = false;

  constructor(send: SendCommand | null, actions: FollowActions, until: AbortSignal) {
    this.#actions = actions;
    const act = (...command: Parameters<SendCommand>): void => {
      actions.letGo();
      send?.(...command);
    };
    this.#op = button("Step one operation (.)", "stepOp", () => act("step_op"), until);
    this.#iteration = button("Step one iteration (>)", "stepIteration", () => act("step_iteration"), until);
    this.buttons = [this.#op, this.#iteration];
    this.pace.append(...PACES.map(([seconds, text]) => make("option", { value: String(seconds) }, text)));
    this.pace.addEventListener("change", () => act("pace", Number(this.pace.value)), { signal: until });
    this.position.addEventListener("click", () => {
      this.#follow(!this.#isFollowing);
      if (this.#isFollowing && this.#held !== null) actions.select(this.#held);
    }, { signal: until });
  }

  update({ session, run }: GraphModel, isHeard: boolean): void {
    const isOff = !isHeard || !CAN_STEP.includes(session?.state ?? "none");
    this.#op.disabled = isOff;
    this.#iteration.disabled = isOff;
    this.pace.disabled = !isHeard || session === null || session.state === "closed";
    this.#showPace(run?.pace_s ?? null);
    const position = run?.position ?? null;
    const before = this.#held;
    this.#held = position === null || position.op === null ? null : opBox(position.op);
    if (isOver(run)) this.#follow(false);
    if (this.#held !== null && this.#held !== before) {
      if (this.#isFollowing) this.#actions.follow(this.#held);
      else this.#actions.keepInSight(this.#held);
    }
    setText(this.position, position?.what ?? "");
    this.position.hidden = position === null;
    this.position.disabled = this.#held === null;
  }

  #follow(isOn: boolean): void {
    this.#isFollowing = isOn;
    this.position.setAttribute("aria-pressed", String(isOn));
  }

  /** What the keys "." and ">" do. */
  step(what: "op" | "iteration"): void {
    const pressed = what === "op" ? this.#op : this.#iteration;
    if (!pressed.disabled) pressed.click();
  }

  /** Another view, or Python, may have set the pace; while the list is open it stays. */
  #showPace(pace_s: number | null): void {
    if (pace_s === null || document.activeElement === this.pace) return;
    const value = String(pace_s);
    if (![...this.pace.options].some((option) => option.value === value)) {
      this.pace.append(make("option", { value }, `${value} s per op`));
    }
    if (this.pace.value !== value) this.pace.value = value;
  }
}
