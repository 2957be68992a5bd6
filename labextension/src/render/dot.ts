/**
 * The visible graph in Graphviz's language: open scopes, frames and parts of devices are clusters, devices are colours, names are
 * the names that the graph has. The same graph gives the same text. Pure.
 */
import { DeviceMix, shortDevice, type Counts } from "../model/devices.js";
import type { Edge } from "../model/edges.js";
import { typeText } from "../model/figures.js";
import { isLoop } from "../model/frames.js";
import type { GraphModel } from "../model/graph.js";
import { pathOf, ROOT, type BoxId } from "../model/ids.js";
import { sizeText, type Box, type VisibleGraph } from "../model/visible.js";
import { deviceColor } from "./theme.js";

type Attributes = Readonly<Record<string, string | null>>;

/** What Python's `graphviz.Digraph` is made of; `body` has whole lines. */
export interface Digraph {
  readonly name: string;
  readonly graph: Attributes;
  readonly node: Attributes;
  readonly edge: Attributes;
  readonly body: readonly string[];
}

/** Longest label: the whole name is the node's name, and its tooltip. */
const LABEL_CHARS = 60;
const TAB = "\t";
/** Opacity of fills in a device's colour, as two hexadecimal digits. */
const WASH = "40";
const FOLDER = "#f1f3f5";

/** @param devices their numbers, by name: where something stands on two or more of them, boxes have their colours */
export function digraph(model: GraphModel, graph: VisibleGraph, devices: ReadonlyMap<string, number>, name: string): Digraph {
  const writer = new Writer(graph, new DeviceMix(model, devices));
  return {
    name: plain(name || "graph").replace(/\n/g, " "),
    graph: { compound: "true", fontname: "Helvetica", rankdir: "TB" },
    node: { fillcolor: "#ffffff", fontname: "Helvetica", fontsize: "11", shape: "box", style: "rounded,filled" },
    edge: { color: "#7b848c", fontname: "Helvetica", fontsize: "9" },
    body: [...writer.children(ROOT, TAB), ...graph.edges.map((edge) => writer.edge(edge)), ...writer.legend()],
  };
}

/** The same as a text: what `graphviz.Digraph` makes of it. */
export function dotText({ name, graph, node, edge, body }: Digraph): string {
  const heads = Object.entries({ graph, node, edge }).map(([what, told]) => `${TAB}${what} ${attributes(told)}\n`);
  return `digraph ${word(name)} {\n${heads.join("")}${body.join("")}}\n`;
}

class Writer {
  readonly #graph: VisibleGraph;
  readonly #mix: DeviceMix;
  readonly #devices: readonly string[];
  /** The numbers of the devices that something stands on, where there are two or more. */
  readonly #told: readonly number[];
  readonly #names: ReadonlyMap<BoxId, string>;
  /** Of bodies that a value leaves: what it leaves through. */
  readonly #exits: ReadonlySet<BoxId>;

  constructor(graph: VisibleGraph, mix: DeviceMix) {
    this.#graph = graph;
    this.#mix = mix;
    this.#devices = [...mix.devices.keys()];
    const used = this.#devices.flatMap((_, k) => (mix.all[k]! > 0 ? [k] : []));
    this.#told = used.length > 1 ? used : [];
    this.#names = new Map([...graph.boxes.values()].map((box) => [box.id, nameOf(box)]));
    this.#exits = new Set(graph.edges.filter(({ from, to }) => this.#isInside(from, to)).map(({ to }) => to));
  }

