/** Figures of the first pictures of graphs: `node bench_views.mjs FOLDER`, which holds snapshots as models.py writes them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { scopesToClose } from "../src/layout/closing.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import type { Positions } from "../src/layout/types.js";
import { GraphModel } from "../src/model/graph.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import { Store } from "../src/model/store.js";
import { visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import type { Link } from "../src/model/links.js";
import { scene, type Picture } from "../src/render/scene.js";
import { toSvg } from "../src/render/svg.js";
import type { Scene } from "../src/render/marks.js";
import { LIGHT } from "../src/render/theme.js";
import { unpacked } from "../src/wire/columns.js";
import type { FromKernel } from "../src/wire/messages.js";
import { cover, crossings, flips, labels, longestLine, roomOf, zoomOf, type Labels, type StageSize } from "./figures.js";

const STAGES = { wide: { width: 1280, height: 800 }, narrow: { width: 600, height: 600 } } as const;
/** A picture is fitted at this zoom at least; what does not fit then is reached by panning. */
const LEGIBLE = 0.62;
/** Scopes that are opened, one at a time, to see what flips. */
const OPENED = 8;

interface Laid { readonly graph: VisibleGraph; readonly links: readonly Link[]; readonly positions: Positions }

interface First { readonly laid: Laid; readonly isOpen: (path: string) => boolean; readonly memory: LayoutMemory }

function modelOf(path: string): GraphModel {
  const told = JSON.parse(readFileSync(`${path}.json`, "utf8")) as FromKernel;
  const message = unpacked(told, [0, 1].map((k) => readFileSync(`${path}.${k}.bin`)));
  const model = new GraphModel();
  if (message.kind === "snapshot") model.applySnapshot(message);
  return model;
}

function lay(model: GraphModel, isOpen: (path: string) => boolean, memory: LayoutMemory, stage: StageSize): Laid {
  const graph = visibleGraph(model, isOpen);
  const { root, links } = layoutJob(graph, roughMeasure, roomOf(stage));
  return { graph, links, positions: layoutTree(root, memory) };
}

/** As a view of that size shows it: what cannot be read is shown with closed scopes. */
function firstPicture(model: GraphModel, stage: StageSize): First {
  const memory = new LayoutMemory();
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model);
  const isOpen = (path: string): boolean => scopes.isOpen(path);
  for (;;) {
    const laid = lay(model, isOpen, memory, stage);
    const closed = scopesToClose(laid.graph, laid.positions, roomOf(stage), null, (path) => scopes.isAutomatic(path));
    if (closed.length === 0) return { laid, isOpen, memory };
    scopes.close(closed);
  }
}

function flipsOnOpening(model: GraphModel, { laid, isOpen, memory }: First, stage: StageSize): number {
  const closed = [...laid.graph.boxes.values()].flatMap(({ scope, isOpen: open }) => (scope && !open ? [scope] : []));
  const chosen = closed.sort((a, b) => b.size - a.size).slice(0, OPENED);
  return Math.max(0, ...chosen.map(({ path }) => {
    const after = lay(model, (one) => one === path || isOpen(one), memory, stage);
    lay(model, isOpen, memory, stage);
    return flips(laid.graph, laid.positions, after.positions);
  }));
}

function pictureOf({ graph, links }: Laid): Picture {
  return { graph, links, devices: new Map(), selection: null, related: new Set(), marked: new Set(), stale: new Set() };
}

interface Seen extends First { readonly zoom: number; readonly drawn: Scene; readonly size: Labels }

function seen(model: GraphModel, stage: StageSize): Seen {
  const first = firstPicture(model, stage);
  const drawn = scene(pictureOf(first.laid), first.laid.positions, null, LIGHT);
  // What does not fit at a zoom at which names can be read is reached by panning.
  const zoom = zoomOf(first.laid.positions, stage);
  return { ...first, zoom, drawn, size: labels(drawn, Math.max(LEGIBLE, zoom)) };
}

function figures(path: string): Record<string, number> {
  const start = process.cpuUsage();
  const model = modelOf(path);
  const wide = seen(model, STAGES.wide);
  const ms = Math.round(process.cpuUsage(start).user / 1000);
  const narrow = seen(model, STAGES.narrow);
  writeFileSync(`${path}.svg`, toSvg(wide.drawn));
  writeFileSync(`${path}.narrow.svg`, toSvg(narrow.drawn));
  const { graph, links, positions } = wide.laid;
  const filled = cover(graph, positions, STAGES.wide);
  return {
    operations: model.nodes.size, boxes: graph.boxes.size - 1,
    "most boxes of a level": Math.max(...[...graph.boxes.values()].map(({ children }) => children.length)),
    crossings: crossings(links, positions), "longest line px": longestLine(positions),
    "zoom at 1280": Math.round(100 * wide.zoom) / 100, "zoom at 600": Math.round(100 * narrow.zoom) / 100,
    "smallest label px at 1280": wide.size.smallest, "smallest label px at 600": narrow.size.smallest,
    "names cut to a letter": Math.max(wide.size.cut, narrow.size.cut),
    "second lines left out at 1280": wide.size.omitted, "at 600": narrow.size.omitted,
    "cover of width %": filled.width, "cover of height %": filled.height, "cover by boxes %": filled.boxes,
    "flips on opening %": flipsOnOpening(model, wide, STAGES.wide), "first picture ms": ms,
  };
}

const folder = process.argv[2] ?? ".";
const names = readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
const found = Object.fromEntries(names.map((name) => [name, figures(join(folder, name))]));
process.stdout.write(JSON.stringify(found));
