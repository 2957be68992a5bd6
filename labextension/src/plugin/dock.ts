/** The parts of a view as panels that split, close and are remembered. */
import { DockPanelSvg } from "@jupyterlab/ui-components";
import { MessageLoop } from "@lumino/messaging";
import { type DockPanel, Widget } from "@lumino/widgets";
import type { Arrangement, Part } from "../view/arrangement.js";
import { elementsIn } from "../view/arrangement.js";
import type { Drawers } from "../view/drawers.js";

/** An area of a layout, with the ids of panels in place of widgets; as it is remembered. */
export type Area =
  | { readonly type: "tab-area"; readonly widgets: readonly string[]; readonly currentIndex: number }
  | { readonly type: "split-area"; readonly orientation: "horizontal" | "vertical"; readonly children: readonly Area[]; readonly sizes: readonly number[] };

export interface LayoutMemory {
  read(): Area | null;
  write(area: Area): void;
}

export const STAGE = "stage";
/** From this width on the inspector stands beside the graph. */
const WIDE_PX = 760;

const tabs = (...widgets: string[]): Area => ({ type: "tab-area", widgets, currentIndex: 0 });

/** What stands where until the user has moved something. */
export function firstLayout(width_px: number): Area {
  if (width_px < WIDE_PX) {
    return { type: "split-area", orientation: "vertical", sizes: [0.66, 0.34], children: [tabs(STAGE), tabs("inspector", "frames")] };
  }
  const right: Area = { type: "split-area", orientation: "vertical", sizes: [0.6, 0.4], children: [tabs("inspector"), tabs("frames")] };
  return { type: "split-area", orientation: "horizontal", sizes: [0.74, 0.26], children: [tabs(STAGE), right] };
}

/** A layout as far as it names panels that there are, each once; null where nothing is left. */
export function known(area: unknown, ids: Set<string>): Area | null {
  const { type, widgets, children, sizes, orientation } = (area ?? {}) as Record<string, unknown>;
  if (type === "tab-area" && Array.isArray(widgets)) {
    const found = (widgets as unknown[]).filter((id): id is string => typeof id === "string" && ids.delete(id));
    return found.length > 0 ? tabs(...found) : null;
  }
  if (type !== "split-area" || !Array.isArray(children) || !Array.isArray(sizes)) return null;
  const parts = children.flatMap((child: unknown, i) => {
    const one = known(child, ids);
    return one ? [{ one, size: typeof sizes[i] === "number" ? sizes[i] : 1 }] : [];
  });
  if (parts.length < 2) return parts[0]?.one ?? null;
  return {
    type: "split-area", orientation: orientation === "vertical" ? "vertical" : "horizontal",
    children: parts.map(({ one }) => one), sizes: parts.map(({ size }) => size),
  };
}

class DockPart extends Widget {
  readonly #closed: () => void;

  constructor(id: string, title: string, element: HTMLElement, closed: (() => void) | null) {
    super();
    this.id = `fs-dock-${id}`;
    this.addClass("fs-dock-part");
    this.toggleClass("fs-dock-stage", id === STAGE);
    this.title.label = title;
    this.title.closable = closed !== null;
    this.#closed = closed ?? (() => undefined);
    this.node.append(element);
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
    for (const { id, title, region, element } of parts) {
      const isPanel = region === "left" || region === "right" || region === "below";
      if (isPanel) widgets.set(id, new DockPart(id, title, element, () => drawers.setOpen(id, false)));
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

function idsOf(area: Area): readonly string[] {
  return area.type === "split-area" ? area.children.flatMap(idsOf) : area.widgets;
}

function show(dock: DockPanel, widgets: ReadonlyMap<string, DockPart>, id: string, isOpen: boolean): void {
  const widget = widgets.get(id);
  if (!widget || isOpen === (widget.parent !== null)) return;
  if (!isOpen) widget.parent = null;
  else dock.addWidget(widget, { mode: id === "outline" ? "split-left" : "split-right", ref: widgets.get(STAGE) ?? null });
}
