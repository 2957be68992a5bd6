/** What groups are called: by the user's names, functions and lines where there are any, else by what they do. Pure. */
import { itemsOf, type Unit } from "./level.js";
import { LIMITS } from "./types.js";

/** What is known of a box of a level that a label can be made of. */
export interface Facts {
  /** Its own name, without the scopes around it. */
  readonly name: string;
  /** Op type; "" of a scope. */
  readonly type: string;
  /** Op type; of a small scope the type of the one operation in it that computes. */
  readonly core: string;
  /** Types of the operations inside, each once. */
  readonly types: readonly string[];
  /** Shape of the first output, of a variable's scope that of the variable. */
  readonly shape: readonly (number | null)[] | null;
  /** The Python variable that the user's line assigns, or "". */
  readonly variable: string;
  /** The Python function that the line stands in, or "". */
  readonly made_in: string;
}

export type Texts = (item: number) => Facts;

/** Types that say what a group of operations is for, the telling ones first. */
const TELLING: readonly RegExp[] = [
  /^(Conv|DepthwiseConv)/, /MatMul|Einsum/, /^(Gather|Embedding)/, /Softmax|CrossEntropy/, /Pool/, /^(Apply|Sparse)/, /^(Relu|Tanh|Sigmoid|Elu|Gelu)/,
  /^(Slice|StridedSlice|Split|Concat)/, /^(Mean|Sum|Max|Min|Prod)$/, /^(Add|Sub|Mul|RealDiv)/,
];
/** Types that only hold or hand on values. */
const DULL = /^(Const|Identity|ReadVariableOp|VarHandleOp|NoOp|Shape|Fill|Parameter|AssignVariableOp|Cast)$/;

/** Types that lay values out anew. */
const SHAPING = /^(Transpose|Reshape|Squeeze|ExpandDims)$/;

/** The one type among some that computes, or "". */
export function coreOf(types: readonly string[]): string {
  const computing = types.filter((type) => !DULL.test(type));
  const telling = computing.length > 1 ? computing.filter((type) => !SHAPING.test(type)) : computing;
  return telling.length === 1 ? (telling[0] ?? "") : "";
}

function rankOf(type: string): number {
  const rank = TELLING.findIndex((pattern) => pattern.test(type));
  return rank >= 0 ? rank : DULL.test(type) ? TELLING.length + 1 : TELLING.length;
}

/** The most telling types, at most so many: "Conv2D + Relu". */
export function typesText(types: Iterable<string>, most: number): string {
  const distinct = [...new Set(types)].sort((a, b) => rankOf(a) - rankOf(b));
  const telling = distinct.filter((type) => !DULL.test(type));
  return (telling.length > 0 ? telling : distinct).slice(0, most).join(" + ");
}

/** "cell_12" -> "cell"; a name of digits alone stays. */
export function stemOf(name: string): string {
  return name.replace(/(?:[_\-.]?\d+)+$/, "") || name;
}

/** What a copy of a repeat is called. */
export function repeatTitle(copy: readonly Unit[], texts: Texts): string {
  const [only] = copy;
  if (copy.length === 1 && only?.group) return only.group.title + (only.group.detail ? ` ${only.group.detail}` : "");
  const facts = copy.flatMap(itemsOf).map(texts);
  const [first] = facts;
  if (copy.length === 1 && first) return readable(first.type === "" ? stemOf(first.name) : first.type);
  return cellTitle(facts) || commonFunction(facts) || typesText(facts.flatMap(({ types }) => types), 2) || "repeat";
}

/** The name of a cell of a recurrent network, or of attention, by what it computes, or "". */
export function cellTitle(facts: readonly Facts[]): string {
  const count = (type: string): number => facts.filter((one) => one.core === type).length;
  if (facts.length > LIMITS.cell || count("MatMul") === 0) return "";
  // Scores of each with each, their shares, and what these mix.
  if (count("Softmax") === 1 && count("MatMul") >= 4) return "attention";
  if (count("Sigmoid") === 3 && count("Tanh") === 2) return "LSTM cell";
  return count("Sigmoid") <= 2 && count("Sigmoid") > 0 && count("Tanh") === 1 && count("MatMul") <= 3 && count("Sub") > 0 ? "GRU cell" : "";
}

/** The function of the user's that made most of what a group computes, or "". */
function commonFunction(facts: readonly Facts[]): string {
  const counts = new Map<string, number>();
  let all = 0;
  for (const { made_in: name, types } of facts) {
    if (types.every((type) => DULL.test(type))) continue;
    all += 1;
    if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const [best] = [...counts].sort((a, b) => b[1] - a[1]);
  return best && best[1] > LIMITS.byFunction * all && !best[0].startsWith("<") ? readable(best[0].replace(/^_+/, "")) : "";
}

/** What a stretch of a level that is too large is called, and what is in it. */
export function partTitle(members: readonly Unit[], texts: Texts): { title: string; detail: string } {
  const [inside, variables] = [new Set<string>(), new Set<string>()];
  for (const member of members) {
    for (const item of itemsOf(member)) {
      const facts = texts(item);
      for (const type of facts.types) inside.add(type);
      if (variables.size < 2 && facts.variable.length > 1) variables.add(facts.variable);
    }
  }
  const types = typesText(inside, 3);
  const [variable] = variables;
  const [first, last] = [endTitle(members[0], texts), endTitle(members[members.length - 1], texts)];
  const title = variables.size === 1 && variable ? variable : first === last ? first : `${first} \u2026 ${last}`;
  return { title: readable(title), detail: types === title ? "" : types };
}

function endTitle(unit: Unit | undefined, texts: Texts): string {
  if (!unit) return "";
  if (unit.group) return unit.group.kind === "part" ? (unit.group.title.split(" \u2026 ")[0] ?? "") : unit.group.title;
  return texts(unit.item).name;
}

/** A title is never empty, nor one letter. */
export function readable(title: string): string {
  return title.length > 1 ? title : title ? `\u201c${title}\u201d` : "group";
}

/** What functions call what they make, where that is not the op's type. */
const DEFAULTS: Readonly<Record<string, string>> = { truediv: "RealDiv", div: "RealDiv", variable: "VarHandleOp", gatherv2: "Gather", addv2: "Add" };

/** Whether a name is the one that an operation gets where the user gives none: "MatMul_3", "Variable_1", "add". */
export function isDefaultName(name: string, type: string): boolean {
  const stem = name.replace(/_\d+$/, "").toLowerCase();
  return stem === type.toLowerCase() || DEFAULTS[stem] === type;
}
