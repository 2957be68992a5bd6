/** What an operation does, as the kernel explains it; of a saved picture, what its snapshot says. */
import type { Wish } from "../wire/channel.js";
import type { ExplainedTensor, Explanation, Node, Sentence } from "../wire/messages.js";
import { targetOf, type DebugModel } from "./debug.js";
import { typeText } from "./figures.js";
import type { GraphModel } from "./graph.js";
import type { BoxId } from "./ids.js";
import { Signal } from "./signal.js";

/** While steps run, what is shown follows so often. */
const REFRESH_MS = 1000;

export interface Explained {
  /** The operation's name. */
  readonly name: string;
  readonly sentences: readonly Sentence[];
  readonly tensors: readonly ExplainedTensor[];
}

export class ExplanationModel {
  /** An answer has come. */
  readonly changed = new Signal<void>();
  #request = 0;
  #asked = "";
  #askedAt_ms = -Infinity;
  #answer: Explanation | null = null;

  /** What was answered last of an operation; null where that was of another one. */
  of(name: string): Explanation | null {
    return this.#answer?.name === name ? this.#answer : null;
  }

  /** What is to be asked now of an operation; null where the answer is there, or on its way. */
  question(name: string, model: GraphModel, debug: DebugModel, now_ms: number): Wish<"ask_explanation"> | null {
    const { session } = model;
    const key = JSON.stringify([name, session?.state ?? "", (session?.steps ?? 0) > 0, debug.stop?.id ?? "", session?.history?.tensors ?? []]);
    const isOld = session?.state === "running" && now_ms - this.#askedAt_ms > REFRESH_MS;
    if (key === this.#asked && !isOld) return null;
    this.#asked = key;
    this.#askedAt_ms = now_ms;
    return { request_id: ++this.#request, name };
  }

  /** What was asked is not waited for: the kernel may never have heard it, or nobody looks. */
  forget(): void {
    this.#asked = "";
    this.#answer = null;
  }

  take(answer: Explanation): void {
    if (answer.request_id !== this.#request || this.#asked === "") return;
    const before = JSON.stringify({ ...this.#answer, request_id: 0 });
    this.#answer = answer;
    if (JSON.stringify({ ...answer, request_id: 0 }) !== before) this.changed.emit();
  }
}

export const NEEDS_KERNEL = "Values, the cost, and what became of it in a step need the kernel: run the cell for the live view.";

/** What a snapshot alone says of an operation. */
export function savedExplanation(model: GraphModel, node: Node): Explained {
  const { name, type, summary, placed, origin } = node;
  const place = origin === null ? "" : origin.cell === null ? `${origin.file?.split("/").pop() ?? ""}, line ${origin.line}` : `cell ${origin.cell}, line ${origin.line}`;
  const sentences: Sentence[] = [
    { topic: "computes", text: `"${name}" has the op type ${type}: ${summary}` },
    { topic: "step", text: NEEDS_KERNEL },
    ...(placed ? [{ topic: "device", text: `It runs on ${placed}.` } as const] : []),
    ...(origin === null ? [] : [{ topic: "made", text: `It was made at ${place}${origin.text ? `: ${origin.text}` : "."}` } as const]),
  ];
  const inputs = node.inputs.flatMap(([op, k]): ExplainedTensor[] => {
    const [source, output] = [model.nodes.get(op), model.nodes.get(op)?.outputs[k]];
    return source && output ? [{ role: "input", name: `${source.name}:${k}`, type: typeText(output), why: "", value: null }] : [];
  });
  const outputs = node.outputs.map((output, k): ExplainedTensor => ({ role: "output", name: `${name}:${k}`, type: typeText(output), why: "", value: null }));
  return { name, sentences, tensors: [...inputs, ...outputs] };
}

/** Why nothing is explained where a box is chosen; "" where something is. */
export function whyUnexplained(model: GraphModel, box: BoxId | null): string {
  if (box === null) return "Select an operation: what it does is explained here, with the values of the step that is held.";
  if (targetOf(model, box) !== null) return "";
  return model.level === "graph" ? "What is selected is a group: select an operation in it." : "This is the program of a step; l shows the graph, whose operations are explained.";
}

/** The headings of an explanation's parts, in this order. */
export const HEADINGS: readonly (readonly [Sentence["topic"], string])[] = [
  ["computes", "What it computes"], ["step", "In the step"], ["block", "Around it"], ["gradient", "Gradient"], ["device", "Device"],
  ["cost", "Cost"], ["made", "Made by"], ["values", "Values"],
];

/** The sentences by heading. */
export function partsOf(sentences: readonly Sentence[]): readonly (readonly [string, string])[] {
  return HEADINGS.flatMap(([topic, title]) => {
    const text = sentences.filter((one) => one.topic === topic).map((one) => one.text).join(" ");
    return text === "" ? [] : [[title, text] as const];
  });
}
