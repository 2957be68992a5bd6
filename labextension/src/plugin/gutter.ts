/** A gutter beside a cell's lines: the share of a step that each has, and the line that made what is selected. */
import { RangeSet, StateEffect, StateField, type Extension, type Range } from "@codemirror/state";
import { EditorView, gutter, GutterMarker } from "@codemirror/view";
import { plural, shareText } from "../model/figures.js";
import { rampColor, rampInk } from "../render/ramp.js";
import { make } from "../view/dom.js";

export interface LineShare {
  /** From 1. */
  readonly line: number;
  readonly share: number;
  readonly ops: number;
  readonly isSelected: boolean;
}

/** Below this share a line has a dot. */
const TOLD_SHARE = 0.001;

class ShareMarker extends GutterMarker {
  readonly #line: LineShare;
  readonly #isDark: boolean;

  constructor(line: LineShare, isDark: boolean) {
    super();
    this.#line = line;
    this.#isDark = isDark;
  }

  override eq(other: GutterMarker): boolean {
    return other instanceof ShareMarker && JSON.stringify(other.#line) === JSON.stringify(this.#line) && other.#isDark === this.#isDark;
  }

  override toDOM(): Node {
    const { share, ops, isSelected } = this.#line;
    const theme = { isDark: this.#isDark };
    const isTold = share >= TOLD_SHARE;
    const style = isTold ? `background: ${rampColor(share, theme)}; color: ${rampInk(share, theme)}` : "";
    const title = `${isTold ? `${shareText(share)} of a step, in ` : ""}${plural(ops, "operation")}: click to see them in the graph`;
    const made = make("span", { class: "fs-line-share", style, title }, isTold ? shareText(share) : "\u00b7");
    made.classList.toggle("fs-line-selected", isSelected);
    return made;
  }
}

interface Told {
  readonly lines: readonly LineShare[];
  readonly isDark: boolean;
}

const tell = StateEffect.define<Told>();

/** What is told moves with the text, until the next is told. */
const markers = StateField.define<RangeSet<GutterMarker>>({
  create: () => RangeSet.empty,
  update(shown, { changes, effects, state }) {
    let next = shown.map(changes);
    for (const effect of effects) {
      if (!effect.is(tell)) continue;
      const known = effect.value.lines.filter(({ line }) => line >= 1 && line <= state.doc.lines).sort((a, b) => a.line - b.line);
      next = RangeSet.of(known.map((line): Range<GutterMarker> => new ShareMarker(line, effect.value.isDark).range(state.doc.line(line.line).from)));
    }
    return next;
  },
});

/** The gutter for one editor; a press on a line that made something is told. */
export function shareGutter(pressed: (line: number) => void): Extension {
  return [
    markers,
    gutter({
      class: "fs-line-gutter", markers: (view) => view.state.field(markers),
      domEventHandlers: {
        mousedown: (view, block) => {
          const line = view.state.doc.lineAt(block.from);
          let isMarked = false;
          view.state.field(markers).between(line.from, line.from, () => void (isMarked = true));
          if (isMarked) pressed(line.number);
          return isMarked;
        },
      },
    }),
  ];
}

export function showShares(view: EditorView, told: Told): void {
  view.dispatch({ effects: tell.of(told) });
}
