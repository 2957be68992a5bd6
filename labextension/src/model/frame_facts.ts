/** What the inspector says about loops and branches, and about the iteration that is chosen. Pure. */
import type { FrameState, Node } from "../wire/messages.js";
import { endFact, inputFact, shorten, type Fact, type Section } from "./fact.js";
import { whole } from "./figures.js";
import { isFrame, isLoop, shownBy } from "./frames.js";
import type { GraphModel } from "./graph.js";
import { opOf, pathOf, type BoxId } from "./ids.js";
import { bytesText, chosenText, type ChosenIteration } from "./running.js";
import { shortName, type Scope } from "./scopes.js";

/** A loop: how long it goes on, its variables, what it reads and keeps. A branch: what decides. */
export function frameSections(model: GraphModel, node: Node, runs: readonly Fact[]): Section[] {
  const others = { title: "From outside", facts: shorten(outsideFacts(model, node)) };
  if (!isLoop(node)) {
    const decides = node.predicate ? [endFact(model, node.predicate, "if")] : [];
    return [{ title: "Decides", facts: decides }, { title: "Branches", facts: runs }, others];
  }
  return [
    { title: "Goes on", facts: durationFacts(model, node) },
    { title: "Variables", facts: shorten(variableFacts(model, node)) },
    { title: "Runs", facts: runs },
    others,
    { title: "Kept by the forward loop", facts: shorten(takenFacts(model, node)) },
    { title: "Keeps for the gradient", facts: shorten(keptFacts(model, node)) },
    { title: "How", facts: settingFacts(node) },
  ];
}

function hasCount({ attributes }: Node): boolean {
  return attributes.has_count === "True";
}

function durationFacts(model: GraphModel, node: Node): Fact[] {
  const { predicate, inputs: [first] } = node;
  const count = hasCount(node) && first ? [countFact(model, first, predicate ? "at most" : "times")] : [];
  return [...(predicate ? [endFact(model, predicate, "while")] : []), ...count];
}

/** The number of iterations where it is a constant, else what computes it. */
function countFact(model: GraphModel, [id, output]: readonly [number, number], name: string): Fact {
  const fact = endFact(model, [id, output], name);
  const number = model.nodes.get(id)?.type === "Const" ? Number(model.nodes.get(id)?.attributes.value) : Number.NaN;
  return Number.isInteger(number) ? { ...fact, value: whole(number) } : fact;
}

/** Each leads to what it is at first, and to what it becomes in an iteration. */
function variableFacts(model: GraphModel, { carried, inputs }: Node): Fact[] {
  return carried.flatMap(({ parameter, input, result }) => {
    const name = shortName(model.nodes.get(parameter)?.name ?? String(parameter));
    const start = inputs[input];
    const [from, to] = [start && endFact(model, start, name), endFact(model, result, start ? "" : name)];
    return [...(from ? [{ ...from, value: `at first ${from.value}` }] : []), { ...to, value: `then ${to.value}` }];
  });
}

/** Inputs that are no variables' and decide nothing. */
function outsideFacts(model: GraphModel, node: Node): Fact[] {
  const told = new Set([...node.carried.map(({ input }) => input), ...takenInputs(model, node)]);
  const decides = isLoop(node) ? hasCount(node) : node.predicate !== null;
  const rest = node.inputs.filter((_, k) => !told.has(k) && !(k === 0 && decides));
  return [...new Map(rest.map((end) => [end.join(), end])).values()].map(([id, output]) => inputFact(model, id, output));
}

/** Positions of the inputs of which each iteration gets an element. */
function takenInputs(model: GraphModel, node: Node): number[] {
  return node.enters.filter(([id]) => model.entries.get(id)?.what === "kept value").map(([, input]) => input);
}

function takenFacts(model: GraphModel, node: Node): Fact[] {
  return takenInputs(model, node).flatMap((input) => {
    const [id, output] = node.inputs[input] ?? [-1, 0];
    const kept = model.nodes.get(id)?.leaves.find(([, , position]) => position === output);
    return kept ? [inputFact(model, kept[0], kept[1])] : [];
  });
}

function keptFacts(model: GraphModel, { leaves, attributes }: Node): Fact[] {
  if (attributes.back_prop === "False") return [{ name: "", value: "nothing: back_prop=False" }];
  const kept = leaves.map(([id, output]) => inputFact(model, id, output));
  const isNothing = kept.length === 0 && attributes.back_prop !== undefined;
  return isNothing ? [{ name: "", value: "nothing: no gradient needs it" }] : kept;
}

function settingFacts({ attributes }: Node): Fact[] {
  const parallel = attributes.parallel_iterations;
  return [
    ...(parallel === undefined ? [] : [{ name: "parallel_iterations", value: parallel }]),
    ...(attributes.recompute === "True" ? [{ name: "recompute", value: "the backward loop computes the body again" }] : []),
  ];
}

/** What changes while a loop runs, and what is chosen of it; [] where the selection has no part in it. */
export function runSections(model: GraphModel, box: BoxId | null, chosen: ChosenIteration | null): Section[] {
  const frames = model.run?.frames ?? [];
  if (box === null || frames.length === 0) return [];
  const loop = loopOf(model, box);
  const path = loop && shownBy(loop);
  const [first, ...others] = path ? frames.filter((frame) => model.scopeOfLoop(frame.loop) === path) : [];
  const frame = frames.find(({ id }) => id === chosen?.frame);
  const isInside = chosen && frame && liesIn(model, box, frame.loop);
  return [
    { title: "Chosen", facts: isInside ? [{ name: "iteration", value: chosenText(chosen, frame) }] : [] },
    { title: "Now", facts: first ? nowFacts(first, others) : [] },
  ].filter(({ facts }) => facts.length > 0);
}

function nowFacts(first: FrameState, others: readonly FrameState[]): Fact[] {
  const { mode, limit } = first;
  const estimate = [first, ...others].reduce((sum, frame) => sum + (frame.kept_estimate_bytes ?? 0), 0);
  const often = limit === null ? "not known before it ends" : whole(limit);
  return [
    { name: "runs", value: mode === "compiled" ? "compiled" : mode === "op" ? "op by op" : "by tokens" },
    others.length > 0 ? { name: "frames", value: whole(others.length + 1) } : { name: "iterations", value: often },
    ...(estimate > 0 ? [{ name: "will keep", value: bytesText(estimate) }] : []),
  ];
}

function loopOf(model: GraphModel, box: BoxId): Node | undefined {
  const shown = model.frames.get(pathOf(box) ?? "");
  const op = model.nodes.get(opOf(box) ?? -1);
  const node = shown ?? (op && isFrame(op) ? op : undefined);
  return node && isLoop(node) ? node : undefined;
}

/** Whether a box is a loop, or lies in what it runs. */
function liesIn(model: GraphModel, box: BoxId, loop: number): boolean {
  const path = model.scopeOfLoop(loop);
  const node = path === null ? undefined : model.frames.get(path);
  if (path === null || !node || loopOf(model, box) === node) return node !== undefined;
  const op = opOf(box);
  if (op !== null && !model.nodes.has(op)) return false;
  const home = op === null ? model.tree.get(pathOf(box) ?? "") : model.tree.homeOf(op);
  const walls = isFrame(node) ? node.runs : [path];
  for (let scope: Scope | null = home ?? null; scope; scope = scope.parent) if (walls.includes(scope.path)) return true;
  return false;
}