  children(id: BoxId, indent: string): string[] {
    return (this.#graph.boxes.get(id)?.children ?? []).flatMap((child) => {
      const box = this.#graph.boxes.get(child);
      if (!box) return [];
      return isCluster(box) ? this.#cluster(box, indent) : [`${indent}${word(this.#nameOf(child))} ${attributes(this.#nodeAttributes(box))}\n`];
    });
  }

  #cluster(box: Box, indent: string): string[] {
    const inner = indent + TAB;
    const exit = this.#exits.has(box.id)
      ? [`${inner}${word(this.#exitOf(box.id))} ${attributes({ fillcolor: "#7b848c", label: "", shape: "point", tooltip: "results" })}\n`] : [];
    return [
      `${indent}subgraph ${word(`cluster_${this.#nameOf(box.id)}`)} {\n`, `${inner}graph ${attributes(this.#clusterAttributes(box))}\n`,
      ...this.children(box.id, inner), ...exit, `${indent}}\n`,
    ];
  }

  /** An end that is a cluster is told by a node inside: Graphviz cuts the line at the wall. */
  edge({ from, to, kind, count, label }: Edge): string {
    const isExit = this.#isInside(from, to);
    const tail = this.#leafOf(from);
    const head = isExit ? null : this.#leafOf(to);
    const told = [label, count > 1 ? `\u00d7${count}` : ""].filter(Boolean).join(" ");
    return `${TAB}${word(this.#nameOf(tail))} -> ${word(head === null ? this.#exitOf(to) : this.#nameOf(head))}${list({
      constraint: kind === "return" ? "false" : null, label: told ? escaped(told) : null,
      lhead: head === null || head === to ? null : `cluster_${this.#nameOf(to)}`,
      ltail: tail === from ? null : `cluster_${this.#nameOf(from)}`,
      style: { data: null, control: "dashed", decides: "dotted", return: "bold" }[kind],
    })}\n`;
  }

  /** What the colours mean, where there are any. */
  legend(): string[] {
    if (this.#told.length === 0) return [];
    const nodes = this.#told.map((k) => [k, this.#devices[k]!] as const).map(([k, device]) => `${TAB}${TAB}${word(`device ${device}`)} ${attributes({
      color: deviceColor(k), fillcolor: deviceColor(k) + WASH, label: escaped(shortDevice(device, this.#devices)), tooltip: escaped(device),
    })}\n`);
    return [`${TAB}subgraph ${word("cluster devices")} {\n`, `${TAB}${TAB}graph ${attributes({ color: "#868e96", label: "devices", style: "dashed" })}\n`, ...nodes, `${TAB}}\n`];
  }

  #isInside(box: BoxId, around: BoxId): boolean {
    for (let at = this.#graph.boxes.get(box)?.parent ?? null; at !== null; at = this.#graph.boxes.get(at)?.parent ?? null) if (at === around) return true;
    return false;
  }

  #leafOf(id: BoxId): BoxId {
    let at = id;
    for (let box = this.#graph.boxes.get(at); box && isCluster(box) && box.children[0] !== undefined; box = this.#graph.boxes.get(at)) at = box.children[0];
    return at;
  }

  #nodeAttributes(box: Box): Attributes {
    const { node, isVariable } = box;
    const [output] = node?.outputs ?? [];
    const lines = [box.name, node ? box.kind : sizeText(box), output ? typeText(output) : ""];
    const look: Attributes = isVariable ? { fillcolor: "#fbf3e0", shape: "cylinder", style: "filled" }
      : node?.type.startsWith("Placeholder") ? { fillcolor: "#e3f0fb", shape: "parallelogram", style: "filled" }
      : node ? {} : { fillcolor: FOLDER, peripheries: "2" };
    return sorted({
      label: [...new Set(lines)].filter(Boolean).map((line) => escaped(cut(line))).join("\\n"), tooltip: escaped(this.#nameOf(box.id)),
      ...look, ...this.#colours(box),
    });
  }

  #clusterAttributes(box: Box): Attributes {
    const size = box.frame || box.body ? sizeText(box) : "";
    const style = box.frame && isLoop(box.frame) ? "rounded,bold" : box.frame ? "rounded,dashed" : "rounded";
    const [only, ...others] = this.#devicesOf(box);
    return sorted({
      color: only !== undefined && others.length === 0 ? deviceColor(only) : "#868e96",
      label: [box.name, size].filter(Boolean).map((line) => escaped(cut(line))).join("\\n"), style, tooltip: escaped(this.#nameOf(box.id)),
    });
  }

  /** Fill and outline in the colour of the device; of several the fill has a stripe of each, as wide as its part of the operations. */
  #colours(box: Box): Attributes {
    const found = this.#devicesOf(box);
    const counts: Counts = this.#mix.of(box.id) ?? new Uint32Array();
    if (found.length === 0) return {};
    if (found.length === 1) return { color: deviceColor(found[0]!), fillcolor: deviceColor(found[0]!) + WASH };
    const all = found.reduce((sum, device) => sum + counts[device]!, 0);
    const stripes = found.map((device, k) => deviceColor(device) + WASH + (k + 1 < found.length ? `;${(counts[device]! / all).toFixed(3)}` : ""));
    return { fillcolor: stripes.join(":"), style: "striped" };
  }

  /** The numbers of the devices that its operations stand on; none where all of the graph stands on one. */
  #devicesOf(box: Box): number[] {
    const counts = this.#mix.of(box.id);
    return counts ? this.#told.filter((k) => counts[k]! > 0) : [];
  }

  #nameOf(id: BoxId): string {
    return this.#names.get(id) ?? id;
  }

  #exitOf(id: BoxId): string {
    return `${this.#nameOf(id)} results`;
  }
}

const isCluster = ({ isOpen, children }: Box): boolean => isOpen && children.length > 0;

/** An operation's name; a scope's path with a slash behind it, as a selection is written in Python. */
function nameOf({ id, node }: Box): string {
  return plain(node ? node.name : `${pathOf(id) ?? id}/`);
}

/** A long name keeps its two ends. */
function cut(text: string): string {
  const signs = [...text];
  if (signs.length <= LABEL_CHARS) return text;
  const half = LABEL_CHARS / 2 - 1;
  return `${signs.slice(0, half).join("")}\u2026${signs.slice(-half).join("")}`;
}

const sorted = (told: Attributes): Attributes => Object.fromEntries(Object.entries(told).sort(([a], [b]) => (a < b ? -1 : 1)));

function list(told: Attributes): string {
  const text = attributes(told);
  return text === "[]" ? "" : ` ${text}`;
}

function attributes(told: Attributes): string {
  return `[${Object.entries(told).flatMap(([name, value]) => (value === null ? [] : [`${name}=${quotedValue(value)}`])).join(" ")}]`;
}

/** No control character, and no half of a surrogate pair. */
function plain(text: string): string {
  return text.replace(/[\u0000-\u0009\u000b-\u001f]|\p{Surrogate}/gu, "\ufffd");
}

/** A text that Graphviz shows as it is: it reads backslashes and entities in labels. */
function escaped(text: string): string {
  return plain(text).replace(/\\/g, "\\\\").replace(/&(?=#?\w+;)/g, "&amp;").replace(/\n/g, "\\n");
}

const WORD = /^(?:[a-zA-Z_][a-zA-Z0-9_]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))$/;
const KEYWORD = /^(?:node|edge|graph|digraph|subgraph|strict)$/i;

/** A name, in quotes unless it is one word. */
function word(name: string): string {
  return quotedValue(name.replace(/\\/g, "\\\\").replace(/\n/g, " "));
}

/** A value whose backslashes stand for themselves to Graphviz. */
function quotedValue(value: string): string {
  return WORD.test(value) && !KEYWORD.test(value) ? value : `"${value.replace(/"/g, '\\"')}"`;
}
