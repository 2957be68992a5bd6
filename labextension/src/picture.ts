/**
 * The saved picture's entry: from operations to an SVG document, without a page. Python runs it for the notebook's
 * file; model, layout and draw list are those of the live view, so both speak one language.
 */
import { layoutJob, roughMeasure } from "./layout/measure.js";
import { LayoutMemory, layoutTree } from "./layout/tree.js";
import { devicesOf } from "./model/devices.js";
import { plural } from "./model/figures.js";
import { GraphModel } from "./model/graph.js";
import { opBox, opOf, pathOf, ROOT, scopeBox, type BoxId } from "./model/ids.js";
import { isolated } from "./model/isolate.js";
import { markedBoxes, staleBoxes } from "./model/marked.js";
import { OpenScopes } from "./model/open_scopes.js";
import { Store } from "./model/store.js";
import { visibleGraph, type VisibleGraph } from "./model/visible.js";
import { scene, type Picture } from "./render/scene.js";
import { digraph, dotText } from "./render/dot.js";
import { toSvg } from "./render/svg.js";
import { DARK, LIGHT } from "./render/theme.js";
import { nodesOf } from "./wire/columns.js";
import { PROTOCOL, type Columns, type Node, type Snapshot } from "./wire/messages.js";

/** What is asked for. */
export interface Request {
  readonly columns: Columns;
  /** Those of the columns. */
  readonly numbers: readonly number[];
  /** Paths of scopes that are open, with those around them; ALL for all. */
  readonly open: readonly string[];
  readonly title: string;
  /** Whether nothing else is open; else what a first look opens is too. */
  readonly isExact?: boolean;
  /** What the user has opened and closed, by path. */
  readonly chosen?: Readonly<Record<string, boolean>>;
  /** The name of what is shown alone; "" for all. */
  readonly isolated?: string;
  /** The session's devices: each has the colour that it has in the live view. */
  readonly devices?: readonly string[];
  /** Whether the topmost scopes are parts of devices. */
  readonly isCut?: boolean;
}

const ALL = "*";

/** Names of boxes that a description tells. */
const TOLD = 12;

/** Returns the picture for a request, which is a `Request` as JSON. */
export function svg(request: string): string {
  const { model, graph, title } = seen(request);
  const { root, links } = layoutJob(graph, roughMeasure);
  const positions = layoutTree(root, new LayoutMemory());
  const picture: Picture = {
    graph, links, devices: devicesOf(model), selection: null, related: new Set(),
    marked: markedBoxes(model), stale: staleBoxes(model),
  };
  const around = { title, note: noteOf(model, graph), devices: picture.devices, description: descriptionOf(model, graph) };
  return toSvg(scene(picture, positions, null, LIGHT), around, scene(picture, positions, null, DARK));
}

/** Returns what the picture would show in Graphviz's language: the parts of a digraph, its text, and unknown scopes, as JSON. */
export function dot(request: string): string {
  const { model, graph, title } = seen(request);
  const { devices = [], open } = JSON.parse(request) as Request;
  const parts = digraph(model, graph, devicesOf({ session: { devices }, nodes: model.nodes }), title);
  const unknown = open.filter((path) => path !== ALL && !model.tree.get(path));
  return JSON.stringify({ ...parts, text: dotText(parts), unknown });
}

/** The boxes that the picture for a request shows. */
function seen(request: string): { readonly model: GraphModel; readonly graph: VisibleGraph; readonly title: string } {
  const { columns, numbers, open, title, chosen = {}, isolated: alone = "", isCut = false, isExact = false } = JSON.parse(request) as Request;
  const nodes = nodesOf(columns, Int32Array.from(numbers));
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes, title));
  const store = new Store();
  const scopes = new OpenScopes(store, {});
  store.setOpened(new Map(Object.entries(chosen)), scopes);
  if (!isExact) scopes.begin(model);
  if (isCut && !isExact) scopes.revealParts(model.tree);
  const box = alone === "" ? null : boxNamed(model, alone);
  const isAll = open.includes(ALL);
  const around = box === null ? [] : [pathOf(box) ?? model.tree.homeOf(opOf(box) ?? -1).path];
  scopes.reveal([...open, ...around].flatMap((path) => model.tree.ancestry(path)));
  const graph = visibleGraph(model, (path) => isAll || scopes.isOpen(path));
  return { model, graph: box === null ? graph : isolated(graph, box), title };
}

/** The box of an operation's name, or of a scope's path with a slash behind it. */
function boxNamed(model: GraphModel, name: string): BoxId {
  return name.endsWith("/") ? scopeBox(name.slice(0, -1)) : opBox(model.tree.idOf(name) ?? -1);
}

function snapshotOf(nodes: readonly Node[], name: string): Snapshot {
  return {
    kind: "snapshot", seq: 0, view: 0, protocol: PROTOCOL, graph_name: name, session: null, run: null, control: "live", level: "graph",
    silence_s: 0, trace: null, history: null, graph: { version: 0, added: nodes, placed: [], changed: [], removed: [], marked: [], fetches: [] },
  };
}

/** What is not seen, in a few words. */
function noteOf(model: GraphModel, graph: VisibleGraph): string {
  if (model.nodes.size === 0) return "no operations yet";
  let seen = 0;
  for (const box of graph.boxes.values()) if (box.node) seen += 1;
  const closed = model.nodes.size - seen;
  return closed > 0 ? `${plural(closed, "operation")} in closed scopes` : "";
}

function descriptionOf(model: GraphModel, graph: VisibleGraph): string {
  const top = graph.boxes.get(ROOT)?.children ?? [];
  const names = top.map((id) => graph.boxes.get(id)?.name ?? "");
  const more = names.length > TOLD ? ` and ${names.length - TOLD} more` : "";
  return `${plural(model.nodes.size, "operation")}. At the top level: ${names.slice(0, TOLD).join(", ")}${more}`;
}
