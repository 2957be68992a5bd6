/** Makes elements. Text is always set as text. */

/** On what takes the focus: JupyterLab then leaves its keys alone. */
export const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" } as const;

type Attributes = Readonly<Record<string, string>>;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** An id that no other element of the page has: views of several scripts may stand in one page. */
export function uniqueId(prefix: string): string {
  return `${prefix}-${Math.floor(Math.random() * 2 ** 40).toString(36)}`;
}

/** Outlines of the icons, on a square of 16. */
const ICONS = {
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  compare: "M2 3h5v10H2zm1.5 1.5v7h2v-7zM9 3h5v10H9z",
  play: "M4.5 2.5v11l9-5.5z",
  stop: "M3.5 3.5h9v9h-9z",
  stepOp: "M2 3h2v10H2zM6 3l7 5-7 5z",
  stepIteration: "M8 2a6 6 0 1 1-5.2 3l1.7 1A4 4 0 1 0 8 4v2.5L4 3.2 8 0zM7 6l4 2.5L7 11z",
  plus: "M7 3h2v4h4v2H9v4H7V9H3V7h4z",
  minus: "M3 7h10v2H3z",
  fit: "M2 2h4v2H4v2H2zM10 2h4v4h-2V4h-2zM2 10h2v2h2v2H2zM12 10h2v4h-4v-2h2z",
  save: "M7 2h2v5h3l-4 4-4-4h3zM3 12h10v2H3z",
  outline: "M2 3h3v2H2zM6 3h8v2H6zM4 7h3v2H4zM8 7h6v2H8zM4 11h3v2H4zM8 11h6v2H8z",
  lowered: "M8 1l6 3-6 3-6-3zM2 7l6 3 6-3v2l-6 3-6-3zM2 11l6 3 6-3v2l-6 3-6-3z",
  keys: "M5 6a3 3 0 1 1 4 2.8V11H7V7.5h1a1.2 1.2 0 1 0-1.2-1.5zM7 12h2v2H7z",
  panel: "M2 2h12v12H2zM4 5v7h4V5zM10 5v7h2V5z",
  up: "M8 4l5 6-1.4 1L8 7l-3.6 4L3 10z",
  down: "M8 12l5-6-1.4-1L8 9 4.4 5 3 6z",
  fetch: "M2 2h4v2H4v8h2v2H2zM10 2h4v12h-4v-2h2V4h-2zM6 5l5 3-5 3z",
  search: "M7 2a5 5 0 0 1 4 8l3.2 3.2-1.2 1.2L9.8 11.2A5 5 0 1 1 7 2zm0 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  record: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zm0 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0 2a2 2 0 1 1 0 4 2 2 0 0 1 0-4z",
  recording: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z",
  timeline: "M2 3h7v2.5H2zM5 7h8v2.5H5zM8 11h6v2.5H8z",
  table: "M2 2h12v12H2zM4 6v2h3V6zM9 6v2h3V6zM4 10v2h3v-2zM9 10v2h3v-2z",
  heat: "M2 10h3v4H2zM6.5 6h3v8h-3zM11 2h3v12h-3z",
  move: "M2 7h7V4l5 4-5 4V9H2z",
  partitions: "M2 2h5v12H2zm2 2v8h1V4zM9 2h5v12H9zm2 2v8h1V4z",
  devices: "M4 4h8v8H4zm2 2v4h4V6zM5 1h2v2H5zM9 1h2v2H9zM5 13h2v2H5zM9 13h2v2H9zM1 5h2v2H1zM1 9h2v2H1zM13 5h2v2h-2zM13 9h2v2h-2z",
  breakBefore: "M2 2h12v2H2zM8 6a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
  breakAfter: "M8 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM2 12h12v2H2z",
  debug: "M8 4a4 4 0 0 1 4 4v2a4 4 0 0 1-8 0V8a4 4 0 0 1 4-4zM5 1l2 2.2-1 .8-2-2.2zM11 1l1 .8-2 2.2-1-.8zM1 6h2.5v1.6H1zM12.5 6H15v1.6h-2.5zM1 11h2.5v1.6H1zM12.5 11H15v1.6h-2.5zM7.2 7v4h1.6V7z",
  stepBack: "M12 3h2v10h-2zM10 3v10L3 8z",
  past: "M8 2a6 6 0 1 1-5.7 4.2l1.9.6A4 4 0 1 0 8 4v2L4.5 3 8 0zM7 5.5h1.6v2.6l2 1.6-1 1.2L7 9z",
  cluster: "M6 1h4v4H9v2h4v3h1v4h-4v-4h1V9H5v1h1v4H2v-4h1V7h4V5H6z",
  explain: "M2 2h12v9H8l-4 3.5V11H2zm1.6 1.6v5.8h2v1.8l2-1.8h4.8V3.6zM5 4.8h6v1.2H5zM5 7h4v1.2H5z",
  curve: "M2 2h2v10h10v2H2zM5.5 9.6l2.6-3.9 2.2 2 2.6-4.3 1.3.8-3.4 5.6-2.2-2-1.8 2.7z",
  variable: "M8 1.5c3.3 0 5.5 1 5.5 2.4v8.2c0 1.4-2.2 2.4-5.5 2.4s-5.5-1-5.5-2.4V3.9c0-1.4 2.2-2.4 5.5-2.4zM4 6v5.8c.4.6 2 1.2 4 1.2s3.6-.6 4-1.2V6c-1 .5-2.4.8-4 .8S5 6.5 4 6z",
  stepOut: "M8 1l5 5H9.5v5h-3V6H3zM3 13h10v2H3z",
  stepRun: "M2 3l8 5-8 5zM11 3h3v10h-3z",
  value: "M2 2h5v5H2zM9 2h5v5H9zm1.5 1.5v2h2v-2zM2 9h5v5H2zm1.5 1.5v2h2v-2zM9 9h5v5H9z",
  earlier: "M10 3l1.4 1.2L8 8l3.4 3.8L10 13 5.5 8z",
  later: "M6 3L4.6 4.2 8 8l-3.4 3.8L6 13l4.5-5z",
  more: "M2 6.5h3v3H2zM6.5 6.5h3v3h-3zM11 6.5h3v3h-3z",
  isolate: "M5 5h6v6H5zM2 2h3v1.5H3.5V5H2zM11 2h3v3h-1.5V3.5H11zM2 11h1.5v1.5H5V14H2zM12.5 11H14v3h-3v-1.5h1.5z",
  inspector: "M2 2h12v12H2zm1.6 1.6v8.8h5V3.6zM10 5h2.5v1.3H10zM10 7.5h2.5v1.3H10z",
  frames: "M3 3h8v1.6H4.6v6H3zM6 6h8v8H6zm1.6 1.6v4.8h4.8V7.6z",
  changed: "M8 2l5.5 10.5h-11zM8 5.4L5.2 11h5.6z",
  fullscreen: "M2 2h5v1.6H3.6V7H2zM14 14H9v-1.6h3.4V9H14zM9.5 2H14v4.5l-1.6-1.6-2.3 2.3L9 6.1l2.3-2.4zM2 9.5l1.6 1.7L6 8.8 7.2 10l-2.4 2.4L6.5 14H2z",
  nan: "M5 1h6l4 4v6l-4 4H5l-4-4V5zm.8 1.8L2.8 5.8v4.4l3 3h4.4l3-3V5.8l-3-3zM5 5h1.4l2.4 3.6V5h1.4v6H8.8L6.4 7.4V11H5z",
  queue: "M2 2h12v3H2zM3.5 3.3v.6h2v-.6zM2 6.5h12v3H2zm1.5 1.2v.6h2v-.6zM2 11h8v3H2z",
  slow: "M8 2a7 7 0 0 1 7 7c0 1.4-.4 2.8-1.2 4H2.2A7 7 0 0 1 8 2zm0 1.8A5.2 5.2 0 0 0 3.2 11h9.6A5.2 5.2 0 0 0 8 3.8zM4.2 6.6l4.6 1.8-1.4 1.6z",
  close: "M4 3l4 4 4-4 1 1-4 4 4 4-1 1-4-4-4 4-1-1 4-4-4-4z",
} as const;
export type IconName = keyof typeof ICONS;

