/** Sizes of boxes from their texts; measuring text is an argument. Pure. */
import { isFrame } from "../model/frames.js";
import type { Node } from "../wire/messages.js";
import { ROOT, type BoxId } from "../model/ids.js";
import { linksOf, type Link } from "../model/links.js";
import { sizeText, type Box, type VisibleGraph } from "../model/visible.js";
import { textWidth } from "./text.js";
import { SPACE, type BoxInput, type LinkInput, type ScopeInput } from "./types.js";

/** Width in pixels of a text in the given style. */
export type Measure = (text: string, style: TextStyle) => number;
export type TextStyle = "name" | "type" | "header";

export const FONT_PX: Readonly<Record<TextStyle, number>> = { name: 12, type: 10.5, header: 12 };

const OP = { least: 76, most: 190, side: 13, high: 38, pill: 24 } as const;
const SCOPE = { least: 104, most: 220, side: 14, mark: 22, high: 42 } as const;

/** Without a canvas. */
export const roughMeasure: Measure = (text, style) => textWidth(text, FONT_PX[style], style !== "type");

/** How an op is drawn, told by its type. */
export type OpShape = "box" | "slant" | "cylinder" | "pill" | "call" | "choice";

export function shapeOf(node: Pick<Node, "type" | "calls" | "runs">): OpShape {
  if (isFrame(node)) return "choice";
  if (node.calls) return "call";
  const { type } = node;
  if (type === "Parameter" || type.startsWith("Placeholder")) return "slant";
  if (/^(VarHandleOp|Variable(V2)?)$/.test(type)) return "cylinder";
  return type === "Const" || type === "Constant" ? "pill" : "box";
}

export interface LayoutJob {
  readonly root: ScopeInput;
  readonly links: readonly Link[];
}

/** Builds the nested input of the layout, from the innermost scopes outwards. */
export function layoutJob(graph: VisibleGraph, measure: Measure): LayoutJob {
  const links = linksOf(graph);
  const byScope = new Map<BoxId, LinkInput[]>();
  for (const { id, scope, source, from, to, kind } of links) {
    const list = byScope.get(scope);
    const input = kind === "return" ? { id, source, from, to, isReturn: true } : { id, source, from, to };
    if (list) list.push(input);
    else byScope.set(scope, [input]);
  }
  const control = controlPairs(graph);
  const done = new Map<BoxId, ScopeInput>();
  for (const box of innermostFirst(graph)) {
    const boxes = box.children.map((id) => boxInput(graph.boxes.get(id), done.get(id) ?? null, measure));
    const header = box.id === ROOT ? 0 : headerWidth(box, measure);
    done.set(box.id, { path: box.id, boxes, links: byScope.get(box.id) ?? [], control: control.get(box.id) ?? [], header });
  }
  return { root: done.get(ROOT) ?? { path: ROOT, boxes: [], links: [], control: [], header: 0 }, links };
}

/** Control edges between children of one scope. */
function controlPairs(graph: VisibleGraph): Map<BoxId, (readonly [BoxId, BoxId])[]> {
  const pairs = new Map<BoxId, (readonly [BoxId, BoxId])[]>();
  for (const { from, to, kind } of graph.edges) {
    const parent = graph.boxes.get(from)?.parent;
    if (kind !== "control" || parent == null || graph.boxes.get(to)?.parent !== parent) continue;
    const list = pairs.get(parent);
    if (list) list.push([from, to]);
    else pairs.set(parent, [[from, to]]);
  }
  return pairs;
}

function innermostFirst(graph: VisibleGraph): Box[] {
  const open: Box[] = [];
  const stack: BoxId[] = [ROOT];
  for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
    const box = graph.boxes.get(id);
    if (!box?.isOpen) continue;
    open.push(box);
    stack.push(...box.children);
  }
  return open.reverse();
}

function boxInput(box: Box | undefined, inner: ScopeInput | null, measure: Measure): BoxInput {
  if (!box) throw new Error("layout: a child without a box");
  if (inner) return { id: box.id, w: 0, h: 0, inner };
  return { id: box.id, inner: null, ...(box.node ? opSize(box, box.node, measure) : scopeSize(box, measure)) };
}

function opSize(box: Box, node: Node, measure: Measure): { w: number; h: number } {
  const shape = shapeOf(node);
  const text = shape === "pill"
    ? measure(box.name, "type")
    : Math.max(measure(box.name, "name"), measure(box.kind, "type"));
  // Slants, calls and choices lose room at both ends, pills to the device strip.
  const extra = shape === "slant" || shape === "choice" ? 14 : shape === "pill" || shape === "call" ? 10 : 0;
  const least = shape === "pill" ? 52 : OP.least;
  return {
    w: even(clamp(text + 2 * OP.side + extra, least, OP.most)),
    h: shape === "pill" ? OP.pill : shape === "cylinder" ? OP.high + 8 : OP.high,
  };
}

function scopeSize(box: Box, measure: Measure): { w: number; h: number } {
  const count = sizeText(box);
  const text = Math.max(measure(box.name, "header"), measure(count, "type"));
  return { w: even(clamp(text + 2 * SCOPE.side + SCOPE.mark, SCOPE.least, SCOPE.most)), h: SCOPE.high };
}

function headerWidth(box: Box, measure: Measure): number {
  const count = sizeText(box);
  return even(measure(box.name, "header") + measure(count, "type") + SCOPE.mark + 2 * SPACE.padding + 10);
}

const clamp = (x: number, low: number, high: number): number => Math.min(high, Math.max(low, x));
/** Whole even pixels keep box middles on whole pixels. */
const even = (x: number): number => 2 * Math.ceil(x / 2);
