/** The table of what operations cost: grouped, filtered and sorted. Pure. */
import type { Node } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import type { Heat } from "./heat.js";
import { bytesText } from "./running.js";

export const GROUPINGS = ["op", "type", "scope", "line", "device", "phase"] as const;
export type Grouping = (typeof GROUPINGS)[number];
export const COST_COLUMNS = ["self", "total", "count", "bytes"] as const;
export type CostColumn = (typeof COST_COLUMNS)[number];

/** What one operation, or a group of them, costs in a step. */
export interface CostRow {
  /** Tells rows apart, also from time to time. */
  readonly key: string;
  readonly name: string;
  /** What it is: an op's type, of a group how many operations it has. */
  readonly detail: string;
  /** Of an operation its id; null for a group. */
  readonly op: number | null;
  /** The part of a step's time that is its own. */
  readonly share: number;
  readonly self_ns: number;
  /** Null for a group: what runs in another of the group would count twice. */
  readonly total_ns: number | null;
  readonly count: number;
  /** Bytes made, of what shapes tell that; whether there is something of which they do not. */
  readonly bytes: number;
  readonly isMore: boolean;
}

/** "12 kB"; "? bytes" where shapes do not tell it, "12 kB and more" where they do of some; "" for none. */
export function madeText({ bytes, isMore }: Pick<CostRow, "bytes" | "isMore">): string {
  if (isMore) return bytes > 0 ? `${bytesText(bytes)} and more` : "? bytes";
  return bytes > 0 ? bytesText(bytes) : "";
}

/** "cell 3, line 7"; "" where no line is known. */
export function lineText({ origin }: Node): string {
  return origin ? `${origin.cell === null ? (origin.file ?? "") : `cell ${origin.cell}`}, line ${origin.line}` : "";
}

/** The operation that stands for a node in tables: its own, which comes before the loops and branches that it runs in. */
function mainOp(ops: readonly number[], nodes: GraphModel["nodes"]): Node | undefined {
  return nodes.get(ops.find((op) => nodes.has(op)) ?? -1);
}

/** Rows in the order of a column, the greatest first. `filter` is sought in names, types and lines. */
export function costRows(model: GraphModel, heat: Heat, grouping: Grouping, by: CostColumn, filter: string): CostRow[] {
  const sought = filter.trim().toLowerCase();
  const groups = new Map<string, CostRow & { readonly size: number }>();
  const rows: CostRow[] = [];
  heat.ops.forEach((ops, i) => {
    const node = mainOp(ops, model.nodes);
    if (!node) return;
    const phase = heat.phase[i] ?? "";
    if (sought !== "" && ![node.name, node.type, lineText(node), node.placed ?? "", phase].some((text) => text.toLowerCase().includes(sought))) return;
    const count = heat.count[i] ?? 0;
    const isMore = Number.isNaN(heat.bytes[i] ?? 0) && count > 0;
    const bytes = isMore ? 0 : (heat.bytes[i] ?? 0) * count;
    const cost = { share: heat.time[i] ?? 0, self_ns: heat.self_ns[i] ?? 0, total_ns: heat.total_ns[i] ?? 0, count, bytes, isMore };
    if (grouping === "op") return void rows.push({ key: `o${node.id}`, name: node.name, detail: node.type, op: node.id, ...cost });
    const key = keyOf(node, phase, grouping);
    const known = groups.get(key);
    groups.set(key, {
      key, name: key === "" ? NOWHERE[grouping] : key, op: null, total_ns: null, detail: "", size: (known?.size ?? 0) + 1,
      share: (known?.share ?? 0) + cost.share, self_ns: (known?.self_ns ?? 0) + cost.self_ns, count: (known?.count ?? 0) + cost.count,
      bytes: (known?.bytes ?? 0) + cost.bytes, isMore: (known?.isMore ?? false) || isMore,
    });
  });
  const grouped = [...groups.values()].map(({ size, ...row }) => ({ ...row, detail: `${size} op${size === 1 ? "" : "s"}` }));
  const value = (row: CostRow): number => (by === "self" ? row.self_ns : by === "total" ? (row.total_ns ?? row.self_ns) : row[by]);
  return [...rows, ...grouped].sort((a, b) => value(b) - value(a) || b.self_ns - a.self_ns || (a.name < b.name ? -1 : 1));
}

const NOWHERE: Readonly<Record<Exclude<Grouping, "op">, string>> = {
  type: "no type", scope: "outside scopes", line: "no line known", device: "not placed", phase: "no phase",
};

function keyOf(node: Node, phase: string, grouping: Exclude<Grouping, "op">): string {
  switch (grouping) {
    case "type": return node.type;
    case "scope": return node.name.includes("/") ? node.name.replace(/\/[^/]*$/, "/") : "";
    case "line": return lineText(node);
    case "device": return node.placed ?? "";
    case "phase": return phase;
  }
}

/** What one line of the user's program costs. */
export interface LineCost {
  readonly file: string | null;
  readonly cell: number | null;
  readonly line: number;
  readonly share: number;
  readonly ops: number;
}

/** Lines by their share of a step: of all lines that made an operation. */
export function lineCosts(model: GraphModel, heat: Heat | null): LineCost[] {
  const shares = new Map<number, number>();
  heat?.ops.forEach((ops, i) => {
    const node = mainOp(ops, model.nodes);
    if (node) shares.set(node.id, (shares.get(node.id) ?? 0) + (heat.time[i] ?? 0));
  });
  const lines = new Map<string, LineCost>();
  for (const { id, origin } of model.nodes.values()) {
    if (!origin) continue;
    const key = `${origin.cell ?? origin.file}:${origin.line}`;
    const known = lines.get(key);
    lines.set(key, {
      file: origin.file, cell: origin.cell, line: origin.line, ops: (known?.ops ?? 0) + 1, share: (known?.share ?? 0) + (shares.get(id) ?? 0),
    });
  }
  return [...lines.values()];
}
