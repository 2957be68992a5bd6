/** Numbers that steps fetch, unasked, with their curves, and how full queues are: on boxes and in the header. Pure. */
import type { RunSetup, ScalarState, SessionState } from "../wire/messages.js";
import { significant, whole } from "./figures.js";
import type { GraphModel } from "./graph.js";
import { opName, type Note } from "./run_setup.js";
import { shortName } from "./scopes.js";

/** What has to differ for these to be drawn anew. */
export function liveKey(session: SessionState | null): string {
  if (session === null) return "";
  const queues = session.queues.map(({ op, size, capacity, is_closed, error, stamp, dropped }) => `${op} ${size} ${capacity} ${is_closed} ${error} ${stamp} ${dropped}`);
  return [...session.scalars.map(({ name, step }) => `${name} ${step}`), ...queues].join(";");
}

/** What stands on boxes; where a run from the picture tells of an operation, that is told. */
export function liveNotes(model: GraphModel, setup: Pick<RunSetup, "fetches">): readonly Note[] {
  const { session } = model;
  if (session === null) return [];
  const told = new Set(setup.fetches.map((name) => model.tree.idOf(opName(name))));
  const head = headScalar(session.scalars);
  const inOrder = [...session.scalars].sort((a, b) => Number(b === head) - Number(a === head));
  const scalars = inOrder.flatMap(({ name, op, value, curve }): Note[] => {
    const own = op === null ? -1 : model.ownId(op);
    return model.nodes.has(own) && !told.has(own) ? [{ op: own, text: significant(value), badge: "live", curve, name: shortName(name) }] : [];
  });
  const queues = session.queues.flatMap(({ op, size, capacity, is_closed, least, error, stamp, dropped, fills_itself: isIterator }): Note[] => {
    const own = model.ownId(op);
    if (isIterator && capacity === 0) return []; // nothing is kept that could be full
    const stale = dropped > 0 ? `, ${whole(dropped)} dropped` : "";
    const text = `${whole(size)}/${whole(capacity)}${stamp === null ? "" : `, step ${whole(stamp)}${stale}`}${error ? ", producer failed" : is_closed ? ", closed" : ""}`;
    return model.nodes.has(own) ? [{ op: own, text, badge: "live", fill: capacity > 0 ? Math.min(1, size / capacity) : 0, ...(least > 0 && !is_closed ? { least: least / capacity } : {}), name: shortName(model.nodes.get(own)?.name ?? "") }] : [];
  });
  return [...scalars, ...queues];
}

/** The number for the header: one that is called a loss or an error, else the first that is no whole number, else the first. */
export function headScalar(scalars: readonly ScalarState[]): ScalarState | null {
  const isWhole = ({ curve }: ScalarState): boolean => curve.every((value) => Number.isInteger(value));
  const named = (word: RegExp): ScalarState | undefined => scalars.find(({ name }) => word.test(name));
  return named(/loss/i) ?? named(/error|cost|perplexity/i) ?? scalars.find((one) => !isWhole(one)) ?? scalars[0] ?? null;
}

/** "model/loss" -> "loss 0.031". */
export function scalarText({ name, value }: ScalarState): string {
  return `${shortName(name)} ${significant(value)}`;
}

/** The curve as points in a room of 1 by 1, from the top left; gaps where values are not finite. */
export function curvePoints(curve: readonly number[]): readonly (readonly [number, number])[] {
  const finite = curve.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const range = high - low || 1;
  return curve.flatMap((value, k) => (Number.isFinite(value) ? [[curve.length > 1 ? k / (curve.length - 1) : 1, 1 - (value - low) / range] as const] : []));
}
