/** What is said of a box under the pointer, in a few lines. Pure. */
import { kindOf, scopeTitle } from "./bodies.js";
import { deviceTexts } from "./devices.js";
import { plural, typeText } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { opOf, pathOf, type BoxId } from "./ids.js";
import { sizeLine } from "./sizes.js";
import type { Node } from "../wire/messages.js";

export interface Card {
  readonly title: string;
  readonly lines: readonly string[];
}

/** Outputs beyond this are counted. */
const MOST_OUTPUTS = 3;

export function cardOf(model: GraphModel, box: BoxId): Card | null {
  const node = model.nodes.get(opOf(box) ?? -1);
  const say = deviceTexts(model);
  const size = sizeLine(model.sizes.of(box));
  if (node) return { title: node.name, lines: [...linesOf(node).map(say), ...(size ? [size] : [])] };
  const path = pathOf(box);
  const scope = path ? model.tree.get(path) : undefined;
  if (!scope || !path) return null;
  const owner = model.frames.get(path);
  return { title: scopeTitle(model, path), lines: [plural(scope.size, "op"), ...(size ? [size] : []), ...(owner ? linesOf(owner).map(say) : [])] };
}

function linesOf(node: Node): string[] {
  const { outputs, origin } = node;
  const told = outputs.slice(0, MOST_OUTPUTS).map(typeText);
  const more = outputs.length > MOST_OUTPUTS ? [`and ${outputs.length - MOST_OUTPUTS} more`] : [];
  const at = origin && `${origin.cell === null ? (origin.file ?? "") : `cell ${origin.cell}`}, line ${origin.line}`;
  return [
    kindOf(node), ...(told.length > 0 ? [[...told, ...more].join(", ")] : []),
    ...deviceLine(node), ...(origin && at ? [at, origin.text] : []),
  ].filter((line) => line !== "");
}

/** Where it stands, and why. */
function deviceLine({ device, placed }: Node): string[] {
  if (placed === null) return device ? [`asked for ${device}, not placed yet`] : [];
  return [device ? `on ${placed}: ${device} was asked for` : `on ${placed}: nothing was asked for`];
}
