/** Keeps the picture up to date: visible graph, layout, and what the stage needs to draw them. */
import { layoutJob, roughMeasure, type Measure } from "../layout/measure.js";
import { LayoutThread } from "../layout/thread.js";
import type { Positions } from "../layout/types.js";
import { relatedBoxes } from "../model/bodies.js";
import { devicesOf } from "../model/devices.js";
import type { GraphModel } from "../model/graph.js";
import { scopeBox, type BoxId } from "../model/ids.js";
import type { OpenScopes } from "../model/open_scopes.js";
import { markedBoxes, staleBoxes } from "../model/marked.js";
import { isolated } from "../model/isolate.js";
import { boxOf, type Selection } from "../model/selection.js";
import type { Store } from "../model/store.js";
import { endFinder, seenGraph, type VisibleGraph } from "../model/visible.js";
import { EdgePaths } from "../model/edge_paths.js";
import type { Picture } from "../render/scene.js";
import type { Sliced } from "../wire/sliced.js";
import type { Slicer } from "./slicer.js";

export type ShowPicture = (picture: Picture, positions: Positions, hold: BoxId | null) => void;

export class Composer {
  readonly #model: GraphModel;
  readonly #scopes: OpenScopes;
  readonly #selection: Selection;
  readonly #store: Store;
  /** Sizes of texts; set when the fonts are known. */
  measure: Measure = roughMeasure;
  readonly #thread: LayoutThread;
  readonly #slicer: Slicer;
  readonly #show: ShowPicture;
  #edgePaths: EdgePaths | null = null;
  #isBusy = false;
  /** Asked for while a layout was under way. */
  #next: { hold: BoxId | null } | null = null;

  constructor(model: GraphModel, scopes: OpenScopes, selection: Selection, store: Store, slicer: Slicer, show: ShowPicture, until: AbortSignal) {
    this.#store = store;
    this.#model = model;
    this.#scopes = scopes;
    this.#selection = selection;
    this.#slicer = slicer;
    this.#show = show;
    this.#thread = new LayoutThread(until);
  }

  /** Lays out anew; requests that come meanwhile become one. */
  refresh(hold: BoxId | null): void {
    if (this.#isBusy) {
      this.#next = { hold: hold ?? this.#next?.hold ?? null };
      return;
    }
    this.#isBusy = true;
    this.#slicer.soon(this.#compose(hold));
  }

  *#compose(hold: BoxId | null): Sliced<void> {
    const alone = boxOf(this.#model, this.#store.isolated === "" ? null : { name: this.#store.isolated, box: null });
    const whole = yield* seenGraph(this.#model, (path) => this.#scopes.isOpen(path));
    const graph = alone === null ? whole : isolated(whole, alone);
    yield;
    const { root, links } = layoutJob(graph, this.measure);
    yield;
    this.#thread.request(root, (positions) => {
      this.#isBusy = false;
      const devices = devicesOf(this.#model);
      this.#edgePaths = new EdgePaths(this.#model, graph, endFinder(this.#model, (path) => path === "" || isOpenIn(graph, path)));
      const [marked, stale] = [markedBoxes(this.#model), staleBoxes(this.#model)];
      this.#show({ graph, links, devices, ...this.selected(), marked, stale }, positions, hold);
      const next = this.#next;
      this.#next = null;
      if (next) this.refresh(next.hold);
    });
  }

  /** The lines of the picture that was shown last. */
  get edgePaths(): EdgePaths | null {
    return this.#edgePaths;
  }

  /** The selection, and what belongs to it. */
  selected(): Pick<Picture, "selection" | "related"> {
    const selection = this.#selection.box;
    const endOf = endFinder(this.#model, (path) => this.#scopes.isOpen(path));
    return { selection, related: relatedBoxes(this.#model, selection, endOf) };
  }
}

function isOpenIn(graph: VisibleGraph, path: string): boolean {
  return graph.boxes.get(scopeBox(path))?.isOpen ?? false;
}
