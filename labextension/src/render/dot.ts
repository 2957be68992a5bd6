/** The visible graph in Graphviz's language: open scopes are clusters, edges have counts and labels. Pure. */
import type { Edge } from "../model/edges.js";
import { ROOT, type BoxId } from "../model/ids.js";
import { sizeText, type Box, type VisibleGraph } from "../model/visible.js";

type Attributes = Readonly<Record<string, string | number | null>>;

export function toDot(graph: VisibleGraph, name: string): string {
  const names = new Map([...graph.boxes.keys()].map((id, k) => [id, `n${k}`]));
  const writer = new DotWriter(graph, names);
  return [
    `digraph ${quoted(name || "graph")} {`, "  compound=true; rankdir=TB;",
    `  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="Helvetica", fontsize=11];`,
    `  edge [fontname="Helvetica", fontsize=9, color="#7b848c"];`,
    ...writer.children(ROOT, "  "), ...graph.edges.map((edge) => writer.edge(edge)), "}", "",
  ].join("\n");
}

class DotWriter {
  readonly #graph: VisibleGraph;
  readonly #names: ReadonlyMap<BoxId, string>;

  constructor(graph: VisibleGraph, names: ReadonlyMap<BoxId, string>) {
    this.#graph = graph;
    this.#names = names;
  }

  children(id: BoxId, indent: string): string[] {
    return (this.#graph.boxes.get(id)?.children ?? []).flatMap((child) => {
      const box = this.#graph.boxes.get(child);
      if (!box) return [];
      return box.isOpen && box.children.length > 0 ? this.#cluster(box, indent) : [`${indent}${this.#nameOf(child)} ${attributes(nodeAttributes(box))};`];
    });
  }

  #cluster(box: Box, indent: string): string[] {
    const inner = `${indent}  `;
    return [
      `${indent}subgraph cluster_${this.#nameOf(box.id)} {`, `${inner}label=${quoted(box.name)}; style=rounded; color="#868e96";`,
      ...this.children(box.id, inner), `${indent}}`,
    ];
  }

  /** An end that is a cluster is told by a node inside: Graphviz cuts the line at the wall. */
  edge({ from, to, kind, count, label }: Edge): string {
    const [tail, head] = [this.#leafOf(from), this.#leafOf(to)];
    const told = [label, count > 1 ? `\u00d7${count}` : ""].filter(Boolean).join(" ");
    return `  ${this.#nameOf(tail)} -> ${this.#nameOf(head)} ${attributes({
      label: told || null, style: kind === "data" ? null : "dashed", constraint: kind === "return" ? "false" : null,
      ltail: tail === from ? null : `cluster_${this.#nameOf(from)}`, lhead: head === to ? null : `cluster_${this.#nameOf(to)}`,
    })};`;
  }

  #leafOf(id: BoxId): BoxId {
    let at = id;
    for (let box = this.#graph.boxes.get(at); box?.isOpen && box.children[0] !== undefined; box = this.#graph.boxes.get(at)) at = box.children[0];
    return at;
  }

  #nameOf(id: BoxId): string {
    return this.#names.get(id) ?? "n";
  }
}

function nodeAttributes(box: Box): Attributes {
  const { node, isVariable } = box;
  const second = node ? box.kind : sizeText(box);
  const label = second && second !== box.name ? `${box.name}\n${second}` : box.name;
  if (isVariable) return { label, shape: "cylinder", style: "filled", fillcolor: "#fbf3e0" };
  if (node?.type.startsWith("Placeholder")) return { label, shape: "parallelogram", style: "filled", fillcolor: "#e3f0fb" };
  return node ? { label } : { label, fillcolor: "#f1f3f5", peripheries: 2 };
}

function attributes(told: Attributes): string {
  const parts = Object.entries(told).flatMap(([name, value]) => (value === null ? [] : [`${name}=${typeof value === "number" ? value : quoted(value)}`]));
  return parts.length > 0 ? `[${parts.join(", ")}]` : "";
}

/** A text in quotes: nothing of it is read as anything else. */
function quoted(text: string): string {
  const plain = text.replace(/[\u0000-\u0009\u000b-\u001f]|\p{Surrogate}/gu, "\ufffd");
  return `"${plain.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}
