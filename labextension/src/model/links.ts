/**
 * Cuts edges at the walls of open scopes. What leaves one box runs as one line: it passes each
 * wall through one port and fans out behind it. So an edge becomes a link in every scope it crosses,
 * and edges with the same source share their links. A return leaves the body of its loop, runs back
 * outside, and enters from above.
 */
import { ROOT, type BoxId } from "./ids.js";
import type { Edge, EdgeKind } from "./edges.js";
import type { VisibleGraph } from "./visible.js";

export interface Link {
  /** "scope|from|to|source", and "|kind" of what is not data; an end that is a wall is empty. */
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
  readonly kind: LinkKind;
  readonly count: number;
  /** Bytes of all that it carries, as far as shapes are known. */
  readonly bytes: number;
  readonly label: string;
}

export type LinkKind = Exclude<EdgeKind, "control">;

type Growing = { -readonly [K in keyof Link]: Link[K] } & { targets: BoxId[] };

export function linksOf(graph: VisibleGraph): Link[] {
  const links = new Map<string, Growing>();
  const chains = chainFinder(graph);
  for (const edge of graph.edges) {
    if (edge.kind === "control" || edge.isStub) continue;
    for (const { scope, from, to, kind } of cut(edge, edge.kind, chains(edge.from), chains(edge.to))) {
      extend(links, edge, kind, scope, from, to);
    }
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

type Piece = Pick<Link, "scope" | "from" | "to" | "kind">;

/** The pieces of an edge from its start to its end; only the middle one is more than data. */
function cut(edge: Edge, kind: LinkKind, up: readonly BoxId[], down: readonly BoxId[]): Piece[] {
  const shared = edge.frame === null ? sharedEnd(up, down) : up.length - up.indexOf(edge.frame);
  const outer = up.length - shared;
  const inner = down.length - shared;
  const pieces: Piece[] = [];
  for (let i = 1; i < outer; i++) pieces.push({ scope: up[i] ?? ROOT, from: up[i - 1] ?? null, to: null, kind: "data" });
  pieces.push({ scope: up[outer] ?? ROOT, from: up[outer - 1] ?? null, to: down[inner - 1] ?? null, kind });
  for (let i = inner - 1; i >= 1; i--) pieces.push({ scope: down[i] ?? ROOT, from: null, to: down[i - 1] ?? null, kind: "data" });
  return pieces;
}

function sharedEnd(up: readonly BoxId[], down: readonly BoxId[]): number {
  let shared = 0;
  while (up[up.length - 1 - shared] === down[down.length - 1 - shared] && shared < up.length) shared += 1;
  return shared;
}

function extend(
  links: Map<string, Growing>, edge: Edge, kind: LinkKind, scope: BoxId, from: BoxId | null, to: BoxId | null,
): void {
  const id = linkId(edge.from, { scope, from, to, kind });
  const known = links.get(id);
  if (!known) {
    links.set(id, {
      id, scope, source: edge.from, from, to, kind, targets: [edge.to], count: edge.count, bytes: edge.bytes, label: edge.label,
    });
    return;
  }
  known.targets.push(edge.to);
  known.count += edge.count;
  known.bytes += edge.bytes;
  if (known.label !== edge.label) known.label = "";
}

function linkId(source: BoxId, { scope, from, to, kind }: Piece): string {
  return `${scope}|${from ?? ""}|${to ?? ""}|${source}${kind === "data" ? "" : `|${kind}`}`;
}

/** The ids of the links that an edge runs through, in order. */
export function edgePathsOf(graph: VisibleGraph): (edge: Edge) => readonly string[] {
  const chains = chainFinder(graph);
  return (edge) => edge.kind === "control" ? []
    : cut(edge, edge.kind, chains(edge.from), chains(edge.to)).map((piece) => linkId(edge.from, piece));
}
