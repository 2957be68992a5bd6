/** What the inspector says about a loop that was made of primitives by hand. Pure. */
import type { Node } from "../wire/messages.js";
import { endFact, inputFact, shorten, type Fact, type Facts, type Section } from "./fact.js";
import type { GraphModel } from "./graph.js";
import { shortName } from "./scopes.js";

/** What a loop is made of, told as that of a loop with a body: of the operations inside; `around` is told of its scope. */
export function byHandFacts(model: GraphModel, enter: Node, inside: Iterable<number>, around: readonly Section[]): Facts {
  const nodes = [...inside].flatMap((id) => model.nodes.get(id) ?? []);
  const tests = nodes.filter(({ type }) => type === "LoopCond");
  const constants = nodes.filter(({ frame, attributes }) => frame === enter.frame && attributes.is_constant === "True");
  const sections: Section[] = [
    { title: "Goes on", facts: tests.flatMap(({ inputs: [end] }) => (end ? [endFact(model, end, "while")] : [])) },
    { title: "Variables", facts: shorten(nodes.flatMap((node) => variableFacts(model, node))) },
    { title: "From outside", facts: shorten(constants.flatMap(({ inputs: [end] }) => (end ? [inputFact(model, ...end)] : []))) },
    { title: "How", facts: [{ name: "parallel_iterations", value: enter.attributes.parallel_iterations ?? "" }] },
    ...around,
  ];
  return {
    kind: enter.made_from.some(({ type }) => type === "Loop") ? "loop, as lowered" : "loop, made by hand",
    name: enter.frame, summary: "Made of Enter, Merge, Switch, NextIteration and Exit.",
    sections: sections.filter(({ facts }) => facts.length > 0),
  };
}

/** A Merge of what enters and of what returns is a variable. */
function variableFacts(model: GraphModel, { type, name, inputs }: Node): Fact[] {
  const typeOf = (id: number): string => model.nodes.get(id)?.type ?? "";
  const back = inputs.find(([id]) => typeOf(id) === "NextIteration");
  const start = inputs.find(([id]) => typeOf(id) === "Enter");
  if (type !== "Merge" || !back || !start) return [];
  const [first, then] = [endFact(model, through(model, start), shortName(name)), endFact(model, through(model, back), "")];
  return [{ ...first, value: `at first ${first.value}` }, { ...then, value: `then ${then.value}` }];
}

/** What an Enter or a NextIteration hands on. */
function through(model: GraphModel, end: readonly [number, number]): readonly [number, number] {
  return model.nodes.get(end[0])?.inputs[0] ?? end;
}
