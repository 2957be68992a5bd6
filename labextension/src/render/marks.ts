/** The draw list: what a picture consists of, before anything is drawn. */

export type ShapeKind = "box" | "slant" | "cylinder" | "pill" | "call" | "choice" | "strip";

export interface ShapeMark {
  readonly kind: "shape";
  readonly id: string;
  readonly shape: ShapeKind;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  /** Radius of the corners. */
  readonly r: number;
  /** "" for none, as of the stroke. */
  readonly fill: string;
  readonly stroke: string;
  readonly width: number;
  /** A dashed outline is of something that the rules made. */
  readonly isDashed?: boolean;
}

export interface PathMark {
  readonly kind: "path";
  readonly id: string;
  /** x, y, x, y ... as the layout made them. */
  readonly route: readonly number[];
  readonly stroke: string;
  readonly width: number;
  readonly isDashed: boolean;
  readonly hasArrow: boolean;
  readonly opacity: number;
}

export interface TextMark {
  readonly kind: "text";
  readonly id: string;
  readonly text: string;
  readonly x: number;
  /** Middle of the line. */
  readonly y: number;
  readonly size: number;
  readonly weight: 400 | 600;
  readonly fill: string;
  readonly anchor: "start" | "middle" | "end";
  /** The text is cut with an ellipsis beyond this width. */
  readonly room: number;
  /** Colour laid under the glyphs so that lines do not run through them; "" for none. */
  readonly halo: string;
  /** Zoom from which the text is drawn at all. */
  readonly from: number;
}

export type Mark = ShapeMark | PathMark | TextMark;

export interface Scene {
  readonly w: number;
  readonly h: number;
  readonly background: string;
  readonly font: string;
  /** Colours of texts around the picture. */
  readonly text: string;
  readonly muted: string;
  /** In the order of drawing. */
  readonly marks: readonly Mark[];
}
