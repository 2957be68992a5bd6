/** Shows the picture: asks for it, and puts it on the stage. */
import { scopesToClose } from "../layout/closing.js";
import { ROOM, type Positions } from "../layout/types.js";
import type { GraphModel } from "../model/graph.js";
import type { OpenScopes } from "../model/open_scopes.js";
import type { Selection } from "../model/selection.js";
import type { Store } from "../model/store.js";
import type { Signal } from "../model/signal.js";
import type { Picture } from "../render/scene.js";
import { Composer, type ShowPicture } from "./composer.js";
import type { Navigation } from "./navigation.js";
import type { Stage } from "./stage.js";
import type { Slicer } from "./slicer.js";
import { canvasMeasure } from "./text_width.js";

interface Around {
  readonly model: GraphModel;
  readonly scopes: OpenScopes;
  readonly selection: Selection;
  readonly store: Store;
  readonly navigation: Navigation;
  readonly stage: Stage;
  readonly shown: Signal<Picture>;
  readonly slicer: Slicer;
}

export class Display {
  readonly #around: Around;
  readonly #composer: Composer;

  constructor(around: Around, until: AbortSignal) {
    this.#around = around;
    this.#composer = new Composer(around.model, around.scopes, around.selection, around.store, around.slicer, this.#show, until);
  }

  refresh(): void {
    const { stage, navigation } = this.#around;
    if (!stage.isShown) return;
    this.#composer.refresh(navigation.takeHold());
  }

  /** Shows what is selected, in the same picture. */
  select(): void {
    this.#around.stage.setSelection(this.#composer.selected());
  }

  setFont(family: string): void {
    this.#composer.measure = canvasMeasure(family);
  }

  /** Closes what was opened by itself where a fitted picture could not be read; whether it did. */
  #close({ graph }: Picture, positions: Positions): boolean {
    const { stage, scopes, selection } = this.#around;
    if (!stage.isFitted) return false;
    const paths = scopesToClose(graph, positions, ROOM, selection.box, (path) => scopes.isAutomatic(path));
    scopes.close(paths);
    return paths.length > 0;
  }

  readonly #show: ShowPicture = (picture, positions, hold) => {
    const { stage, navigation, shown } = this.#around;
    if (hold === null && this.#close(picture, positions)) return this.refresh();
    navigation.graph = picture.graph;
    stage.running.edgePaths = this.#composer.edgePaths;
    const { sought } = navigation;
    stage.show({ ...picture, ...this.#composer.selected() }, positions, hold, sought);
    stage.renewRunning();
    if (positions.boxes.has(sought ?? "")) navigation.found();
    // Where a step is held stays in sight when the picture is laid out anew.
    const { held } = stage.running;
    if (held !== null) navigation.keepInSight(held);
    shown.emit(picture);
  };
}
