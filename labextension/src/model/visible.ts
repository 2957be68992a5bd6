/**
 * The graph that can be seen for a set of open scopes: boxes nested in open boxes, and the edges
 * between them, bundled. Pure.
 */
import type { Node } from "../wire/messages.js";
import { finish, SLICE, type Sliced } from "../wire/sliced.js";
import { firstForward, isVariableScope, isVariableType, kindOf, scopeTitle, type Body } from "./bodies.js";
import type { Group, Lane } from "../rules/types.js";
import { plural } from "./figures.js";
import { forwardName } from "./gradients.js";
import type { GraphModel } from "./graph.js";
import { ROOT, opBox, scopeBox, type BoxId } from "./ids.js";
import { opTitle } from "./naming.js";
import type { Scope } from "./scopes.js";
import { Bundles, type Edge } from "./edges.js";
import { FrameEdges, isLoop } from "./frames.js";

export interface Box {
  readonly id: BoxId;
  /** The box around this one; null for the root. */
  readonly parent: BoxId | null;
  readonly name: string;
  /** What an operation is, in a word or two; "" for a scope. */
  readonly kind: string;
  /** An operation, or null for a scope. */
  readonly node: Node | null;
  /** A scope, or null for an operation. */
  readonly scope: Scope | null;
  readonly isOpen: boolean;
  /** What this scope is the body of, or null. */
  readonly body: Body | null;
  /** The loop or branching operation whose frame this scope is, or null. */
  readonly frame: Node | null;
  /** What the rules have made this scope of, or null. */
  readonly group: Group | null;
  /** Where on the stage it belongs. */
  readonly lane: Lane;
  /** Of what is in the gradients' lane: the box of the same level or around it that it is the gradient of, or null. */
  readonly gradientOf: BoxId | null;
  /** The same number for boxes that are built alike, whatever else the graph holds: it picks a structure colour. */
  readonly likeness: number;
  /** Whether it is a scope that holds one variable and what belongs to it. */
  readonly isVariable: boolean;
  readonly children: readonly BoxId[];
}

/** "4 ops", of a function "4 ops, 2 calls", of a frame "loop, 4 ops". */
export function sizeText({ scope, body, frame }: Box): string {
  const size = plural(scope?.size ?? 0, "op");
  if (scope?.group) return groupText(scope.group, size);
  if (frame && (frame.roles.length > 0 || frame.frame)) return `${isLoop(frame) ? "loop" : "branch"}, ${size}`;
  return body?.isFunction ? `${size}, ${plural(body.calls.length, "call")}` : size;
}

/** "relu" of a layer, "340 ops" of others. */
function groupText({ kind, detail }: Group, size: string): string {
  return kind === "layer" ? detail || size : [detail, size].filter(Boolean).join(", ");
}

export interface VisibleGraph {
  readonly boxes: ReadonlyMap<BoxId, Box>;
  readonly edges: readonly Edge[];
}

/** Boxes after which other work may be done. */
const FEW_BOXES = 32;

export function visibleGraph(model: GraphModel, isOpen: (path: string) => boolean): VisibleGraph {
  return finish(seenGraph(model, isOpen));
}

/** The same in slices; what opens meanwhile does not count. */
export function* seenGraph(model: GraphModel, isOpen: (path: string) => boolean): Sliced<VisibleGraph> {
  const boxes = yield* visibleBoxes(model, isOpen);
  const endOf = endFinder(model, (path) => boxes.get(scopeBox(path))?.isOpen ?? false);
  yield;
  pairGradients(model, boxes, endOf);
  yield;
  return { boxes, edges: yield* visibleEdges(model, boxes, endOf) };
}

function* visibleBoxes(model: GraphModel, isOpen: (path: string) => boolean): Sliced<Map<BoxId, Box>> {
  const boxes = new Map<BoxId, Box>();
  const queue: { scope: Scope; parent: BoxId | null }[] = [{ scope: model.tree.root, parent: null }];
  for (let item = queue.pop(); item; item = queue.pop()) {
    const { scope, parent } = item;
    if (boxes.size % FEW_BOXES === 0) yield;
    const id = scopeBox(scope.path);
    const open = isOpen(scope.path);
    const children = open ? childrenOf(scope) : [];
    const name = scopeTitle(model, scope.path);
    const body = model.bodies.get(scope.path) ?? null;
    boxes.set(id, {
      id, parent, name, kind: "", node: null, scope, isOpen: open, body, frame: model.frames.get(scope.path) ?? null, ...ruled(scope),
      isVariable: scope.group === null && isVariableScope(model, scope.path), children,
    });
    if (!open) continue;
    for (const inner of scope.scopes.values()) queue.push({ scope: inner, parent: id });
    for (const op of scope.ops) boxes.set(opBox(op), boxOfOp(model, op, id));
  }
  return boxes;
}

function boxOfOp(model: GraphModel, op: number, parent: BoxId): Box {
  const node = model.nodes.get(op);
  if (!node) throw new Error(`visible: no operation with id ${op}`);
  return {
    id: opBox(op), parent, name: opTitle(node, () => model.assigned), kind: kindText(model, node), node, scope: null, isOpen: false, body: null, frame: null,
    group: null, lane: model.lanes.get(op) ?? "model", gradientOf: null, likeness: 0, isVariable: isVariableType(node.type), children: [],
  };
}

/** What the rules say of a box; what it is the gradient of shows when all boxes are known. */
function ruled(scope: Scope): Pick<Box, "group" | "lane" | "gradientOf" | "likeness"> {
  const { group, lane, likeness } = scope;
  return { group, lane, gradientOf: null, likeness };
}

