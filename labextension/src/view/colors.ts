/** The theme from Jupyter's CSS variables, and a sign when it changes. */
import { DARK, LIGHT, type Theme } from "../render/theme.js";

/** Who asks for contrast gets no greys. */
const STARK = ["(prefers-contrast: more)", "(forced-colors: active)"] as const;

export function readTheme(root: HTMLElement): Theme {
  const style = getComputedStyle(root);
  const background = asRgb(style.backgroundColor);
  const isDark = background ? luminance(background) < 0.4 : matchMedia("(prefers-color-scheme: dark)").matches;
  const base = isDark ? DARK : LIGHT;
  const value = (name: string, otherwise: string): string => style.getPropertyValue(name).trim() || otherwise;
  const isStark = STARK.some((query) => matchMedia(query).matches);
  const text = style.color || base.text;
  return {
    ...base,
    ...(isStark ? { muted: text, border: text, line: text, folder: background ? style.backgroundColor : base.folder } : {}),
    background: background ? style.backgroundColor : base.background,
    text,
    accent: value("--fs-accent", base.accent),
    font: style.fontFamily || base.font,
  };
}

/** Calls back when the page's theme may have changed. */
export function watchTheme(changed: () => void, until: AbortSignal): void {
  const observer = new MutationObserver(changed);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class", "style"] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });
  for (const query of ["(prefers-color-scheme: dark)", ...STARK]) matchMedia(query).addEventListener("change", changed, { signal: until });
  until.addEventListener("abort", () => observer.disconnect(), { once: true });
}

type Rgb = readonly [number, number, number];

function asRgb(color: string): Rgb | null {
  const [r, g, b, alpha] = (color.match(/[\d.]+/g) ?? []).map(Number);
  if (r === undefined || g === undefined || b === undefined || alpha === 0) return null;
  return [r, g, b];
}

function luminance([r, g, b]: Rgb): number {
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}
