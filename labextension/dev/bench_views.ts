/** Figures of the first pictures of graphs: `node bench_views.mjs FOLDER`, which holds snapshots as models.py writes them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import type { Positions } from "../src/layout/types.js";
import { GraphModel } from "../src/model/graph.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import { Store } from "../src/model/store.js";
import { visibleGraph, type VisibleGraph } from "../src/model/visible.js";
import type { Link } from "../src/model/links.js";
import { scene, type Picture } from "../src/render/scene.js";
import { toSvg } from "../src/render/svg.js";
import { LIGHT } from "../src/render/theme.js";
import { unpacked } from "../src/wire/columns.js";
import type { FromKernel } from "../src/wire/messages.js";
import { sizeAt } from "../src/render/paint.js";
import { cover, crossings, flips, labels, longestLine, zoomOf } from "./figures.js";

const STAGES = { wide: { width: 1280, height: 800 }, narrow: { width: 600, height: 600 } } as const;
/** Below this zoom the view closes what it has opened by itself. */
const LEGIBLE = 0.62;
/** Scopes that are opened, one at a time, to see what flips. */
const OPENED = 8;

interface Laid { readonly graph: VisibleGraph; readonly links: readonly Link[]; readonly positions: Positions }

function modelOf(path: string): GraphModel {
  const told = JSON.parse(readFileSync(`${path}.json`, "utf8")) as FromKernel;
  const message = unpacked(told, [0, 1].map((k) => readFileSync(`${path}.${k}.bin`)));
  const model = new GraphModel();
  if (message.kind === "snapshot") model.applySnapshot(message);
  return model;
}

function lay(model: GraphModel, isOpen: (path: string) => boolean, memory: LayoutMemory): Laid {
  const graph = visibleGraph(model, isOpen);
  const { root, links } = layoutJob(graph, roughMeasure);
  return { graph, links, positions: layoutTree(root, memory) };
}

function firstPicture(model: GraphModel, memory: LayoutMemory): { laid: Laid; isOpen: (path: string) => boolean } {
  const scopes = new OpenScopes(new Store(), {});
  scopes.begin(model.tree, model.bodies);
  const isOpen = (path: string): boolean => scopes.isOpen(path);
  const laid = lay(model, isOpen, memory);
  if (zoomOf(laid.positions, STAGES.wide) >= LEGIBLE || !scopes.retreat()) return { laid, isOpen };
  return { laid: lay(model, isOpen, memory), isOpen };
}

function flipsOnOpening(model: GraphModel, laid: Laid, isOpen: (path: string) => boolean, memory: LayoutMemory): number {
  const closed = [...laid.graph.boxes.values()].flatMap(({ scope, isOpen: open }) => (scope && !open ? [scope] : []));
  const chosen = closed.sort((a, b) => b.size - a.size).slice(0, OPENED);
  return Math.max(0, ...chosen.map(({ path }) => {
    const after = lay(model, (one) => one === path || isOpen(one), memory);
    lay(model, isOpen, memory);
    return flips(laid.graph, laid.positions, after.positions);
  }));
}

function pictureOf({ graph, links }: Laid): Picture {
  return { graph, links, devices: new Map(), selection: null, related: new Set(), marked: new Set(), stale: new Set() };
}

function figures(path: string): Record<string, number> {
  const model = modelOf(path);
  const memory = new LayoutMemory();
  const start = performance.now();
  const { laid, isOpen } = firstPicture(model, memory);
  const ms = Math.round(performance.now() - start);
  const picture = pictureOf(laid);
  const drawn = scene(picture, laid.positions, null, LIGHT);
  writeFileSync(`${path}.svg`, toSvg(drawn));
  const [wide, narrow] = [STAGES.wide, STAGES.narrow].map((stage) => ({
    zoom: zoomOf(laid.positions, stage), cover: cover(laid.graph, laid.positions, stage),
  }));
  if (!wide || !narrow) throw new Error("no stage");
  const [inWide, inNarrow] = [labels(drawn, wide.zoom, sizeAt), labels(drawn, narrow.zoom, sizeAt)];
  return {
    operations: model.nodes.size, boxes: laid.graph.boxes.size - 1,
    "most boxes of a level": Math.max(...[...laid.graph.boxes.values()].map(({ children }) => children.length)),
    crossings: crossings(laid.links, laid.positions), "longest line px": longestLine(laid.positions),
    "zoom at 1280": Math.round(100 * wide.zoom) / 100, "zoom at 600": Math.round(100 * narrow.zoom) / 100,
    "smallest label px at 1280": inWide.smallest, "smallest label px at 600": inNarrow.smallest,
    "labels of one letter": Math.max(inWide.cut, inNarrow.cut),
    "cover of width %": wide.cover.width, "cover of height %": wide.cover.height, "cover by boxes %": wide.cover.boxes,
    "flips on opening %": flipsOnOpening(model, laid, isOpen, memory), "first picture ms": ms,
  };
}

const folder = process.argv[2] ?? ".";
const names = readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
const found = Object.fromEntries(names.map((name) => [name, figures(join(folder, name))]));
process.stdout.write(JSON.stringify(found));
