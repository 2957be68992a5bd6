/**
 * The saved picture's entry: from operations to an SVG document, without a page. Python runs it for the notebook's
 * file; model, layout and draw list are those of the live view, so both speak one language.
 */
import { layoutJob, roughMeasure } from "./layout/measure.js";
import { LayoutMemory, layoutTree } from "./layout/tree.js";
import { devicesOf } from "./model/devices.js";
import { plural } from "./model/figures.js";
import { GraphModel } from "./model/graph.js";
import { ROOT } from "./model/ids.js";
import { markedBoxes, staleBoxes } from "./model/marked.js";
import { OpenScopes } from "./model/open_scopes.js";
import { Store } from "./model/store.js";
import { visibleGraph, type VisibleGraph } from "./model/visible.js";
import { scene, type Picture } from "./render/scene.js";
import { toDot } from "./render/dot.js";
import { toSvg } from "./render/svg.js";
import { DARK, LIGHT } from "./render/theme.js";
import { nodesOf } from "./wire/columns.js";
import { PROTOCOL, type Columns, type Node, type Snapshot } from "./wire/messages.js";

/** What is asked for; `numbers` are those of the columns, `open` holds paths of scopes. */
export interface Request {
  readonly columns: Columns;
  readonly numbers: readonly number[];
  readonly open: readonly string[];
  readonly title: string;
}

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

/** Returns what the picture would show in Graphviz's language. */
export function dot(request: string): string {
  const { graph, title } = seen(request);
  return toDot(graph, title);
}

/** The boxes that the picture for a request shows. */
function seen(request: string): { readonly model: GraphModel; readonly graph: VisibleGraph; readonly title: string } {
  const { columns, numbers, open, title } = JSON.parse(request) as Request;
  const nodes = nodesOf(columns, Int32Array.from(numbers));
  const model = new GraphModel();
  model.applySnapshot(snapshotOf(nodes, title));
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model);
  scopes.reveal(open.flatMap((path) => model.tree.ancestry(path)));
  return { model, graph: visibleGraph(model, (path) => scopes.isOpen(path)), title };
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
