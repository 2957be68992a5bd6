/** How large a model is: parameters, their bytes, and what products and convolutions compute. Pure. */
import type { Lane } from "../rules/types.js";
import type { Node, Output } from "../wire/messages.js";
import { isVariableType } from "./bodies.js";
import { leastBytes, significant, whole } from "./figures.js";
import { HeatBoxes } from "./heat.js";
import { ROOT, type BoxId } from "./ids.js";
import { bytesText } from "./running.js";
import type { Tree } from "./scopes.js";

/** What an operation, or all in a scope, count for. */
export interface Size {
  /** Elements of variables, and of constants that are weights. */
  readonly parameters: number;
  readonly bytes: number;
  /** Multiplications and additions of products and convolutions, an unknown dimension counted as one. */
  readonly flops: number;
}

/** Element types of weights. */
const WEIGHT = /^(float|bfloat|complex|q?u?int8$|q?u?int16$)/;
/** Types whose value is known where those of their inputs are, and which only lay it out anew. */
const HANDING_ON = /^(Identity|Transpose|Reshape|Cast|Squeeze|ExpandDims)$/;
/** Elements that an array of weights has at least. */
const LEAST_WEIGHTS = 2;

export const NO_SIZE: Size = { parameters: 0, bytes: 0, flops: 0 };

/** Ids of constants, and of what only lays constants out anew; of each whether it is an array of weights. */
export function constantsOf(nodes: ReadonlyMap<number, Node>): Map<number, boolean> {
  const found = new Map<number, boolean>();
  for (const { id, type, inputs, outputs, control, is_result: isResult } of nodes.values()) {
    if (isResult || control.length > 0) continue;
    if (type === "Const" || type === "Constant") found.set(id, isWeights(outputs[0]));
    else if (inputs.length > 0 && HANDING_ON.test(type) && inputs.every(([from]) => found.has(from))) found.set(id, found.get(inputs[0]![0]) ?? false);
  }
  return found;
}

function isWeights(output: Output | undefined): boolean {
  return output !== undefined && WEIGHT.test(output.dtype) && (output.shape?.length ?? 0) > 0 && elementsOf(output) >= LEAST_WEIGHTS;
}

function elementsOf({ shape }: Output): number {
  return (shape ?? []).reduce((product: number, n) => product * (n ?? 1), 1);
}

/** What an operation counts for; `lane` says whether it is of the model itself. */
export function sizeOf({ type, outputs, flops }: Node, lane: Lane): Size {
  const [output] = outputs;
  const holds = output !== undefined && lane === "model" && (isVariableType(type) || (type === "Const" && isWeights(output)));
  return { parameters: holds ? elementsOf(output) : 0, bytes: holds ? leastBytes(output) : 0, flops };
}

/** Sizes of boxes: of operations, and of scopes with all that lies in them. */
export class Sizes {
  readonly ops: readonly (readonly number[])[];
  /** Of each operation in `ops`. */
  readonly each: readonly Size[];
  readonly all: Size;
  readonly #sums: Readonly<Record<keyof Size, HeatBoxes>>;

  constructor(model: Sized) {
    const found = [...model.nodes.values()].map((node) => [node.id, sizeOf(node, model.lanes.get(node.id) ?? "model")] as const)
      .filter(([, { parameters, flops }]) => parameters > 0 || flops > 0);
    const ops = this.ops = found.map(([id]) => [id]);
    const each = this.each = found.map(([, size]) => size);
    this.#sums = { parameters: summed("parameters"), bytes: summed("bytes"), flops: summed("flops") };
    const total = (what: keyof Size): number => each.reduce((sum, size) => sum + size[what], 0);
    this.all = { parameters: total("parameters"), bytes: total("bytes"), flops: total("flops") };

    function summed(what: keyof Size): HeatBoxes {
      const boxes = new HeatBoxes(model, ops);
      boxes.take(each.map((size) => size[what]));
      return boxes;
    }
  }

  /** What a box counts for; null where that is nothing. */
  of(box: BoxId): Size | null {
    if (box === ROOT) return this.ops.length > 0 ? this.all : null;
    const parameters = this.#sums.parameters.of(box);
    return parameters === null ? null : { parameters, bytes: this.#sums.bytes.of(box) ?? 0, flops: this.#sums.flops.of(box) ?? 0 };
  }
}

/** What sizes are worked out of: a graph, and the tree that shows it. */
export interface Sized {
  readonly nodes: ReadonlyMap<number, Node>;
  readonly lanes: ReadonlyMap<number, Lane>;
  readonly tree: Pick<Tree, "homeOf">;
}

/** "parameters", "bytes", "products and convolutions" and how many; without those of which there are none. */
export function sizeFacts(size: Size | null): { name: string; value: string }[] {
  const { parameters, bytes, flops } = size ?? NO_SIZE;
  return [
    ...(parameters > 0 ? [{ name: "parameters", value: whole(parameters) }, { name: "in bytes", value: bytesText(bytes) }] : []),
    ...(flops > 0 ? [{ name: "products, convolutions", value: flopText(flops) }] : []),
  ];
}

/** "1.23 M parameters, 4.92 MB, 3.1 GFLOP"; "" where there is nothing to count. */
export function sizeLine(size: Size | null): string {
  if (size === null) return "";
  const { parameters, bytes, flops } = size;
  const held = parameters > 0 ? [`${countText(parameters)}${parameters === 1 ? " parameter" : " parameters"}`, bytesText(bytes)] : [];
  return [...held, ...(flops > 0 ? [flopText(flops)] : [])].join(", ");
}

/** The figures of a box, that of a kind first: ["1.23 M", "4.92 MB", "3.1 GFLOP"]. */
export function sizeParts(size: Size | null, kind: "weights" | "flops"): string[] {
  const { parameters, bytes, flops } = size ?? NO_SIZE;
  const held = parameters > 0 ? [countText(parameters), bytesText(bytes)] : [];
  const computed = flops > 0 ? [flopText(flops)] : [];
  return kind === "weights" ? [...held, ...computed] : [...computed, ...held];
}

/** 1234567 -> "1.23 M". */
export function countText(count: number): string {
  const [size, unit] = SCALES.find(([least]) => count >= least * 0.9995) ?? [1, ""];
  return unit === "" ? whole(count) : `${significant(count / size)}\u00a0${unit}`;
}

/** 3.1e9 -> "3.1 GFLOP". */
export function flopText(flops: number): string {
  const [size, unit] = SCALES.find(([least]) => flops >= least * 0.9995) ?? [1, ""];
  return `${unit === "" ? whole(flops) : significant(flops / size)}\u00a0${unit}FLOP`;
}

const SCALES: readonly (readonly [number, string])[] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
