/** Colours and fonts of the drawing. The view fills them from Jupyter's CSS variables. */

export interface Theme {
  readonly isDark: boolean;
  /** Whether the colours of kinds and likeness are left out, because an overlay's colours say something else. */
  readonly isPlain?: boolean;
  readonly font: string;
  readonly background: string;
  /** Fill of operations. */
  readonly paper: string;
  /** Fill of closed scopes. */
  readonly folder: string;
  readonly text: string;
  readonly muted: string;
  readonly border: string;
  readonly line: string;
  /** The selection. */
  readonly accent: string;
  /** The outlines of functions and of their calls, and the fill of their bodies. */
  readonly body: string;
  readonly bodyFill: string;
  /** The dot on what a cell has changed or added. */
  readonly mark: string;
  /** Values on their way, and the operation that a step is held before. */
  readonly token: string;
  readonly held: string;
  /** The operation at which a step failed. */
  readonly alert: string;
  /** What is fed, and what lives from step to step: fill and outline. */
  readonly feedFill: string;
  readonly feed: string;
  readonly stateFill: string;
  readonly state: string;
}

export const LIGHT: Theme = {
  isDark: false, font: "system-ui, sans-serif", background: "#ffffff", paper: "#ffffff", folder: "#f1f3f5",
  text: "#212529", muted: "#5c636a", border: "#868e96", line: "#7b848c", accent: "#0b66c3", body: "#7a5bb5", bodyFill: "#f6f3fc", mark: "#d9480f",
  token: "#0b66c3", held: "#b35900", alert: "#c92a2a", feedFill: "#e3f0fb", feed: "#2b7bb9", stateFill: "#fbf3e0", state: "#a67c1f",
};

export const DARK: Theme = {
  isDark: true, font: "system-ui, sans-serif", background: "#111111", paper: "#1d2024", folder: "#292d32",
  text: "#e9ecef", muted: "#a4adb5", border: "#6c757d", line: "#89939c", accent: "#5ab0ff", body: "#a78fd6", bodyFill: "#211d2b", mark: "#ff922b",
  token: "#74c0fc", held: "#ffa94d", alert: "#ff6b6b", feedFill: "#173349", feed: "#6fb0e0", stateFill: "#3a2f17", state: "#d8a84a",
};

/** A theme under an overlay: one thing at a time has colours. Shapes still tell kinds apart, and the selection is black or white. */
export function plain(theme: Theme): Theme {
  const { paper, border, background, text } = theme;
  return { ...theme, isPlain: true, feedFill: paper, feed: border, stateFill: paper, state: border, body: border, bodyFill: background, accent: text };
}

/**
 * Eight colours that people with the common kinds of colour blindness tell apart.
 * Source: Okabe and Ito 2008, black replaced by grey.
 */
const DEVICES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#8c8c8c"] as const;

/** Pale fills for scopes that are built alike: hue and nothing more, so that text stays legible. */
const TINTS_LIGHT = ["#e3eefb", "#e5f4e6", "#fbeedd", "#f1e6f8", "#e0f3f3", "#fae6ea"] as const;
const TINTS_DARK = ["#1d2f44", "#1e3524", "#3d3020", "#33263f", "#1c3636", "#3f262c"] as const;

export function deviceColor(index: number): string {
  return DEVICES[index % DEVICES.length] ?? DEVICES[0];
}

/** Of devices that share a colour each has gaps at another distance: 0 for none. */
export function devicePattern(index: number): number {
  const round = Math.floor(index / DEVICES.length);
  return round === 0 ? 0 : 3 + 2 * round;
}

export function tint(family: number, theme: Theme): string {
  const tints = theme.isDark ? TINTS_DARK : TINTS_LIGHT;
  return tints[family % tints.length] ?? theme.folder;
}
