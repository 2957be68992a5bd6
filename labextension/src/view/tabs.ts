/** The tabs of a view: what there is to run, about time, values and places, each with the buttons and panels for it. */
import type { IconName } from "./dom.js";

export type TabId = "run" | "time" | "values" | "place";

export interface Tab {
  readonly id: TabId;
  readonly word: string;
  readonly icon: IconName;
  /** What it is for. */
  readonly hint: string;
  /** Commands whose buttons it has, in their order. */
  readonly acts: readonly string[];
  /** Panels that belong to it. */
  readonly panels: readonly string[];
  /** The command that is run when the tab is opened and none of its panels is open. */
  readonly first: string;
}

export const TABS: readonly Tab[] = [
  {
    id: "run", word: "Run", icon: "play", hint: "Fetch and feed, break and step, loops that run, the program as lowered",
    acts: ["run-panel", "input", "debug", "stop-at-nan", "frames", "lowered"], panels: ["run", "input", "debug", "stop-at-nan"], first: "run-panel",
  },
  {
    id: "time", word: "Time", icon: "timeline", hint: "Record steps; where their time goes: timeline, costs, shares on the boxes",
    acts: ["record", "timeline", "costs", "heat", "why-slow"], panels: ["timeline", "costs", "why-slow"], first: "timeline",
  },
  {
    id: "values", word: "Values", icon: "value", hint: "Variables, values of a held step, values over time, summaries, explanations",
    acts: ["variables", "value", "past", "summaries", "explain"], panels: ["variables", "value", "past", "summaries", "explain"], first: "variables",
  },
  {
    id: "place", word: "Place", icon: "devices", hint: "Devices and what stands on them, partitions, the cluster's workers",
    acts: ["devices", "partitions", "cluster", "move"], panels: ["cluster"], first: "devices",
  },
];

/** What is not of a tab, and has no button of its own at the picture's edge. */
export const MORE: readonly string[] = ["outline", "inspector", "isolate", "find-changed", "fullscreen", "save", "keys"];
/** At the picture's edge. */
export const PICTURE_ACTS: readonly string[] = ["zoom-in", "zoom-out", "fit"];

/** Commands without a button in a tab, by what one does with them; those that are named nowhere move the picture. */
const TASKS: readonly (readonly [string, RegExp])[] = [
  ["Run", /^(pause|stop|step-(op|iteration|back|out|run)|break-|fetch|feed|run$)/], ["Time", /^(time-|slice-|play$|compare$|step-(earlier|later))/],
  ["Find", /^find/], ["Select", /^(walk-|toggle|leave|isolate|inspector|outline)/], ["View", /^(panel|fullscreen|save|keys|more)/],
];

/** What a command is for: a tab's word, or another task's. */
export function taskOf(id: string): string {
  return TABS.find(({ acts }) => acts.includes(id))?.word ?? TASKS.find(([, named]) => named.test(id))?.[0] ?? "Picture";
}

/** The tab that a panel belongs to. */
export function tabOf(panel: string): Tab | undefined {
  return TABS.find(({ panels }) => panels.includes(panel));
}
