/** What the inspector's lines are made of. Pure. */
import { kindOf } from "./bodies.js";
import { typeText } from "./figures.js";
import type { End } from "./frames.js";
import type { GraphModel } from "./graph.js";
import { opBox, type BoxId } from "./ids.js";

export interface Fact {
  readonly name: string;
  readonly value: string;
  /** The box that the fact leads to. */
  readonly leadsTo?: BoxId;
  /** The level of the graph that it lies in, where that may be another one. */
  readonly level?: "graph";
}

export interface Section {
  readonly title: string;
  readonly facts: readonly Fact[];
}

export interface Facts {
  /** "MatMul", "scope" or "graph". */
  readonly kind: string;
  readonly name: string;
  readonly summary: string;
  readonly sections: readonly Section[];
}

/** Facts in a long list beyond this are counted, not listed. */
const LONG = 40;

export function shorten(facts: readonly Fact[]): readonly Fact[] {
  if (facts.length <= LONG) return facts;
  return [...facts.slice(0, LONG), { name: "", value: `and ${facts.length - LONG} more` }];
}

/** An operation, by its name. */
export function linkFact(model: GraphModel, id: number, name: string): Fact {
  const node = model.nodes.get(id);
  return { name: name || (node ? kindOf(node) : "?"), value: node?.name ?? String(id), leadsTo: opBox(id) };
}

/** An output of an operation: "a/b:0". */
export function endFact(model: GraphModel, [id, output]: End, name: string): Fact {
  return { name, value: `${model.nodes.get(id)?.name ?? id}:${output}`, leadsTo: opBox(id) };
}

/** An output of an operation, after its dtype and shape. */
export function inputFact(model: GraphModel, id: number, output: number): Fact {
  const carried = model.nodes.get(id)?.outputs[output];
  return endFact(model, [id, output], carried ? typeText(carried) : "?");
}
