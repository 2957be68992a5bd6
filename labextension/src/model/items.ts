/** What the fold knows of operations and places: their structure as a number, and what a label can say of them. */
import { hashBag, hashText, mix } from "../rules/hash.js";
import { coreOf, type Facts } from "../rules/labels.js";
import type { Wires } from "../rules/components.js";
import { laneOf, type Unit } from "../rules/level.js";
import { isOfGradients } from "../rules/lanes.js";
import type { Lane } from "../rules/types.js";
import type { Node, Output } from "../wire/messages.js";
import { typeText } from "./figures.js";
import type { Material } from "./folding.js";
import { isPlace, type Item, type Place, type Places } from "./places.js";
import { shortName } from "./scopes.js";

/** What the fold knows of a place. */
export interface Known {
  readonly hash: number;
  readonly lane: Lane;
  readonly isParameter: boolean;
  readonly isConstant: boolean;
  /** Of a variable's scope: the operation of its name. */
  readonly handle: Node | undefined;
  /** The item that the program made first. */
  readonly lead: Item | undefined;
  readonly first: number;
  /** Null until it is asked for. */
  facts: Facts | null;
}

/** Operations of a scope that computes one thing, at most. */
const MOST_OF_ONE = 3;
/** Types of a scope that a label looks at. */
const MOST_TYPES = 40;
const VARIABLE = /^(VarHandleOp|Variable(V2)?)$/;

export class Items {
  readonly #texts = new Map<string, number>();
  readonly #outputs = new Map<Output, number>();

  unitOf(item: Item, number: number, { lanes, constants }: Pick<Material, "lanes" | "constants">): Unit {
    const plain = { item: number, group: null, members: NONE, at: 0 };
    if (!isPlace(item)) {
      const lane = lanes.get(item.id) ?? "model";
      const isConstant = constants.has(item.id);
      const isParameter = isVariable(item) || (isConstant && constants.get(item.id) === true);
      return { ...plain, first: item.id, hash: this.#hashOf(item), lane, size: 1, isParameter, isConstant };
    }
    if (!item.done) throw new Error(`folded: ${item.scope.path} is not known yet`);
    const { first, hash, lane, isParameter, isConstant } = item.done.known;
    return { ...plain, first, hash, lane, size: item.done.shown.size, isParameter, isConstant };
  }

  /** What is known of a place that holds these units; `handle` is the operation of its name. */
  knowledge({ scope }: Place, items: readonly Item[], units: readonly Unit[], wires: Wires, handle: Node | undefined): Known {
    const isVariableHere = handle !== undefined && isVariable(handle) && scope.ops.has(handle.id);
    const isConstant = units.length > 0 && units.every((unit) => unit.isConstant);
    const isParameter = isVariableHere || (isConstant && units.every((unit) => unit.isParameter));
    let first = units[0];
    for (const unit of units) if (!first || unit.first < first.first) first = unit;
    return {
      hash: hashOfLevel(units, wires), lane: isOfGradients(scope.path) ? "gradient" : laneOf(units), isParameter, isConstant, handle: isVariableHere ? handle : undefined,
      lead: items[first?.item ?? -1], first: first?.first ?? 0, facts: null,
    };
  }

  /** What a label can say of an item. */
  factsOf(item: Item | undefined, places: Places): Facts {
    if (!item) return NOTHING;
    if (!isPlace(item)) return new OperationFacts(item);
    const known = item.done?.known;
    if (!known) return NOTHING;
    return (known.facts ??= new PlaceFacts(item, known, this, places));
  }

  #hashOf({ type, inputs, outputs }: Node): number {
    let hash = mix(this.#textHash(type), inputs.length);
    for (const output of outputs) {
      let known = this.#outputs.get(output);
      if (known === undefined) this.#outputs.set(output, known = hashText(typeText(output)));
      hash = mix(hash, known);
    }
    return hash;
  }

  #textHash(text: string): number {
    let known = this.#texts.get(text);
    if (known === undefined) this.#texts.set(text, known = hashText(text));
    return known;
  }
}

/** What a label can say of an operation: most is never asked. */
class OperationFacts implements Facts {
  readonly #node: Node;
  readonly type: string;
  readonly core: string;

  constructor(node: Node) {
    this.#node = node;
    this.type = this.core = node.type;
  }

  get name(): string {
    return shortName(this.#node.name);
  }

  get types(): readonly string[] {
    return [this.type];
  }

  get shape(): Facts["shape"] {
    return this.#node.outputs[0]?.shape ?? null;
  }

  get variable(): string {
    return this.#node.origin?.variable ?? "";
  }

  get made_in(): string {
    return this.#node.origin?.function ?? "";
  }
}

/** What a label can say of a place. */
class PlaceFacts implements Facts {
  readonly #place: Place;
  readonly #known: Known;
  readonly #items: Items;
  readonly #places: Places;
  readonly type = "";
  #types: readonly string[] | null = null;

  constructor(place: Place, known: Known, items: Items, places: Places) {
    this.#place = place;
    this.#known = known;
    this.#items = items;
    this.#places = places;
  }

  get name(): string {
    return this.#place.scope.name;
  }

  get core(): string {
    return this.#place.scope.size <= MOST_OF_ONE ? coreOf(this.types) : "";
  }

  get types(): readonly string[] {
    return (this.#types ??= this.#typesInside());
  }

  get shape(): Facts["shape"] {
    return this.#known.handle?.outputs[0]?.shape ?? null;
  }

  get variable(): string {
    return this.#items.factsOf(this.#known.lead, this.#places).variable;
  }

  get made_in(): string {
    return this.#items.factsOf(this.#known.lead, this.#places).made_in;
  }

  #typesInside(): readonly string[] {
    const found = new Set<string>();
    const items = this.#places.itemsOf(this.#place);
    for (const item of items) if (!isPlace(item)) found.add(item.type);
    for (let k = items.length - 1; k >= 0 && found.size < MOST_TYPES; k--) {
      const item = items[k];
      if (item && isPlace(item)) for (const type of this.#items.factsOf(item, this.#places).types) found.add(type);
    }
    return [...found];
  }
}

const NONE: readonly Unit[] = [];

const NOTHING: Facts = { name: "", type: "", core: "", types: [], shape: null, variable: "", made_in: "" };

function isVariable({ type }: Node): boolean {
  return type.startsWith("Var") && VARIABLE.test(type);
}

/** The hash of a level: what stands in it, and how it is wired. */
function hashOfLevel(units: readonly Unit[], wires: Wires): number {
  const around = units.map(({ hash }) => hash);
  if (wires.length === 0 && units.length === 1) return mix(around[0]!, 1);
  // Sums do not depend on an order, and need no lists.
  for (let k = 0; k < wires.length; k += 2) {
    const [from, to] = [wires[k]!, wires[k + 1]!];
    around[to] = (around[to]! + mix(units[from]!.hash, 3)) | 0;
    around[from] = (around[from]! + mix(units[to]!.hash, 5)) | 0;
  }
  return mix(hashBag(around), units.length);
}
