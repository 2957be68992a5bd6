/** What serves the model: its initialisers, its savers and its optimizer become a box each. Pure. */
import type { Texts } from "./labels.js";
import type { Level, Merge, Unit } from "./level.js";
import type { Lane } from "./types.js";

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
