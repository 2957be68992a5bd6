/** What the inspector's lines are made of. Pure. */
import { kindOf } from "./bodies.js";
import { typeText } from "./figures.js";
import type { End } from "./frames.js";
import type { GraphModel } from "./graph.js";
import { opBox, type BoxId } from "./ids.js";

export interface Fact {
  readonly name: string;
  readonly value: string;
  /** What name and value leave out: the full names of devices. */
  readonly title?: string;
  /** The box that the fact leads to. */
  readonly leadsTo?: BoxId;
  /** The level of the graph that it lies in, where that may be another one. */
  readonly level?: "graph";
}

export interface Section {
  readonly title: string;
  readonly facts: readonly Fact[];
}

/** With short names of devices; the full ones go to the title. */
export function withShortNames({ title, facts }: Section, say: (text: string) => string): Section {
  return {
    title, facts: facts.map((fact) => {
      const [name, value] = [say(fact.name), say(fact.value)];
      const full = [...(name === fact.name ? [] : [fact.name]), ...(value === fact.value ? [] : [fact.value])].join(": ");
      return full === "" ? fact : { ...fact, name, value, title: full };
    }),
  };
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
