/** The parts of a view as panels that split, close and are remembered. */
import { DockPanelSvg } from "@jupyterlab/ui-components";
import { type Message, MessageLoop } from "@lumino/messaging";
import { type DockPanel, Widget } from "@lumino/widgets";
import type { Arrangement, Part } from "../view/arrangement.js";
import { elementsIn } from "../view/arrangement.js";
import type { Drawers } from "../view/drawers.js";
import { firstLayout, idsOf, known, STAGE, type Area } from "./dock_layout.js";

export interface LayoutMemory {
  read(): Area | null;
  write(area: Area): void;
}

class DockPart extends Widget {
  readonly #element: HTMLElement;
  readonly #closed: () => void;
  /** What holds the element while it is closed; null where it is not in the page then. */
  readonly #home: HTMLElement | null;

  constructor(id: string, title: string, element: HTMLElement, closed: (() => void) | null, home: HTMLElement | null = null) {
    super();
    this.#element = element;
    this.#home = home;
    this.id = `fs-dock-${id}`;
    this.addClass("fs-dock-part");
    this.toggleClass("fs-dock-stage", id === STAGE);
    this.title.label = title;
    this.title.closable = closed !== null;
    this.#closed = closed ?? (() => undefined);
    (home ?? this.node).append(element);
  }

  protected override onBeforeAttach(_: Message): void {
    this.node.append(this.#element);
  }

  protected override onAfterDetach(_: Message): void {
    this.#home?.append(this.#element);
  }

  protected override onCloseRequest(): void {
    this.parent = null;
    this.#closed();
  }
}

/** Panels around the stage, placed as they were left. */
export class DockArrangement implements Arrangement {
  readonly isDocked = true;
  readonly #memory: LayoutMemory;

  constructor(memory: LayoutMemory) {
    this.#memory = memory;
  }

  place(root: HTMLElement, stage: HTMLElement, parts: readonly Part[], drawers: Drawers, until: AbortSignal): void {
    root.append(...elementsIn(parts, "top"));
    const dock = new DockPanelSvg({ mode: "multiple-document", spacing: 3 });
    const widgets = new Map<string, DockPart>([[STAGE, new DockPart(STAGE, "Graph", stage, null)]]);
    for (const { id, title, region, isAlwaysInPage, element } of parts) {
      const isPanel = region === "left" || region === "right" || region === "below";
      const home = isAlwaysInPage ? root : null;
      if (isPanel) widgets.set(id, new DockPart(id, title, element, () => drawers.setOpen(id, false), home));
    }
    Widget.attach(dock, root);
    this.#restore(dock, widgets, root.clientWidth);
    for (const [id, widget] of widgets) if (id !== STAGE) drawers.setOpen(id, widget.parent !== null);
    drawers.changed.connect((id) => show(dock, widgets, id, drawers.isOpen(id)), until);
    dock.layoutModified.connect(() => this.#remember(dock));
    const observer = new ResizeObserver(() => MessageLoop.postMessage(dock, Widget.ResizeMessage.UnknownSize));
    observer.observe(dock.node);
    until.addEventListener("abort", () => {
      observer.disconnect();
      dock.dispose();
      for (const widget of widgets.values()) widget.dispose();
    }, { once: true });
  }

  #restore(dock: DockPanel, widgets: ReadonlyMap<string, DockPart>, width_px: number): void {
    const read = (area: Area | null): Area | null => known(area, new Set(widgets.keys()));
    const remembered = read(this.#memory.read());
    // The graph is always there.
    const area = remembered && idsOf(remembered).includes(STAGE) ? remembered : read(firstLayout(width_px));
    dock.restoreLayout({ main: area && asConfig(area, widgets) } as DockPanel.ILayoutConfig);
  }

  #remember(dock: DockPanel): void {
    const { main } = dock.saveLayout();
    if (main && !dock.isDisposed) this.#memory.write(asArea(main as unknown as Config));
  }
}

/** A layout of widgets, as far as it is used here. */
type Config =
  | { readonly type: "tab-area"; readonly widgets: readonly Widget[]; readonly currentIndex: number }
  | { readonly type: "split-area"; readonly orientation: "horizontal" | "vertical"; readonly children: readonly Config[]; readonly sizes: readonly number[] };

function asConfig(area: Area, widgets: ReadonlyMap<string, Widget>): Config {
  if (area.type === "split-area") return { ...area, children: area.children.map((child) => asConfig(child, widgets)) };
  return { ...area, widgets: area.widgets.flatMap((id) => widgets.get(id) ?? []) };
}

function asArea(config: Config): Area {
  if (config.type === "split-area") return { ...config, children: config.children.map(asArea) };
  return { ...config, widgets: config.widgets.map(({ id }) => id.replace(/^fs-dock-/, "")) };
}

/** Where a panel is opened, from the graph. */
const SIDES: Readonly<Record<string, DockPanel.InsertMode>> = {
  outline: "split-left", run: "split-bottom", timeline: "split-bottom", costs: "split-bottom", debug: "split-bottom", value: "split-bottom",
};

function show(dock: DockPanel, widgets: ReadonlyMap<string, DockPart>, id: string, isOpen: boolean): void {
  const widget = widgets.get(id);
  if (!widget || isOpen === (widget.parent !== null)) return;
  if (!isOpen) widget.parent = null;
  else dock.addWidget(widget, placeOf(id, widgets));
}

/** What stands under the graph stands in one place there, one panel on the other. */
function placeOf(id: string, widgets: ReadonlyMap<string, DockPart>): DockPanel.IAddOptions {
  const mode = SIDES[id] ?? "split-right";
  const mate = [...widgets].find(([other, widget]) => other !== id && widget.parent !== null && SIDES[other] === "split-bottom");
  if (mode === "split-bottom" && mate) return { mode: "tab-after", ref: mate[1] };
  return { mode, ref: widgets.get(STAGE) ?? null };
}
