/** One output: the live widget while its kernel lives, else the saved picture. */
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import { Panel, Widget } from "@lumino/widgets";
import { make } from "../view/dom.js";
import { numbersOf, type Packed } from "../wire/packing.js";
import type { Sliced } from "../wire/sliced.js";
import { OPEN_EVENT, REOPEN_EVENT } from "../view/host.js";
import { CommModel } from "./comm_model.js";
import type { LiveModels } from "./live_models.js";
import { openPanels, rememberOpen } from "./open_panels.js";
import { WIDGET_MIME_TYPE, readSavedView, snapshotIn, svgAddress, type SavedView } from "./saved_view.js";

/** What shows graphs: loaded with the first view. */
export type Core = typeof import("./core.js");
export const core = (): Promise<Core> => import("./core.js");

const NOTE = "Saved picture \u2013 run the cell for the live view";
const BUSY = "Kernel busy, reconnecting \u2026";
/** A widget's manager that has not brought it by then waits for the kernel. */
const PATIENCE_MS = 800;
/** What the widget renderer writes where it cannot show a widget. */
const FAILED = "Error displaying widget";

export type MakeRenderer = (mimeType: string) => IRenderMime.IRenderer;

export class ViewOutput extends Panel implements IRenderMime.IRenderer {
  readonly #mimeType: string;
  readonly #live: LiveModels;
  readonly #makeRenderer: MakeRenderer;
  readonly #life = new AbortController();
  #view: SavedView | null = null;
  #shown: "nothing" | "live" | "direct" | "saved" = "nothing";
  /** Ends the attempt to ask a busy kernel directly, or what it shows. */
  #direct: AbortController | null = null;
  /** The widget that its manager is to bring, by its model; null where none is waited for. */
  #coming: string | null = null;
  /** Whether it lets wait: its manager asks a kernel that is busy. */
  #isLate = false;
  /** Ends what is shown now. */
  #showing = new AbortController();

