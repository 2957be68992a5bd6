/** What is typed to set a breakpoint or a watchpoint, as a wish to the kernel; or what is wrong with it. Pure. */
import type { BreakpointWish, WatchWish } from "../wire/messages.js";
import type { GraphModel } from "./graph.js";
import { pathOf, type BoxId } from "./ids.js";
import { targetOf } from "./debug.js";

/** Where it stands; "watch" for wherever a value is made. */
export const SIDES = { before: "before", after: "after", watch: "wherever in" } as const;
export type Side = keyof typeof SIDES;
/** What is meant. */
export const KINDS = { selection: "the selection", scope: "scope", type: "op type", line: "line", everything: "everything" } as const;
export type Kind = keyof typeof KINDS;

export interface Typed {
  readonly side: Side;
  readonly kind: Kind;
  /** A scope's path, an op type, or a line. */
  readonly text: string;
  readonly when: string;
  readonly iteration: string;
  readonly step: string;
  readonly hits: string;
  /** Names of operations and scopes, with commas or spaces between. */
  readonly exceptions: string;
  readonly raises: boolean;
}

/** What is meant, as both wishes have it. */
type Meant = Pick<BreakpointWish, "op" | "scope" | "op_type" | "line" | "cell" | "file">;
export type Wished =
  | { readonly name: "break"; readonly wish: BreakpointWish }
  | { readonly name: "watch"; readonly wish: WatchWish }
  | { readonly name: "problem"; readonly problem: string };

const NOTHING: Meant = { op: null, scope: null, op_type: null, line: null, cell: null, file: null };

/** What is selected, where a breakpoint can stand there: an operation, or all that a scope holds. */
export function selectedTarget(model: GraphModel, box: BoxId | null): Meant | null {
  const node = targetOf(model, box);
  if (node) return { ...NOTHING, op: node.name };
  const path = box === null || model.level !== "graph" ? null : pathOf(box);
  const isNamed = path !== null && path !== "" && [...model.nodes.values()].some(({ name }) => name.startsWith(`${path}/`));
  return isNamed ? { ...NOTHING, scope: path } : null;
}

/** How the selection is shown beside the form. */
export function targetText(meant: Meant | null): string {
  return meant?.op ?? (meant?.scope ? `${meant.scope}/` : "");
}

/** The wish; a problem where something is missing or no number. */
export function wished(typed: Typed, selected: Meant | null): Wished {
  const meant = meantBy(typed, selected);
  if (typeof meant === "string") return { name: "problem", problem: meant };
  if (typed.side === "watch") {
    const exceptions = typed.exceptions.split(/[\s,]+/).filter((name) => name !== "").map((name) => name.replace(/\/$/, ""));
    return { name: "watch", wish: { ...meant, when: typed.when.trim(), exceptions, raises: typed.raises } };
  }
  const numbers = (["iteration", "step", "hits"] as const).map((name) => ({ name, value: numberIn(typed[name]) }));
  const wrong = numbers.find(({ value }) => Number.isNaN(value));
  if (wrong) {
    const { name } = wrong;
    return { name: "problem", problem: `${name === "hits" ? "from hit" : name}: expected a whole number of 0 or more, got "${typed[name]}"` };
  }
  const [iteration, step, hits] = numbers.map(({ value }) => value);
  return {
    name: "break",
    wish: { ...meant, is_after: typed.side === "after", when: typed.when.trim(), iteration: iteration ?? null, step: step ?? null, hits: hits ?? 1 },
  };
}

/** null for nothing, NaN for what is no whole number. */
function numberIn(text: string): number | null {
  const trimmed = text.trim();
  return trimmed === "" ? null : /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : NaN;
}

function meantBy({ side, kind, text }: Typed, selected: Meant | null): Meant | string {
  const name = text.trim();
  if (kind === "everything") return side === "watch" ? NOTHING : "a breakpoint stands somewhere: choose an operation, a scope, a type or a line";
  if (kind === "selection") return selected ?? "select an operation or a scope in the graph first, or choose a scope, a type or a line";
  if (name === "") return `${KINDS[kind]}: type one, such as ${{ scope: "encoder/layer_1", type: "MatMul", line: "cell 3:12 or model.py:12" }[kind]}`;
  if (kind === "scope") return { ...NOTHING, scope: name.replace(/\/$/, "") };
  if (kind === "type") return { ...NOTHING, op_type: name };
  return lineIn(name);
}

/** "12", "cell 3:12" or "model.py:12". */
function lineIn(text: string): Meant | string {
  const found = /^(?:(?:cell\s+(?<cell>\d+)|(?<file>(?!cell\s).+?)):\s*)?(?<line>[1-9]\d*)$/i.exec(text)?.groups;
  if (!found) return `line: expected 12, cell 3:12 or model.py:12, got "${text}"`;
  return { ...NOTHING, line: Number(found.line), cell: found.cell === undefined ? null : Number(found.cell), file: found.file ?? null };
}
