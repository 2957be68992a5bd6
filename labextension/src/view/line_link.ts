/**
 * Lines of code and operations know each other: tells the page what share of a step each line has, and which line made what
 * is selected; selects what a line has made when the page asks.
 */
import { lineCosts, type LineCost } from "../model/costs.js";
import { opBox, opOf } from "../model/ids.js";
import type { Node } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { hasPanel, LINE_EVENT, LINES_EVENT, tellPage, type ToldLine, type ToldLines } from "./host.js";

/** While steps are recorded, lines are told so often. */
const PERIOD_MS = 500;

export class LineLink {
  readonly #view: ViewContext;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #told = "";

  constructor(view: ViewContext) {
    this.#view = view;
    const { trace, model, store, until } = view;
    if (!hasPanel()) return;
    trace.changed.connect((what) => what === "state" && this.#later(), until);
    model.changed.connect(({ graph }) => graph && this.#later(), until);
    store.changed.connect(({ what }) => what === "selection" && this.#tell(), until);
    document.addEventListener(LINE_EVENT, (event) => this.#go((event as CustomEvent<ToldLine>).detail), { signal: until });
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  #later(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#tell();
    }, PERIOD_MS);
  }

  #tell(): void {
    const { trace, model, selection, root, graphKey } = this.#view;
    const origin = model.nodes.get(opOf(selection.box ?? "") ?? -1)?.origin ?? null;
    const lines = trace.heat ? lineCosts(model, trace.heat).filter(({ cell }) => cell !== null) : [];
    const told: ToldLines = {
      graph: graphKey, lines: lines.flatMap(asTold),
      selected: origin !== null && origin.cell !== null ? { graph: graphKey, cell: origin.cell, line: origin.line } : null,
    };
    const text = JSON.stringify(told);
    if (text === this.#told) return;
    this.#told = text;
    tellPage<ToldLines>(root, LINES_EVENT, told);
  }

  /** Selects the dearest operation of a line; all that it made stand out. */
  #go({ graph, cell, line }: ToldLine): void {
    const { model, trace, store, navigation, graphKey, root } = this.#view;
    if (graph !== graphKey) return;
    const made = [...model.nodes.values()].filter(({ origin }) => origin?.cell === cell && origin.line === line);
    const shares = new Map<number, number>();
    trace.heat?.ops.forEach(([own], i) => shares.set(own ?? -1, trace.heat?.time[i] ?? 0));
    const share = ({ id }: Node): number => shares.get(id) ?? -1;
    const dearest = made.reduce<Node | null>((best, node) => (best === null || share(node) > share(best) ? node : best), null);
    if (!dearest) return;
    store.setFind(made.length > 1 ? `line:/^cell.${cell}:${line}$/` : "", root);
    navigation.goNear(opBox(dearest.id));
  }
}

function asTold({ cell, line, share, ops }: LineCost): ToldLines["lines"] {
  return cell === null ? [] : [{ cell, line, share, ops }];
}