export function icon(name: IconName): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}

export function button(label: string, shape: IconName, onClick: () => void, until: AbortSignal): HTMLButtonElement {
  const made = make("button", { type: "button", class: "fs-button", title: label, "aria-label": label, ...OWN_KEYS });
  made.append(icon(shape));
  made.addEventListener("click", onClick, { signal: until });
  return made;
}

/** Changes a text only where it differs: nothing is drawn anew for nothing. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Gives an element the attributes and children of another one. What is there already stays and is changed only where it
 * differs; another key (`data-key`) is another thing, and is put in the place of what was there.
 */
export function adapt(element: Element, wanted: Element): void {
  for (const { name } of [...element.attributes]) if (!wanted.hasAttribute(name)) element.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  const had = [...element.childNodes];
  const made = [...wanted.childNodes];
  for (const surplus of had.slice(made.length)) surplus.remove();
  for (const [i, child] of made.entries()) {
    const old = had[i];
    if (old === undefined) element.append(child);
    else if (old.isEqualNode(child)) continue;
    else if (old instanceof Element && child instanceof Element && isSameThing(old, child)) adapt(old, child);
    else if (old instanceof Text && child instanceof Text) old.data = child.data;
    else old.replaceWith(child);
  }
}

function isSameThing(one: Element, other: Element): boolean {
  return one.tagName === other.tagName && one.getAttribute("data-key") === other.getAttribute("data-key");
}

/** Gives an element these children in this order. Those that stay are not moved without need: they keep the focus. */
export function placeChildren(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const wanted = new Set<Element>(children);
  for (const had of [...parent.children]) if (!wanted.has(had)) had.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}
