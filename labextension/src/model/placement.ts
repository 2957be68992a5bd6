/** Where the latest plan has placed what is looked at, and why: asked of the kernel, and told in the inspector. */
import type { CandidateState, OpPlacementState, Placement } from "../wire/messages.js";
import { shortDevice } from "./devices.js";
import type { Fact } from "./fact.js";
import { duration } from "./figures.js";
import type { Heat } from "./heat.js";
import { Signal } from "./signal.js";

export class PlacementModel {
  /** An answer has come. */
  readonly changed = new Signal<void>();
  #request = 0;
  #asked = "";
  #op: OpPlacementState | null = null;
  #devices: readonly string[] = [];

  /** The devices of the session, as far as they were told. */
  get devices(): readonly string[] {
    return this.#devices;
  }

  /** What is known of the operation that was asked for last; null where it is not this one. */
  of(name: string): OpPlacementState | null {
    return this.#op?.name === name ? this.#op : null;
  }

  /** Waits for what is told of an operation; returns the question's number. */
  await(name: string): number {
    this.#asked = name;
    return ++this.#request;
  }

  take({ request_id, devices, op }: Placement): void {
    if (request_id !== this.#request) return;
    const isSame = JSON.stringify([devices, op]) === JSON.stringify([this.#devices, this.#op]);
    [this.#devices, this.#op] = [devices, op?.name === this.#asked ? op : null];
    if (!isSame) this.changed.emit();
  }
}

/** Why an operation stands where it does, where else it could stand, and how long it was measured to take. */
export function placementFacts(told: OpPlacementState | null, heat: Heat | null, op: number): Fact[] {
  const measured = heat === null ? null : measuredSeconds(heat, op);
  return [
    ...(told ? [{ name: "because", value: told.reason || "nothing else was asked for" }, ...told.candidates.map((one) => candidateFact(one, told))] : []),
    ...(measured === null ? [] : [{ name: "measured", value: `${duration(measured)} each time` }]),
  ];
}

function candidateFact({ device, seconds, reason }: CandidateState, { device: chosen, candidates }: OpPlacementState): Fact {
  const done = seconds === null ? [] : [`done after ${duration(seconds)}`];
  const all = [chosen, ...candidates.map((one) => one.device)];
  return { name: shortDevice(device, all), value: [...(device === chosen ? ["chosen"] : []), ...done, ...(reason ? [reason] : [])].join(", ") };
}

/** Mean seconds of one run of the node that an operation became; null where none was recorded. */
function measuredSeconds({ ops, count, self_ns }: Heat, op: number): number | null {
  const at = ops.findIndex(([own]) => own === op);
  const runs = count[at] ?? 0;
  return at < 0 || runs === 0 ? null : ((self_ns[at] ?? 0) * 1e-9) / runs;
}
