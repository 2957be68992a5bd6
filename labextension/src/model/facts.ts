/** What the inspector says about the selection: titled lists of facts. Pure. */
import type { Node, Origin } from "../wire/messages.js";
import { bodiesBelow, kindOf, scopeTitle, type Body } from "./bodies.js";
import { endFact, inputFact, linkFact, shorten, type Fact, type Facts, type Section } from "./fact.js";
import { plural, typeText } from "./figures.js";
import { byHandFacts } from "./by_hand.js";
import { frameSections } from "./frame_facts.js";
import type { GraphModel } from "./graph.js";
import { opBox, opOf, pathOf, scopeBox, type BoxId } from "./ids.js";
import { isFrame, isLoop } from "./frames.js";
import { alwaysSections, sourceFacts } from "./level_facts.js";
import { shortName, type Scope } from "./scopes.js";
import { sizeFacts } from "./sizes.js";

export function factsOf(model: GraphModel, box: BoxId | null): Facts | null {
  const id = box === null ? null : opOf(box);
  if (id !== null) {
    const node = model.nodes.get(id);
    return node ? opFacts(model, node) : null;
  }
  const path = box === null ? "" : (pathOf(box) ?? "");
  const frame = model.frames.get(path);
  const scope = model.tree.get(path);
  if (!scope) return null;
  return frame ? frameFacts(model, frame, scope) : scopeFacts(model, scope);
}

/** A frame is its operation, and a scope with something inside. */
function frameFacts(model: GraphModel, node: Node, scope: Scope): Facts {
  if (!isFrame(node)) return byHandFacts(model, node, opsBelow(scope), [{ title: "Inside", facts: insideFacts(model, scope) }, ...wallFacts(model, scope)]);
  const { kind, summary, sections } = opFacts(model, node);
  return { kind, name: scope.path, summary, sections: [...sections, { title: "Inside", facts: insideFacts(model, scope) }] };
}

function opFacts(model: GraphModel, node: Node): Facts {
  const sections: Section[] = [
    { title: "In the graph as written", facts: sourceFacts(node) },
    ...alwaysSections(model, node),
    ...(isFrame(node) ? frameSections(model, node, calledFacts(model, node)) : [{ title: "Calls", facts: calledFacts(model, node) }]),
    { title: "Stands for", facts: entryFacts(model, node) },
    { title: isFrame(node) ? "After" : "Inputs", facts: shorten(inputFacts(model, node)) },
    { title: "Outputs", facts: node.outputs.map((out, i) => ({ name: `:${i}`, value: typeText(out) })) },
    { title: "Goes to", facts: shorten([...resultFacts(model, node), ...model.consumersOf(node.id).map((id) => linkFact(model, id, ""))]) },
    { title: "Size", facts: sizeFacts(model.sizes.of(opBox(node.id))) },
    { title: "Device", facts: deviceFacts(node) },
    { title: "Attributes", facts: attributeFacts(node) },
    { title: "Made at", facts: originFacts(node.origin) },
    { title: "Since a cell was run again", facts: rerunFacts(model, node) },
  ];
  return { kind: isFrame(node) ? node.type : kindOf(node), name: node.name, summary: node.summary, sections: sections.filter((s) => s.facts.length > 0) };
}

/** Those of loops and branches are told by what they become inside. */
function inputFacts(model: GraphModel, node: Node): Fact[] {
  const inputs = isFrame(node) ? [] : node.inputs.map(([from, output]) => inputFact(model, from, output));
  return [...inputs, ...node.control.map((from): Fact => linkFact(model, from, "runs after"))];
}

/** Those of loops and branches are told in words. */
function attributeFacts(node: Node): Fact[] {
  return isFrame(node) ? [] : Object.entries(node.attributes).map(([name, value]) => ({ name, value }));
}

/** What a parameter of a loop or branch gets. */
function entryFacts(model: GraphModel, node: Node): Fact[] {
  const entry = model.entries.get(node.id);
  if (!entry) return [];
  const { frame, what, input, next } = entry;
  const from = (name: string, end: readonly [number, number] | null | undefined): Fact[] =>
    end ? [endFact(model, end, name)] : [];
  if (what === "variable") return [...from("at first", frame.inputs[input]), ...from("then", next)];
  const note = what === "kept value" ? "one per iteration, the last one first"
    : isLoop(frame) ? "the same in all iterations" : "computed whichever branch is taken";
  return [...from(what, frame.inputs[input]), { name: "", value: note }];
}

