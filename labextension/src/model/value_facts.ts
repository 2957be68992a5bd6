/** What is said of a tensor at a stop. Pure. */
import type { HistoryState, Node, ValueState } from "../wire/messages.js";
import type { Fact } from "./fact.js";
import { plural, significant, typeText, whole } from "./figures.js";
import { targetOf, type DebugModel, type ValueQuestion } from "./debug.js";
import type { GraphModel } from "./graph.js";
import type { BoxId } from "./ids.js";
import { bytesText } from "./running.js";

/** Outputs of an operation that are asked for, at most. */
const MOST_ASKED = 8;

/** What is to be asked where a box is chosen while a step is held; null where nothing is. */
export function questionOf(model: GraphModel, debug: DebugModel, box: BoxId | null, at: readonly number[] = []): ValueQuestion | null {
  const node = targetOf(model, box);
  const tensors = (node?.outputs ?? []).slice(0, MOST_ASKED).map((_, k) => `${node?.name}:${k}`);
  return debug.stop === null || tensors.length === 0 ? null : { stop: debug.stop.id, tensors, at };
}

/** Why no values are shown; "" where they are. */
export function whyNone(model: GraphModel, debug: DebugModel, box: BoxId | null): string {
  if (debug.stop === null) return "Values are seen where a step is held. Select an operation, press b for a breakpoint, and run.";
  if (box === null) return "Select an operation to see the values that it makes.";
  if (questionOf(model, debug, box) === null) return "What is selected has no value of its own: select an operation that makes one.";
  return debug.answer === null ? "\u2026" : debug.answer.error;
}

/** Why a recording shows no value where an operation is selected. */
export function whyNotRecorded(state: HistoryState | null, node: Node | null): string {
  if (state === null || state.tensors.length === 0) return "This recording has no values. Those that are fetched in its steps are kept, and those that session.debug.record records.";
  const known = `It has those of ${state.tensors.slice(0, MOST_ASKED).join(", ")}${state.tensors.length > MOST_ASKED ? ` and ${state.tensors.length - MOST_ASKED} more` : ""}.`;
  return node === null ? `Select an operation to see the value that was recorded. ${known}` : `The recording has no value of ${node.name}. ${known}`;
}

/** Why a running session has no value of a recorded step where an operation is selected. */
export function whyNotKept(state: HistoryState | null, node: Node | null, step: number, canReplay: boolean): string {
  if (node === null) return `Step ${whole(step)} is shown. Select an operation to see the value that it made then.`;
  if (state === null) return `The values of step ${whole(step)} were not recorded: Past records values, and what steps can be computed again from.`;
  if (canReplay) return `The value of ${node.name} in step ${whole(step)} was not kept; it can be computed again.`;
  return `The value of ${node.name} in step ${whole(step)} was not kept, and the step cannot be computed again: Past tells which can.`;
}

/** Of a tensor without a value: why, as a sentence. */
export function stateText({ state, why }: ValueState): string {
  const said = { alive: "", "not yet": "not made yet", gone: "gone", absent: "not in what runs" }[state];
  return state !== "alive" && why.startsWith(said) ? why : [said, why].filter((part) => part !== "").join(": ");
}

export function valueFacts(value: ValueState): readonly Fact[] {
  const { nbytes, finite, nan, inf, min, max, mean } = value;
  const count = value.shape.reduce((product, n) => product * n, 1);
  const wrong = [...(nan > 0 ? [plural(nan, "NaN")] : []), ...(inf > 0 ? [`${whole(inf)} infinite`] : [])];
  const figures: readonly (readonly [string, number | null])[] = count === 1 && min !== null ? [["value", min]] : [["min", min], ["max", max], ["mean", mean]];
  return [
    { name: "type", value: typeText(value) },
    { name: "bytes", value: bytesText(nbytes) },
    { name: "finite", value: [finite === count ? "all" : `${whole(finite)} of ${whole(count)}`, ...wrong].join(", ") },
    ...figures.flatMap(([name, number]) => (number === null ? [] : [{ name, value: significant(number) }])),
  ];
}

/** Code that gives a value, or the slice of it that is seen, as a NumPy array; `step` of a recorded one, null of a held step. */
export function numpyCode(name: string, shape: readonly number[], at: readonly number[], step: number | null): string {
  const place = shape.length > 2 ? Array.from({ length: shape.length - 2 }, (_, k) => at[k] ?? 0).join(", ") : "";
  const quoted = JSON.stringify(name);
  if (step === null) return `session.debug.stops[-1].value(${quoted}${place === "" ? "" : `, np.s_[${place}]`})`;
  return `next(kept.value for kept in reversed(session.debug.history.values(${quoted})) if kept.step == ${step})${place === "" ? "" : `[${place}]`}`;
}