/** Puts beside each box of the gradients' lane the box of the same level that it is the gradient of. */
function pairGradients(model: GraphModel, boxes: Map<BoxId, Box>, endOf: (op: number) => BoxId): void {
  for (const box of boxes.values()) {
    if (box.lane !== "gradient" || box.parent === null || boxes.get(box.parent)?.lane === "gradient") continue;
    const mate = forwardOf(model, box);
    let end = mate === null ? null : endOf(mate);
    while (end !== null && boxes.get(end)?.parent !== box.parent) end = boxes.get(end)?.parent ?? null;
    if (end !== null && end !== box.id) boxes.set(box.id, { ...box, gradientOf: end });
  }
}

function forwardOf(model: GraphModel, { node, scope }: Box): number | null {
  if (scope) return firstForward(model, scope);
  const name = forwardName(node?.name ?? "");
  return (name === undefined ? undefined : model.tree.idOf(name)) ?? null;
}

function kindText(model: GraphModel, node: Node): string {
  const kind = model.entries.get(node.id)?.what ?? kindOf(node);
  return model.alwaysFor.has(node.id) ? `${kind}, always runs` : kind;
}

/** In the order of making: a scope stands where its first operation stands. */
function childrenOf(scope: Scope): BoxId[] {
  const ranked: [number, BoxId][] = [...scope.ops].map((op) => [op, opBox(op)]);
  for (const inner of scope.scopes.values()) ranked.push([firstOp(inner), scopeBox(inner.path)]);
  return ranked.sort((a, b) => a[0] - b[0]).map(([, id]) => id);
}

function firstOp(scope: Scope): number {
  let first = Infinity;
  const stack = [scope];
  for (let at = stack.pop(); at; at = stack.pop()) {
    for (const op of at.ops) first = Math.min(first, op);
    stack.push(...at.scopes.values());
  }
  return first;
}

/** A function from an operation to the box that stands for it: itself, or a closed scope. */
export function endFinder(model: GraphModel, isOpen: (path: string) => boolean): (op: number) => BoxId {
  const closedAbove = new Map<Scope, BoxId | null>([[model.tree.root, isOpen("") ? null : ROOT]]);
  const find = (scope: Scope): BoxId | null => {
    const chain: Scope[] = [];
    let at: Scope = scope;
    while (!closedAbove.has(at) && at.parent) {
      chain.push(at);
      at = at.parent;
    }
    let found = closedAbove.get(at) ?? null;
    for (const inner of chain.reverse()) {
      found ??= isOpen(inner.path) ? null : scopeBox(inner.path);
      closedAbove.set(inner, found);
    }
    return found;
  };
  return (op) => find(model.tree.homeOf(op)) ?? opBox(op);
}

/** Whether a value returns here to the start of a loop of primitives. */
function isBackEdge(from: Node | undefined, to: Node): boolean {
  return from?.type === "NextIteration" && to.type === "Merge";
}

function* visibleEdges(model: GraphModel, boxes: ReadonlyMap<BoxId, Box>, endOf: (op: number) => BoxId): Sliced<Edge[]> {
  const { nodes } = model;
  const bundles = new Bundles();
  /** The box of each operation, by its id. */
  const ends: (BoxId | undefined)[] = [];
  const boxOf = (op: number): BoxId => (ends[op] ??= endOf(op));
  const frames = new FrameEdges(model, boxOf);
  let count = 0;
  for (const node of nodes.values()) {
    if (++count % SLICE === 0) yield;
    const to = boxOf(node.id);
    node.inputs.forEach((input, k) => {
      const source = nodes.get(input[0]);
      // Most edges lie inside of one closed box, and no frame is at either end.
      if (source && node.runs.length === 0 && source.runs.length === 0) {
        const from = boxOf(source.id);
        if (from !== to) bundles.add(from, to, isBackEdge(source, node) ? "return" : "data", source.outputs[input[1]] ?? null);
      } else {
        addInput(model, bundles, frames, boxOf, node, k);
      }
    });
    frames.addTo(bundles, node);
    for (const producer of node.control) {
      if (nodes.has(producer)) bundles.add(boxOf(producer), to, "control", null);
    }
    if (node.is_result) addResult(bundles, frames, boxes, node);
  }
  return bundles.edges((box) => boxes.get(box)?.parent ?? null);
}

/** An input of a loop or branch, or one that comes from it: where it is open, the parts inside take and give. */
function addInput(model: GraphModel, bundles: Bundles, frames: FrameEdges, boxOf: (op: number) => BoxId, node: Node, k: number): void {
  const input = node.inputs[k];
  const takers = node.runs.length > 0 ? frames.takers(node, k) : [boxOf(node.id)];
  for (const [producer, output] of input ? frames.givers(...input) : []) {
    const source = model.nodes.get(producer);
    const kind = isBackEdge(source, node) ? "return" : "data";
    for (const taker of takers) if (boxOf(producer) !== taker) bundles.add(boxOf(producer), taker, kind, source?.outputs[output] ?? null);
  }
}

/** A result leaves through the lower wall of the body. */
function addResult(bundles: Bundles, frames: FrameEdges, boxes: ReadonlyMap<BoxId, Box>, node: Node): void {
  const body = scopeBox(node.body);
  if (!boxes.get(body)?.isOpen) return;
  for (const end of frames.ends(node)) bundles.add(end, body, "data", node.outputs[0] ?? null);
}