function calledFacts(model: GraphModel, node: Node): Fact[] {
  return bodiesBelow(model, node).map((body) => bodyFact(model, body, body.isFunction ? "function" : body.role || "body"));
}

function resultFacts(model: GraphModel, node: Node): Fact[] {
  const body = node.is_result ? model.bodies.get(node.body) : undefined;
  return body ? [bodyFact(model, body, "result of")] : [];
}

function bodyFact(model: GraphModel, body: Body, name: string): Fact {
  return { name, value: body.isFunction ? scopeTitle(model, body.name) : shortName(body.name), leadsTo: scopeBox(body.name) };
}

function deviceFacts(node: Node): Fact[] {
  const asked = { name: "asked for", value: node.device || "none" };
  // What is fed is placed nowhere, however often it runs.
  if (node.placed === null && node.type.startsWith("Placeholder")) return [asked];
  return [asked, { name: "placed on", value: node.placed ?? "not yet run" }];
}

function rerunFacts(model: GraphModel, node: Node): Fact[] {
  return [
    ...(model.marked.has(node.id) ? [{ name: "new or changed", value: "by the latest cell" }] : []),
    ...(node.stale ? [{ name: "stale", value: node.stale }] : []),
  ];
}

function originFacts(origin: Origin | null): Fact[] {
  if (!origin) return [];
  const place = origin.file === null
    ? `cell ${origin.cell ?? "?"}, line ${origin.line}`
    : `${origin.file}:${origin.line}`;
  return [{ name: place, value: origin.text }];
}

function scopeFacts(model: GraphModel, scope: Scope): Facts {
  const isRoot = scope.parent === null;
  const body = model.bodies.get(scope.path);
  const sections: Section[] = [
    ...(body ? bodyFacts(model, body) : []),
    { title: "Size", facts: sizeFacts(model.sizes.of(scopeBox(scope.path))) },
    { title: "Inside", facts: insideFacts(model, scope) },
    ...(isRoot ? [] : wallFacts(model, scope)),
  ];
  return {
    kind: isRoot ? "graph" : body ? (body.isFunction ? "function" : "body") : "scope", name: isRoot ? model.name || "graph" : scope.path,
    summary: plural(scope.size, "op"), sections: sections.filter((s) => s.facts.length > 0),
  };
}

function bodyFacts(model: GraphModel, { calls, parameters, results, isFunction }: Body): Section[] {
  const carried = (id: number): Fact => {
    const output = model.nodes.get(id)?.outputs[0];
    return linkFact(model, id, output ? typeText(output) : "");
  };
  return [
    { title: isFunction ? "Called by" : "Run by", facts: shorten(calls.map((id) => linkFact(model, id, isFunction ? "call" : ""))) },
    { title: "Parameters", facts: shorten(parameters.map(carried)) },
    { title: "Results", facts: shorten(results.map(carried)) },
  ];
}

function insideFacts(model: GraphModel, scope: Scope): readonly Fact[] {
  const scopes = [...scope.scopes.values()].map((inner): Fact => ({
    name: scopeTitle(model, inner.path), value: plural(inner.size, "op"), leadsTo: scopeBox(inner.path),
  }));
  const ops = [...scope.ops].map((id) => linkFact(model, id, ""));
  return shorten([...scopes, ...ops]);
}

/** What crosses a scope's wall, in and out. */
function wallFacts(model: GraphModel, scope: Scope): Section[] {
  const inside = opsBelow(scope);
  const into = new Map<string, Fact>();
  const out = new Map<string, Fact>();
  for (const id of inside) {
    for (const [from, output] of model.nodes.get(id)?.inputs ?? []) {
      if (!inside.has(from)) into.set(`${from}:${output}`, inputFact(model, from, output));
    }
    for (const to of model.consumersOf(id)) {
      for (const [from, output] of inside.has(to) ? [] : (model.nodes.get(to)?.inputs ?? [])) {
        if (from === id) out.set(`${from}:${output}`, inputFact(model, from, output));
      }
    }
  }
  return [
    { title: "Inputs", facts: shorten([...into.values()]) },
    { title: "Outputs", facts: shorten([...out.values()]) },
  ];
}

export function opsBelow(scope: Scope): Set<number> {
  const found = new Set<number>();
  const stack = [scope];
  for (let at = stack.pop(); at; at = stack.pop()) {
    for (const op of at.ops) found.add(op);
    stack.push(...at.scopes.values());
  }
  return found;
}
