/** What is to be fetched and fed, and what came of it, as the kernel tells it. Pure. */
import type { Fetched, Need, Outcome, RunSetup } from "../wire/messages.js";
import { duration, plural, significant, typeText } from "./figures.js";
import { opsBelow } from "./facts.js";
import type { GraphModel } from "./graph.js";
import { opOf, pathOf, type BoxId } from "./ids.js";

export const NO_SETUP: RunSetup = {
  fetches: [], needs: [], would_run: [], state: "ready", problem: "", latest: null, kept: [], compared_with: 0, changes: [],
};

/** What a widget's state holds; nothing where it is of no such form. */
export function setupFrom(told: unknown): RunSetup {
  const isOne = typeof told === "object" && told !== null && Array.isArray((told as { fetches?: unknown }).fetches);
  return isOne ? { ...NO_SETUP, ...told } : NO_SETUP;
}

/** "loss:0" -> "loss". */
export function opName(fetch: string): string {
  return fetch.replace(/:\d+$/, "");
}

/** "loss:0" -> "loss"; "moments:1" stays: the first output needs no number. */
export function shortFetch(fetch: string): string {
  return fetch.replace(/:0$/, "");
}

/**
 * What is fetched where a box is chosen: an operation's outputs, or the operation itself where it has none. Of a scope,
 * what it hands on, where that is one tensor. [] where nothing can be.
 */
export function fetchesOf(model: GraphModel, box: BoxId | null): readonly string[] {
  if (box === null || model.level !== "graph") return [];
  const op = opOf(box) ?? loopOf(model, box);
  if (op !== null) return outputsOf(model, op);
  const scope = model.tree.get(pathOf(box) ?? "");
  if (!scope?.parent) return [];
  const inside = opsBelow(scope);
  const results = new Set<string>();
  for (const id of inside) {
    for (const to of inside.size > 0 ? model.consumersOf(id) : []) {
      if (inside.has(to)) continue;
      for (const [from, output] of model.nodes.get(to)?.inputs ?? []) if (from === id) results.add(`${model.nodes.get(id)?.name}:${output}`);
    }
  }
  const fetchable = [...results].filter((name) => model.nodes.get(model.tree.idOf(opName(name)) ?? -1)?.body === "");
  return fetchable.length === 1 ? fetchable : [];
}

/** The operation whose frame a box is. */
function loopOf(model: GraphModel, box: BoxId): number | null {
  return model.frames.get(pathOf(box) ?? "")?.id ?? null;
}

function outputsOf(model: GraphModel, op: number): readonly string[] {
  const node = model.nodes.get(op);
  if (!node || node.body !== "") return [];
  return node.outputs.length === 0 ? [node.name] : node.outputs.map((_, k) => `${node.name}:${k}`);
}

/** The fetches with these, or without them where they are all there. */
export function toggled(fetches: readonly string[], names: readonly string[]): readonly string[] {
  const rest = fetches.filter((one) => !names.includes(one));
  return rest.length === fetches.length - names.length ? rest : [...rest, ...names];
}

/** The operations that would run, in this page's numbers. */
export function wouldRun(model: GraphModel, setup: RunSetup): ReadonlySet<number> {
  const found = new Set<number>();
  for (const [first, last] of setup.would_run) for (let id = first; id <= last; id++) found.add(model.ownId(id));
  return found;
}

export type Badge = "fetch" | "value" | "feed" | "missing" | "failed" | "live";

/** What is said beside an operation. */
export interface Note {
  readonly op: number;
  readonly text: string;
  readonly badge: Badge;
  /** The figures of an array: how its elements are spread, and a line. */
  readonly figures?: { readonly text: string; readonly histogram: readonly number[] };
  /** The newest values of a number, and how full a queue is, 0 to 1. */
  readonly curve?: readonly number[];
  readonly fill?: number;
  /** Where on that the mark of what stays in stands. */
  readonly least?: number;
  /** What is told, where it stands on the box of a scope; the one of several that is shown stands first. */
  readonly name?: string;
}

/** What stands beside operations: values, or that they are fetched; what is fed, and what has yet to be. */
export function notesOf(model: GraphModel, setup: RunSetup): readonly Note[] {
  const { latest } = setup;
  const known = new Map((latest?.fetched ?? []).map((one) => [one.name, one]));
  const named = [
    ...setup.needs.map((need) => ({ name: need.name, text: feedText(need), badge: (need.value === "" ? "missing" : "feed") as Badge })),
    ...setup.fetches.map((name) => {
      const value = known.get(name);
      if (!value) return { name, text: "fetch", badge: "fetch" as const };
      if (value.text !== "") return { name, text: value.text, badge: "value" as const };
      return { name, text: typeText(value), badge: "value" as const, figures: { text: figuresText(value), histogram: value.histogram } };
    }),
    ...(latest && latest.failed_at !== "" ? [{ name: latest.failed_at, text: "failed", badge: "failed" as const }] : []),
  ];
  return named.flatMap(({ name, ...note }: { name: string } & Omit<Note, "op">) => {
    const op = model.tree.idOf(opName(name));
    return op === undefined ? [] : [{ op, ...note }];
  });
}

function feedText(need: Need): string {
  if (need.value === "") return need.problem === "" ? "feed?" : "cannot be fed";
  return need.text !== "" && need.text.length <= 18 ? `= ${need.text}` : `= ${need.value}`;
}

/** Figures of an array: "-1.2 to 3.4, mean 0.1, 2 not finite". */
export function figuresText({ minimum, maximum, mean, not_finite, text }: Fetched): string {
  const parts = minimum === null || maximum === null || text !== "" ? [] : [
    `${significant(minimum)} to ${significant(maximum)}`, ...(mean === null ? [] : [`mean ${significant(mean)}`]),
  ];
  return [...parts, ...(not_finite > 0 ? [`${plural(not_finite, "element")} not finite`] : [])].join(", ");
}

/** How things stand, in one line: what is to be done, what is waited for, what the latest run was. */
export function statusText({ state, problem, latest, fetches }: RunSetup): string {
  if (state === "waiting") return "waits for the running cell to end";
  if (state === "running") return "running \u2026";
  if (fetches.length === 0) return "Choose what to fetch: select a box and press Fetch";
  if (problem !== "") return problem.charAt(0).toUpperCase() + problem.slice(1);
  return latest === null ? "Ready to run" : runText(latest);
}

export function runText({ number, seconds, error }: Outcome): string {
  return error === "" ? `Run ${number}, ${duration(seconds)}` : `Run ${number} failed: ${error}`;
}