  constructor(mimeType: string, live: LiveModels, makeRenderer: MakeRenderer) {
    super();
    this.#mimeType = mimeType;
    this.#live = live;
    this.#makeRenderer = makeRenderer;
    live.changed.connect(() => this.#choose(), this.#life.signal);
    this.node.addEventListener(OPEN_EVENT, (event) => {
      if (this.#view) rememberOpen(this.#view.modelId, (event as CustomEvent<readonly string[]>).detail);
    }, { signal: this.#life.signal });
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const before = this.#view;
    this.#view = readSavedView(model.data[this.#mimeType]);
    // A new picture of the same view: the live one goes on.
    const isSame = before?.modelId === this.#view.modelId && (this.#shown === "live" || this.#coming !== null);
    if (!isSame) this.#shown = "nothing";
    this.#choose();
    return Promise.resolve();
  }

  override dispose(): void {
    this.#life.abort();
    this.#showing.abort();
    super.dispose();
  }

  #choose(): void {
    const view = this.#view;
    if (!view || this.isDisposed) return;
    const wanted = view.modelId !== "" && this.#live.has(view.modelId) ? "live" : "saved";
    const isShown = wanted === this.#shown || (wanted === "saved" && this.#shown === "direct" && this.#live.silentKernel !== null);
    const isComing = wanted === "live" && this.#coming === view.modelId;
    if (isShown || isComing) return this.#tryDirect(view);
    if (wanted === "live") this.#showLive(view);
    else this.#showSaved(view);
    this.#tryDirect(view);
  }

  /** While a kernel is busy and does not tell of its widgets, the view is asked directly: it answers if it is there. */
  #tryDirect(view: SavedView): void {
    const kernel = this.#isLate ? this.#live.kernel : this.#live.silentKernel;
    if (this.#direct || !kernel || view.modelId === "" || this.#shown === "live" || this.#shown === "direct") return;
    const model = new CommModel(kernel, view.modelId);
    const host = new Widget();
    const life = this.#direct = new AbortController();
    const answered = (): void => {
      model.off("msg:custom", answered);
      if (this.#shown === "live" || this.isDisposed) return;
      this.#clear(this.#coming === null ? null : (this.widgets.at(-1) ?? null));
      this.#shown = "direct";
      this.insertWidget(0, host);
      this.#reopen(host, view);
      this.#showing.signal.addEventListener("abort", () => life.abort(), { once: true });
    };
    this.#life.signal.addEventListener("abort", () => life.abort(), { once: true });
    life.signal.addEventListener("abort", () => {
      this.#direct = null;
      setTimeout(() => model.dispose()); // it has yet to say that it leaves
    }, { once: true });
    model.on("msg:custom", answered);
    void core().then(({ render }) => {
      if (!life.signal.aborted) render({ model, el: host.node, signal: life.signal });
    });
  }

  /** Ends what is shown, but for one widget. */
  #clear(kept: Widget | null = null): void {
    this.#showing.abort();
    this.#showing = new AbortController();
    if (kept === null) [this.#coming, this.#isLate] = [null, false];
    for (const widget of [...this.widgets]) if (widget !== kept) widget.dispose();
  }

  /**
   * The widget. What is shown stays until the widget's manager has brought it; where that waits for a busy kernel, the view
   * is asked directly.
   */
  #showLive(view: SavedView): void {
    if (this.#shown === "nothing") this.#clear();
    this.#coming = view.modelId;
    const renderer = this.#makeRenderer(WIDGET_MIME_TYPE);
    renderer.setHidden(this.#shown !== "nothing");
    this.addWidget(renderer);
    const isIt = (): boolean => this.#coming === view.modelId && !renderer.isDisposed;
    const observer = new MutationObserver(() => {
      if (renderer.node.textContent?.startsWith(FAILED)) this.#showSaved(view);
      else if (isIt() && renderer.node.querySelector(".fs-view")) this.#takeOver(renderer, view);
    });
    observer.observe(renderer.node, { childList: true, characterData: true, subtree: true });
    renderer.disposed.connect(() => observer.disconnect());
    setTimeout(() => {
      if (!isIt()) return;
      this.#isLate = true;
      this.#tryDirect(view);
    }, PATIENCE_MS);
    const data = { version_major: 2, version_minor: 0, model_id: view.modelId };
    renderer.renderModel(mimeModel({ [WIDGET_MIME_TYPE]: data })).catch(() => this.#showSaved(view));
  }

  #takeOver(renderer: Widget, view: SavedView): void {
    this.#clear(renderer);
    this.#direct?.abort();
    [this.#coming, this.#isLate, this.#shown] = [null, false, "live"];
    renderer.show();
    this.#reopen(renderer, view);
  }

  /** Opens the panels that were open before the page was reloaded, or another one took over. */
  #reopen({ node }: Widget, { modelId }: SavedView): void {
    const detail = openPanels(modelId);
    if (detail) node.querySelector(".fs-view")?.dispatchEvent(new CustomEvent(REOPEN_EVENT, { detail }));
  }

  #showSaved(view: SavedView): void {
    this.#clear();
    this.#shown = "saved";
    const shown = view.snapshot || view.packed ? new SavedApp(view) : new Widget({ node: picture(view) });
    this.addWidget(shown);
    const note = (): void => {
      if (shown instanceof SavedApp) shown.say(view.modelId !== "" && this.#live.silentKernel ? BUSY : NOTE);
    };
    note();
    this.#live.changed.connect(note, this.#showing.signal);
  }
}

/** The rendering core on a saved snapshot: one may look around, but nothing runs. */
export class SavedApp extends Widget {
  readonly #view: SavedView;
  readonly #life = new AbortController();
  #app: InstanceType<Core["App"]> | null = null;
  #note = NOTE;

  constructor(view: SavedView) {
    super();
    this.#view = view;
  }

  say(note: string): void {
    this.#note = note;
    this.#app?.session.say(note, true);
  }

  /** Sizes come from fonts, which are known once the node is in the page. */
  protected override onAfterAttach(): void {
    const { packed } = this.#view;
    // What cannot be read is found to be none when it is shown.
    const read = packed === "" ? null : numbersOf(packed).catch(() => null);
    void Promise.all([core(), read]).then(([loaded, found]) => this.#show(loaded, found));
  }

  #show({ App }: Core, packed: Packed | null): void {
    if (this.node.childElementCount > 0 || this.#life.signal.aborted) return;
    const showing = new AbortController();
    this.#life.signal.addEventListener("abort", () => showing.abort(), { once: true });
    const app = this.#app = new App(this.node, null, showing.signal);
    app.slicer.later(this.#filled(app, packed, showing));
  }

  *#filled(app: InstanceType<Core["App"]>, packed: Packed | null, showing: AbortController): Sliced<void> {
    try {
      const snapshot = yield* snapshotIn(this.#view, packed);
      yield* app.model.takeSnapshot({ ...snapshot, session: null });
      app.session.say(this.#note, true);
    } catch {
      // The file may hold a snapshot that is broken; the picture still serves.
      this.#app = null;
      showing.abort();
      this.node.replaceChildren(picture(this.#view));
    }
  }

  override dispose(): void {
    this.#life.abort();
    super.dispose();
  }
}

function picture(view: SavedView): HTMLElement {
  const content = view.svg
    ? make("img", { src: svgAddress(view.svg), alt: view.text || "graph" })
    : make("pre", {}, view.text);
  return make("figure", { class: "fs-saved", "data-testid": "fs-saved" }, content, make("figcaption", {}, NOTE));
}

function mimeModel(data: IRenderMime.IMimeModel["data"]): IRenderMime.IMimeModel {
  return { data, metadata: {}, trusted: true, setData: () => undefined };
}
