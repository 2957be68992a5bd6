/**
 * What is sought in a graph: by name, op type, line, device and dtype, with regular expressions, and along edges. Pure.
 *
 *   dense             names and op types that contain it; with a "/", whole names
 *   type:MatMul       op types; name:, device:, dtype:, line: likewise; line:12 is a line's number
 *   /conv_?\d/        a regular expression in place of a text; on whole names
 *   is:changed        what the latest cell has changed or added; is:stale, is:fed, is:fetched, is:variable
 *   is:different      what is another than in a graph that this one is compared with; is:added, is:altered
 *   from:x to:loss    what lies on the ways from one operation or scope to another; each also alone
 *
 * Terms stand side by side: all of them hold.
 */
import type { Node } from "../wire/messages.js";
import { typeText } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { shortName } from "./scopes.js";

export interface Found {
  /** Ids of the operations, in program order. */
  readonly ops: readonly number[];
  /** What is wrong with the question; "" for nothing. */
  readonly problem: string;
}

/** "added", "altered" or "removed" by name: what is another than in a graph that this one is compared with. */
export type Difference = ReadonlyMap<string, string>;

type Test = (node: Node) => boolean;
type Matches = (text: string) => boolean;

const NONE: Found = { ops: [], problem: "" };
const STATES: Readonly<Record<string, (model: GraphModel, difference: Difference) => Test>> = {
  different: (_, difference) => ({ name }) => difference.has(name),
  added: (_, difference) => ({ name }) => difference.get(name) === "added",
  altered: (_, difference) => ({ name }) => difference.get(name) === "altered",
  changed: ({ marked }) => ({ id }) => marked.has(id),
  stale: () => ({ stale }) => stale !== null,
  fed: () => ({ type }) => type === "Placeholder" || type === "PlaceholderWithDefault",
  fetched: ({ fetches }) => ({ name }) => fetches.includes(name) || fetches.includes(`${name}:0`),
  variable: () => ({ type }) => type === "VarHandleOp" || type === "VariableV2",
};
const FIELDS: Readonly<Record<string, (node: Node) => readonly string[]>> = {
  name: ({ name }) => [name],
  type: ({ type }) => [type],
  device: ({ device, placed }) => [placed ?? device],
  dtype: ({ outputs }) => outputs.map(typeText),
  line: ({ origin }) => (origin ? [origin.text, `${origin.file ?? `cell ${origin.cell ?? ""}`}:${origin.line}`] : []),
};

/** The operations that a question asks for; none for an empty one. */
export function search(model: GraphModel, question: string, difference: Difference = new Map()): Found {
  const terms = question.trim().match(/(?:\w+:)?\/(?:\\.|[^\\/])+\/(?=\s|$)|\S+/g) ?? [];
  if (terms.length === 0) return NONE;
  const tests: Test[] = [];
  for (const term of terms) {
    const test = testOf(model, term, difference);
    if (typeof test === "string") return { ops: [], problem: test };
    tests.push(test);
  }
  const ops: number[] = [];
  for (const node of model.nodes.values()) if (tests.every((test) => test(node))) ops.push(node.id);
  return { ops, problem: "" };
}

/** What a term asks of an operation; a text says what is wrong with it. */
function testOf(model: GraphModel, term: string, difference: Difference): Test | string {
  const [, key = "", value = term] = /^(\w+):(.+)$/s.exec(term) ?? [];
  if (key === "is") return STATES[value]?.(model, difference) ?? `is: ${Object.keys(STATES).join(", ")}`;
  if (key === "from" || key === "to") return reached(model, value, key === "from");
  const matches = matcher(key && key in FIELDS ? value : term);
  if (typeof matches === "string") return matches;
  if (key === "line" && /^\d+$/.test(value)) return ({ origin }) => origin?.line === Number(value);
  const field = FIELDS[key];
  if (field) return (node) => field(node).some(matches);
  const isWhole = term.includes("/");
  return (node) => matches(isWhole ? node.name : shortName(node.name)) || matches(node.type);
}

function isExpression(text: string): boolean {
  return text.length > 2 && text.startsWith("/") && text.endsWith("/");
}

function matcher(text: string): Matches | string {
  if (!isExpression(text)) {
    const wanted = text.toLowerCase();
    return (told) => told.toLowerCase().includes(wanted);
  }
  try {
    const expression = new RegExp(text.slice(1, -1), "i");
    return (told) => expression.test(told);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What can be reached from an operation or scope along edges, or from what it can be reached; itself included. */
function reached(model: GraphModel, name: string, isForward: boolean): Test | string {
  const path = name.replace(/\/$/, "");
  const start = [...model.nodes.values()].filter((node) => node.name === path || node.name.startsWith(`${path}/`)).map(({ id }) => id);
  if (start.length === 0) return `there is no operation and no scope "${path}"`;
  const seen = new Set(start);
  for (let op = start.pop(); op !== undefined; op = start.pop()) {
    const node = model.nodes.get(op);
    const next = isForward ? model.consumersOf(op) : node ? [...node.inputs.map(([id]) => id), ...node.control] : [];
    for (const id of next) {
      if (seen.has(id)) continue;
      seen.add(id);
      start.push(id);
    }
  }
  return ({ id }) => seen.has(id);
}
