/** Sizes of boxes from their texts; measuring text is an argument. Pure. */
import { isVariableType } from "../model/bodies.js";
import { isFrame } from "../model/frames.js";
import type { Node } from "../wire/messages.js";
import { plural } from "../model/figures.js";
import { ROOT, type BoxId } from "../model/ids.js";
import { linksOf, type Link } from "../model/links.js";
import { sizeText, type Box, type VisibleGraph } from "../model/visible.js";
import { textWidth } from "./text.js";
import { ROOM, SPACE, type BoxInput, type LinkInput, type Room, type ScopeInput } from "./types.js";

/** Width in pixels of a text in the given style. */
export type Measure = (text: string, style: TextStyle) => number;
export type TextStyle = "name" | "type" | "header";

export const FONT_PX: Readonly<Record<TextStyle, number>> = { name: 12, type: 11, header: 12 };

const OP = { least: 64, most: 190, side: 12, high: 38, pill: 24 } as const;
const SCOPE = { least: 92, most: 220, side: 13, mark: 22, high: 40 } as const;
/** What a shape takes from the room of its texts. */
const LOST: Readonly<Record<OpShape, number>> = { box: 0, slant: 14, cylinder: 0, pill: 10, call: 10, choice: 14 };
/** The lid of a cylinder. */
const LID = 8;
/** Sheets behind a stack, or beside a fan. */
export const SHEET_PX = 5;

/** Without a canvas. */
export const roughMeasure: Measure = (text, style) => textWidth(text, FONT_PX[style], style !== "type");

/** How an op is drawn, told by its type. */
export type OpShape = "box" | "slant" | "cylinder" | "pill" | "call" | "choice";

export function shapeOf(node: Pick<Node, "type" | "calls" | "runs">): OpShape {
  if (isFrame(node)) return "choice";
  if (node.calls) return "call";
  const { type } = node;
  if (type === "Parameter" || type.startsWith("Placeholder")) return "slant";
  if (isVariableType(type)) return "cylinder";
  return type === "Const" || type === "Constant" ? "pill" : "box";
}

export interface LayoutJob {
  readonly root: ScopeInput;
  readonly links: readonly Link[];
}

/** Builds the nested input of the layout, from the innermost scopes outwards. */
export function layoutJob(graph: VisibleGraph, measure: Measure, room: Room = ROOM): LayoutJob {
  const links = linksOf(graph);
  const byScope = new Map<BoxId, LinkInput[]>();
  for (const { id, scope, source, from, to, kind } of links) {
    const list = byScope.get(scope);
    const input = kind === "return" ? { id, source, from, to, isReturn: true } : { id, source, from, to };
    if (list) list.push(input);
    else byScope.set(scope, [input]);
  }
  const done = new Map<BoxId, ScopeInput>();
  for (const box of innermostFirst(graph)) {
    const boxes = box.children.map((id) => boxInput(graph.boxes.get(id), done.get(id) ?? null, measure));
    const header = box.id === ROOT ? 0 : headerWidth(box, measure);
    done.set(box.id, { path: box.id, boxes, links: byScope.get(box.id) ?? [], header, room });
  }
  return { root: done.get(ROOT) ?? { path: ROOT, boxes: [], links: [], header: 0 }, links };
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
  const place = { id: box.id, lane: box.lane, beside: box.gradientOf };
  return { ...place, inner, ...(box.node ? opSize(box, box.node, measure) : scopeSize(box, measure)) };
}

function opSize(box: Box, node: Node, measure: Measure): { w: number; h: number } {
  const shape = shapeOf(node);
  const text = shape === "pill"
    ? measure(box.name, "type")
    : Math.max(measure(box.name, "name"), measure(kindLine(box), "type"));
  return {
    w: even(clamp(text + 2 * OP.side + LOST[shape], shape === "pill" ? 48 : OP.least, OP.most)),
    h: shape === "pill" ? OP.pill : shape === "cylinder" ? OP.high + LID : OP.high,
  };
}

/** The second line of an operation. */
export function kindLine({ node, kind }: Box): string {
  return node?.stale ? `stale: ${kind}` : kind;
}

/** The second line of a closed scope: what the rules say of it, and how many operations it holds; a layer's kind says enough. */
export function detailOf(box: Box): string {
  const { group, scope } = box;
  if (!group) return sizeText(box);
  const isSaid = group.detail !== "" && group.kind === "layer";
  return [group.detail, isSaid ? "" : plural(scope?.size ?? 0, "op")].filter(Boolean).join(", ");
}

/** "\u00d720" of a stack or fan, "" of others. */
export function timesOf({ group }: Box): string {
  return group && group.count > 1 && group.kind !== "more" ? `\u00d7${group.count}` : "";
}

function scopeSize(box: Box, measure: Measure): { w: number; h: number } {
  const times = timesOf(box);
  const title = measure(box.name, "header") + (times ? measure(times, "header") + 12 : 0);
  const text = Math.max(title, measure(detailOf(box), "type"));
  return { w: even(clamp(text + 2 * SCOPE.side + SCOPE.mark, SCOPE.least, SCOPE.most)), h: SCOPE.high + (box.isVariable ? LID : 0) };
}

function headerWidth(box: Box, measure: Measure): number {
  const count = [timesOf(box), detailOf(box)].filter(Boolean).join("  ");
  return even(measure(box.name, "header") + measure(count, "type") + SCOPE.mark + 2 * SPACE.padding + 10);
}

const clamp = (x: number, low: number, high: number): number => Math.min(high, Math.max(low, x));
/** Whole even pixels keep box middles on whole pixels. */
const even = (x: number): number => 2 * Math.ceil(x / 2);
