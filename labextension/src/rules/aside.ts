/** What serves the model: its initialisers, its savers and its optimizer become a box each. Pure. */
import type { Facts, Texts } from "./labels.js";
import type { Level, Merge, Unit } from "./level.js";
import type { Lane } from "./types.js";

/** What a group of assignments is called that has no name of its own. */
const UPDATES = "updates";
const NO_NAME = /^(NoOp|group_deps)(_\d+)?$/;

/**
 * Merges assignments that one operation without outputs groups: what a model does beside its steps, as to copy weights.
 * `waitsFor` says for which boxes of the beginning a box waits.
 */
export function foldUpdates(level: Level, texts: Texts, waitsFor: (item: number) => readonly number[]): void {
  const assigns = new Map(level.units.filter(({ item }) => item >= 0 && isAssignment(texts(item))).map((unit) => [unit.item, unit]));
  if (assigns.size === 0) return;
  const merges = level.units.flatMap((unit): Merge[] => {
    const grouped = unit.item >= 0 && texts(unit.item).type === "NoOp" ? waitsFor(unit.item).flatMap((item) => assigns.get(item) ?? []) : [];
    for (const { item } of grouped) assigns.delete(item);
    const { name } = texts(unit.item);
    const title = NO_NAME.test(name) ? UPDATES : name;
    return grouped.length < 2 ? [] : [{ members: [unit, ...grouped], group: { kind: "aside", title, detail: "", count: 1, carries: null } }];
  });
  level.merge(merges);
}

const isAssignment = ({ type }: Facts): boolean => /^Assign/.test(type);

/** Merges what only fills variables, what saves them, and what updates them; `optimizer` is its name. */
export function foldAside(level: Level, texts: Texts, optimizer: string): void {
  // In a scope that serves as a whole, what it holds is what tells.
  if (!level.units.some(({ lane }) => lane === "model" || lane === "gradient")) return;
  const isSaver = (unit: Unit): boolean => unit.item >= 0 && texts(unit.item).types.some((type) => /^(Save|Restore)/.test(type));
  const of = (lane: Lane): Unit[] => level.units.filter((unit) => unit.lane === lane && unit.group === null);
  const aside = of("aside");
  // What fills a variable that stands beside it alone is a part of that, not of all.
  const wanted: [readonly Unit[], string][] = [
    [aside.filter(isSaver), "saver"], [aside.filter((unit) => !isSaver(unit)), "initialisers"], [of("optimizer"), optimizer || "optimizer"],
  ];
  const merges: Merge[] = wanted.filter(([members]) => members.length > 1 && members.length < level.units.length).map(([members, title]) => ({
    members, group: { kind: "aside", title, detail: "", count: 1, carries: null },
  }));
  for (const merge of merges) level.merge([merge]);
}
