/**
 * Cuts data edges at the walls of open scopes. What leaves one box runs as one line: it passes each
 * wall through one port and fans out behind it. So an edge becomes a link in every scope it crosses,
 * and edges with the same source share their links.
 */
import { ROOT, type BoxId } from "./ids.js";
import type { Edge } from "./edges.js";
import type { VisibleGraph } from "./visible.js";

export interface Link {
  /** "scope|from|to|source"; an end that is a wall is empty. */
  readonly id: string;
  /** The open scope in which the link lies. */
  readonly scope: BoxId;
  /** The visible box that the data comes from, maybe far outside; it names the ports. */
  readonly source: BoxId;
  /** A child of the scope, or null for a port in the scope's upper wall. */
  readonly from: BoxId | null;
  /** A child of the scope, or null for a port in the scope's lower wall. */
  readonly to: BoxId | null;
  /** The visible boxes that the data goes to, maybe far outside. */
  readonly targets: readonly BoxId[];
  readonly count: number;
  readonly label: string;
}

type Growing = { -readonly [K in keyof Link]: Link[K] } & { targets: BoxId[] };

export function linksOf(graph: VisibleGraph): Link[] {
  const links = new Map<string, Growing>();
  const chains = chainFinder(graph);
  for (const edge of graph.edges) {
    if (edge.kind === "data") cut(edge, chains(edge.from), chains(edge.to), links);
  }
  return [...links.values()];
}

/** From a box to itself and all boxes around it, the root last. */
function chainFinder(graph: VisibleGraph): (box: BoxId) => readonly BoxId[] {
  const known = new Map<BoxId, BoxId[]>();
  return (box) => {
    const found = known.get(box);
    if (found) return found;
    const chain: BoxId[] = [];
    for (let at: BoxId | null = box; at !== null; at = graph.boxes.get(at)?.parent ?? null) chain.push(at);
    known.set(box, chain);
    return chain;
  };
}

function cut(edge: Edge, up: readonly BoxId[], down: readonly BoxId[], links: Map<string, Growing>): void {
  let shared = 0;
  while (up[up.length - 1 - shared] === down[down.length - 1 - shared] && shared < up.length) shared += 1;
  const outer = up.length - shared;
  const inner = down.length - shared;
  for (let i = 1; i < outer; i++) extend(links, edge, up[i] ?? ROOT, up[i - 1] ?? null, null);
  extend(links, edge, up[outer] ?? ROOT, up[outer - 1] ?? null, down[inner - 1] ?? null);
  for (let i = inner - 1; i >= 1; i--) extend(links, edge, down[i] ?? ROOT, null, down[i - 1] ?? null);
}

function extend(
  links: Map<string, Growing>, edge: Edge, scope: BoxId, from: BoxId | null, to: BoxId | null,
): void {
  const id = `${scope}|${from ?? ""}|${to ?? ""}|${edge.from}`;
  const known = links.get(id);
  if (!known) {
    links.set(id, {
      id, scope, source: edge.from, from, to, targets: [edge.to], count: edge.count, label: edge.label,
    });
    return;
  }
  known.targets.push(edge.to);
  known.count += edge.count;
  if (known.label !== edge.label) known.label = "";
}
