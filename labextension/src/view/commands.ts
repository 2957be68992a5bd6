/**
 * All commands of a view, with their keys. The keys of the stage, the buttons and the help read this table: a
 * command is an entry here.
 */
import { standingAt, targetOf, wishOf } from "../model/debug.js";
import { movable } from "../model/placement.js";
import type { Direction } from "../layout/walk.js";
import type { IconName } from "./dom.js";
import type { ViewContext } from "./context.js";
import { hasPanel, PANEL_EVENT, tellPage, type PanelWish } from "./host.js";
import { fetchesOf, statusText, toggled } from "../model/run_setup.js";
import { stateOf } from "./state.js";
import type { PauseAction } from "../model/view_state.js";
import { exportDot, exportPng, exportSvg, exportTraced } from "./save.js";

/** A part of a view that has keys of its own. */
export type KeyPlace = "stage" | "timeline";

export interface ViewCommand {
  readonly id: string;
  readonly label: string;
  /** As in `KeyboardEvent.key`; [] for none. */
  readonly keys: readonly string[];
  readonly icon?: IconName;
  /** Where its keys are heard: everywhere in the view, unless that place has the key for a command of its own. */
  readonly where?: KeyPlace;
  /** What the button's title says instead of the label. */
  readonly hint?: string;
  /** Label and icon while they differ from those above. */
  look?(view: ViewContext): { readonly label: string; readonly icon: IconName } | null;
  /** Whether a button that stays down is down. */
  isPressed?(view: ViewContext): boolean;
  /** Whether there is no button for it here. */
  isHidden?(view: ViewContext): boolean;
  isEnabled(view: ViewContext): boolean;
  /** Why it cannot be run now; "" where that is plain. */
  why?(view: ViewContext): string;
  run(view: ViewContext): void;
}

const ZOOM_STEP = 1.25;
const PAUSE_LOOKS: Readonly<Record<PauseAction, { readonly label: string; readonly icon: IconName } | null>> = {
  pause: null, continue: { label: "Continue", icon: "play" }, "leave past": { label: "Leave the past", icon: "play" },
};
const always = (): boolean => true;
const canDock = ({ isDocked, session }: ViewContext): boolean => hasPanel() && !isDocked && session.isLive;
const hasSelection = ({ selection }: ViewContext): boolean => selection.box !== null;

const walk = (id: string, label: string, key: string, direction: Direction): ViewCommand =>
  ({ id, label, keys: [key], isEnabled: always, run: ({ navigation }) => navigation.walk(direction) });

const step = (name: "step_back" | "step_op" | "step_iteration" | "step_out" | "step_run") => ({ session, navigation }: ViewContext): void => {
  navigation.letGo();
  session.send(name);
};

/** Closes what is open over the picture, then takes back what is chosen, one at a time. */
function leave({ drawers, store, navigation, root }: ViewContext): void {
  const over = ["more", "keys", "save"].find((id) => drawers.isOpen(id));
  if (over !== undefined) return drawers.toggle(over);
  if (drawers.isOpen("find") || store.find !== "") {
    store.setFind("", root);
    return drawers.setOpen("find", false);
  }
  if (store.isolated !== "") return store.setIsolated("", root);
  navigation.leave();
}

/** Puts an end of the ways that are sought into the question. */
const seek = (key: "from" | "to") => ({ store, root }: ViewContext): void => {
  const name = store.selection?.name ?? "";
  const other = new RegExp(`\\b${key === "from" ? "to" : "from"}:\\S+`).exec(store.find)?.[0];
  store.setFind([...(other && key === "to" ? [other] : []), `${key}:${name}`, ...(other && key === "from" ? [other] : [])].join(" "), root);
};

const walkFound = (by: 1 | -1) => ({ finder, selection, navigation }: ViewContext): void => {
  const to = finder.next(selection.box, by);
  if (to !== null) navigation.goNear(to);
};
const hasFound = ({ finder }: ViewContext): boolean => finder.found.ops.length > 0;

const SAVED = "this picture was saved without its kernel; run the cell for the live view";
const RECORDED = "this is a recording: nothing runs here";
const noRun = ({ runs, model, session }: ViewContext): string =>
  session.isRecorded ? RECORDED : !runs.isLive ? SAVED : model.level === "graph" ? "" : "this is the program as lowered; l shows the graph";
const fetchable = ({ model, selection }: ViewContext): readonly string[] => fetchesOf(model, selection.subject);
const canFetch = (view: ViewContext): boolean => noRun(view) === "" && fetchable(view).length > 0;
const isFetched = (view: ViewContext): boolean => {
  const names = fetchable(view);
  return names.length > 0 && names.every((name) => view.runs.setup.fetches.includes(name));
};
/** The tensor that is fed where an operation is selected. */
const fed = ({ runs, model, selection }: ViewContext): string | null => {
  const [name] = fetchesOf(model, selection.subject);
  return runs.setup.needs.find((need) => need.name === name)?.name ?? null;
};

const isHeld = (view: ViewContext): boolean => stateOf(view).isHeld;
const target = ({ model, selection }: ViewContext): ReturnType<typeof targetOf> => targetOf(model, selection.subject);

/** Sets a breakpoint at the selection, or removes the one that stands there. */
function breakAt(id: string, label: string, key: string, shape: IconName, isAfter: boolean): ViewCommand {
  const standing = (view: ViewContext): number | null => {
    const at = target(view);
    return at === null ? null : (standingAt(view.debug.state, at, isAfter)?.number ?? null);
  };
  return {
    id, label, keys: [key], icon: shape, hint: `${label} the selected operation: its step is held there`,
    isPressed: (view) => standing(view) !== null,
    isEnabled: (view) => view.session.isHeard && target(view) !== null,
    why: (view) => (view.session.isHeard ? "select an operation first" : ""),
    run: (view) => {
      const [at, number] = [target(view), standing(view)];
      view.drawers.setOpen("debug", true);
      if (number !== null) view.session.send("unbreak", number);
      else if (at !== null) view.session.send("break", wishOf(at, isAfter, ""));
    },
  };
}

const stepBy = (by: 1 | -1) => ({ rewind, root }: ViewContext): void => rewind.move(by, root);
const hasSteps = ({ rewind }: ViewContext): boolean => rewind.steps.length > 0;
const hasSpans = ({ trace }: ViewContext): boolean => trace.recording !== null;

/** What the boxes show next. */
const NEXT_SHARE = { off: "time", time: "memory", memory: "off", device: "time", weights: "flops", flops: "off" } as const;

/** Steps a second that are recorded: as many as are told. */
const RECORDED_PER_S = 8;

/** Records, or ends it; what is recorded is then looked at. */
function record({ session, trace, drawers, store, root }: ViewContext): void {
  session.send("trace", trace.isRecording ? 0 : RECORDED_PER_S);
  if (trace.isRecording) return;
  drawers.setOpen("timeline", true);
  if (store.heat === "off") store.setHeat("time", root);
}

/** Steps are traced as long as somebody asks why they are slow. */
function whySlow({ session, trace, drawers }: ViewContext): void {
  if (!drawers.isOpen("why-slow") && !trace.isRecording && session.isHeard) session.send("trace", RECORDED_PER_S);
  drawers.toggle("why-slow");
}

function stopAtNan({ session, culprit, drawers }: ViewContext): void {
  session.send("stop_at_nan", culprit.isArmed ? 0 : 1);
  drawers.setOpen("stop-at-nan", !culprit.isArmed);
}

const inTime = (id: string, label: string, keys: readonly string[], act: (view: ViewContext) => void, icon?: IconName): ViewCommand =>
  ({ id, label, keys, ...(icon ? { icon } : {}), where: "timeline", isEnabled: hasSpans, run: act });

const saveSteps = (what: "chrome" | "recording" | "html", label: string): ViewCommand => ({
  id: `export-${what}`, label, keys: [], icon: "save", isEnabled: ({ session, trace }) => session.isHeard && trace.steps.length > 0,
  why: ({ session }) => (session.isHeard ? "no step was recorded yet" : "the kernel writes it"), run: exportTraced(what),
});

export const COMMANDS: readonly ViewCommand[] = [
  {
    id: "pause", label: "Pause", keys: [" "], icon: "pause",
    look: (view) => PAUSE_LOOKS[stateOf(view).pause ?? "pause"],
    isEnabled: (view) => stateOf(view).pause !== null,
    run: (view) => view.session.send(stateOf(view).pause === "pause" ? "pause" : "resume"),
  },
  {
    id: "step-op", label: "Step one operation", keys: ["."], icon: "stepOp",
    isEnabled: (view) => stateOf(view).canMove, run: step("step_op"),
  },
  {
    id: "step-iteration", label: "Step one iteration", keys: [">"], icon: "stepIteration",
    isEnabled: (view) => stateOf(view).canMove, run: step("step_iteration"),
  },
  {
    id: "stop", label: "Stop", keys: [], icon: "stop",
    isEnabled: (view) => stateOf(view).canStop, run: ({ session }) => session.send("stop"),
  },
  {
    id: "step-back", label: "Step back one operation", keys: [","], icon: "stepBack",
    hint: "Compute the step again, up to the operation that ran last", isHidden: ({ session }) => session.isRecorded,
    isEnabled: (view) => isHeld(view) && view.past.state !== null,
    why: (view) => (isHeld(view) ? "steps have to be recorded first, in the panel Past" : "no step is held"), run: step("step_back"),
  },
  {
    id: "step-out", label: "Step out of the loop", keys: ["<"], icon: "stepOut", isEnabled: isHeld,
    why: () => "no step is held", run: step("step_out"),
  },
  {
    id: "step-run", label: "Run to the end of the step", keys: [";"], icon: "stepRun", isEnabled: isHeld,
    why: () => "no step is held", run: step("step_run"),
  },
  breakAt("break-before", "Break before", "b", "breakBefore", false),
  breakAt("break-after", "Break after", "B", "breakAfter", true),
  {
    id: "debug", label: "Debugger", keys: ["D"], icon: "debug", isPressed: ({ drawers }) => drawers.isOpen("debug"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("debug"),
  },
  {
    id: "stop-at-nan", label: "Stop at first NaN", keys: ["!"], icon: "nan", hint: "Holds a step where the first value that is NaN or infinite is made, and shows what made it",
    isPressed: ({ culprit }) => culprit.isArmed, isEnabled: ({ session, model }) => session.isHeard && model.session !== null,
    why: ({ session }) => (session.isRecorded ? RECORDED : "no session runs this graph"), run: stopAtNan,
  },
  {
    id: "value", label: "Value", keys: ["y"], icon: "value", hint: "The value of the selection where a step is held",
    isPressed: ({ drawers }) => drawers.isOpen("value"), isEnabled: always, run: ({ drawers }) => drawers.toggle("value"),
  },
  {
    id: "explain", label: "Explain", keys: ["E"], icon: "explain", hint: "What the selected operation does, with the values of a step",
    isPressed: ({ drawers }) => drawers.isOpen("explain"), isEnabled: always, run: ({ drawers }) => drawers.toggle("explain"),
  },
  {
    id: "past", label: "Past", keys: ["H"], icon: "past", hint: "Values over steps and iterations; steps computed again",
    isPressed: ({ drawers }) => drawers.isOpen("past"), isEnabled: always, run: ({ drawers }) => drawers.toggle("past"),
  },
  {
    id: "cluster", label: "Cluster", keys: ["C"], icon: "cluster", hint: "Workers, their memory and health, and what each waits for",
    isPressed: ({ drawers }) => drawers.isOpen("cluster"), isEnabled: always, run: ({ drawers }) => drawers.toggle("cluster"),
  },
  {
    id: "summaries", label: "Summaries", keys: ["u"], icon: "curve", hint: "Curves, histograms, pictures and texts that writers of summaries were given",
    isPressed: ({ drawers }) => drawers.isOpen("summaries"), isEnabled: always, run: ({ drawers }) => drawers.toggle("summaries"),
  },
  {
    id: "variables", label: "Variables", keys: ["w"], icon: "variable", hint: "All variables: bytes, where they lie, which step wrote them last, numbers of their values",
    isPressed: ({ drawers }) => drawers.isOpen("variables"), isEnabled: always, run: ({ drawers }) => drawers.toggle("variables"),
  },
  { id: "zoom-in", label: "Zoom in", keys: ["+", "="], icon: "plus", isEnabled: always, run: ({ stage }) => stage.zoomBy(ZOOM_STEP) },
  { id: "zoom-out", label: "Zoom out", keys: ["-"], icon: "minus", isEnabled: always, run: ({ stage }) => stage.zoomBy(1 / ZOOM_STEP) },
  { id: "fit", label: "Fit", keys: ["f"], icon: "fit", isEnabled: always, run: ({ stage }) => stage.fit() },
  {
    id: "outline", label: "Outline", keys: ["o"], icon: "outline", isPressed: ({ drawers }) => drawers.isOpen("outline"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("outline"),
  },
  {
    id: "find", label: "Search", keys: ["/"], icon: "search", isPressed: ({ drawers }) => drawers.isOpen("find"), isEnabled: always,
    run: ({ drawers, root }) => {
      drawers.setOpen("find", true);
      root.querySelector<HTMLInputElement>(".fs-find input")?.focus({ preventScroll: true });
    },
  },
  { id: "find-next", label: "Next found", keys: ["n"], icon: "down", isEnabled: hasFound, run: walkFound(1) },
  { id: "find-previous", label: "Previous found", keys: ["N"], icon: "up", isEnabled: hasFound, run: walkFound(-1) },
  { id: "find-from", label: "Show what follows from the selection", keys: ["["], isEnabled: hasSelection, run: seek("from") },
  { id: "find-to", label: "Show what the selection needs", keys: ["]"], isEnabled: hasSelection, run: seek("to") },
  {
    id: "find-changed", label: "Show what the last cell changed", keys: ["c"], icon: "changed", isEnabled: ({ model }) => model.marked.size > 0,
    run: ({ store, root }) => store.setFind("is:changed", root),
  },
  {
    id: "isolate", label: "Show the selection alone", keys: ["a"], icon: "isolate", isPressed: ({ store }) => store.isolated !== "",
    isEnabled: ({ store }) => store.isolated !== "" || store.selection !== null,
    run: ({ store, root }) => store.setIsolated(store.isolated === "" ? (store.selection?.name ?? "") : "", root),
  },
  {
    id: "inspector", label: "Inspector", keys: ["i"], icon: "inspector", isPressed: ({ drawers }) => drawers.isOpen("inspector"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("inspector"),
  },
  {
    id: "frames", label: "Running loops", keys: ["r"], icon: "frames", hint: "Loops that run, a row each, with their iterations in flight",
    isPressed: ({ drawers }) => drawers.isOpen("frames"), isEnabled: always, run: ({ drawers }) => drawers.toggle("frames"),
  },
  {
    id: "record", label: "Record steps", keys: ["R"], icon: "record", isPressed: ({ trace }) => trace.isRecording,
    look: ({ trace }) => (trace.isRecording ? { label: "Stop recording", icon: "recording" } : null),
    hint: "Record steps while they run: where their time goes",
    isEnabled: ({ session }) => session.isHeard, run: record,
  },
  {
    id: "timeline", label: "Timeline", keys: ["t"], icon: "timeline", isPressed: ({ drawers }) => drawers.isOpen("timeline"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("timeline"),
  },
  {
    id: "why-slow", label: "Why is it slow?", keys: ["W"], icon: "slow", hint: "What takes the time of a step, with evidence: an operation, copies, waiting, Python, plans",
    isPressed: ({ drawers }) => drawers.isOpen("why-slow"), isEnabled: always, run: whySlow,
  },
  {
    id: "costs", label: "Costs", hint: "Operations by what they cost", keys: ["T"], icon: "table", isPressed: ({ drawers }) => drawers.isOpen("costs"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("costs"),
  },
  {
    id: "heat", label: "Shares on boxes", hint: "Each box shows its share of the step: of time, of bytes made, nothing; of a model: of parameters, of flops", keys: ["h"], icon: "heat", isPressed: ({ store }) => store.heat !== "off" && store.heat !== "device",
    isEnabled: always,
    run: ({ store, model, root }) => store.setHeat(store.heat === "off" && model.control === "graph" ? "weights" : NEXT_SHARE[store.heat], root),
  },
  {
    id: "devices", label: "Devices", keys: ["d"], icon: "devices", hint: "Colours tell which device each operation stands on",
    isPressed: ({ store }) => store.heat === "device", isEnabled: always,
    run: ({ store, root }) => store.setHeat(store.heat === "device" ? "off" : "device", root),
  },
  {
    id: "move", label: "Move to device\u2026", keys: ["m"], icon: "move", hint: "Move the selected operation or scope to a device",
    isEnabled: (view) => view.session.isHeard && movable(view.model, view.selection.subject) !== null,
    why: (view) => (view.session.isHeard ? "select an operation or a scope of the graph first" : ""),
    run: ({ store, root }) => {
      store.setHeat("device", root);
      root.querySelector<HTMLElement>(".fs-devices .fs-move-here")?.focus({ preventScroll: true });
    },
  },
  {
    id: "compare", label: "Compare with this step", keys: [], icon: "compare", isPressed: ({ rewind }) => rewind.base !== null, isEnabled: ({ rewind }) => rewind.canCompare,
    hint: "Keep the step that is shown, and go to another one: boxes are coloured by what took longer or less", why: () => "go to a step that was traced first",
    run: ({ rewind, store, root }) => {
      rewind.compare();
      if (rewind.base !== null && store.heat !== "time") store.setHeat("time", root);
    },
  },
  {
    id: "play", label: "Play the recorded steps", keys: ["P"], icon: "play", isEnabled: hasSteps, isPressed: ({ rewind }) => rewind.isPlaying,
    hint: "Show one recorded step after another: values, shares, devices, variables, cluster", run: ({ rewind, root }) => rewind.play(root),
  },
  { id: "step-earlier", label: "Earlier recorded step", keys: ["{"], icon: "earlier", isEnabled: hasSteps, run: stepBy(-1) },
  { id: "step-later", label: "Later recorded step", keys: ["}"], icon: "later", isEnabled: hasSteps, run: stepBy(1) },
  inTime("time-in", "Zoom into time", ["w", "+", "="], ({ timeline }) => timeline.zoomBy(ZOOM_STEP), "plus"),
  inTime("time-out", "Zoom out of time", ["s", "-"], ({ timeline }) => timeline.zoomBy(1 / ZOOM_STEP), "minus"),
  inTime("time-left", "Pan to earlier times", ["a"], ({ timeline }) => timeline.panByShare(-0.2)),
  inTime("time-right", "Pan to later times", ["d"], ({ timeline }) => timeline.panByShare(0.2)),
  inTime("time-fit", "Fit the step", ["f"], ({ timeline }) => timeline.fit(), "fit"),
  inTime("time-sums", "Sums of what is seen, or none", ["r"], ({ timeline }) => (timeline.range === null ? timeline.selectSight() : timeline.select(null))),
  inTime("slice-left", "Go to the slice before", ["ArrowLeft"], ({ timeline }) => timeline.walk("left")),
  inTime("slice-right", "Go to the slice after", ["ArrowRight"], ({ timeline }) => timeline.walk("right")),
  inTime("slice-up", "Go to the slice around", ["ArrowUp"], ({ timeline }) => timeline.walk("up")),
  inTime("slice-down", "Go to a slice inside", ["ArrowDown"], ({ timeline }) => timeline.walk("down")),
  inTime("slice-zoom", "Zoom to the slice", ["Enter"], ({ timeline }) => timeline.zoomToChosen()),
  inTime("time-leave", "Back to the picture", ["Escape"], ({ stage }) => stage.element.focus({ preventScroll: true })),
  {
    id: "panel", label: "Open in a panel", keys: ["p"], icon: "panel", isHidden: (view) => !canDock(view), isEnabled: canDock,
    run: ({ root, graphKey }) => tellPage<PanelWish>(root, PANEL_EVENT, { graph: graphKey }),
  },
  {
    id: "fullscreen", label: "Full screen", keys: ["F"], icon: "fullscreen", isPressed: ({ root }) => document.fullscreenElement === root,
    isEnabled: () => document.fullscreenEnabled,
    run: ({ root }) => void (document.fullscreenElement === root ? document.exitFullscreen() : root.requestFullscreen()),
  },
  {
    id: "lowered", label: "Lowered", keys: ["l"], icon: "lowered",
    hint: "The program of the latest step as lowered: Switch, Merge, Enter, Exit, NextIteration",
    isPressed: ({ model }) => model.level === "lowered", isEnabled: ({ session }) => session.isLive,
    run: ({ session, model }) => session.send("level", model.level === "lowered" ? "graph" : "lowered"),
  },
  {
    id: "partitions", label: "Partitions", keys: ["L"], icon: "partitions",
    hint: "The program of the latest step as cut: a lane per device, and what goes from one to another",
    isPressed: ({ model }) => model.level === "partitions", isEnabled: ({ session }) => session.isLive,
    run: ({ session, model }) => session.send("level", model.level === "partitions" ? "graph" : "partitions"),
  },
  {
    id: "fetch", label: "Fetch", keys: ["v"], icon: "fetch", hint: "Fetch the value of the selection",
    look: (view) => (isFetched(view) ? { label: "Do not fetch", icon: "close" } : null),
    isPressed: isFetched, isEnabled: canFetch,
    why: (view) => noRun(view) || (hasSelection(view) ? "it has no single value; select an operation" : "select an operation first"),
    run: (view) => view.runs.fetch(toggled(view.runs.setup.fetches, fetchable(view))),
  },
  {
    id: "feed", label: "Feed the selection, and run nothing before it", keys: ["V"],
    isPressed: (view) => fed(view) !== null, isEnabled: canFetch, why: noRun,
    run: (view) => {
      const [name] = fetchable(view);
      if (name !== undefined) view.runs.feed(name, fed(view) === null ? "" : null);
    },
  },
  {
    id: "run", label: "Run", keys: ["x"], icon: "play", hint: "Run the fetches",
    isEnabled: (view) => noRun(view) === "" && view.session.isHeard && view.runs.isReady,
    why: (view) => noRun(view) || statusText(view.runs.setup), run: ({ session }) => session.send("run"),
  },
  {
    id: "run-panel", label: "Run from the picture", keys: ["e"], icon: "fetch", isPressed: ({ drawers }) => drawers.isOpen("run"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("run"),
  },
  {
    id: "input", label: "Input", keys: ["q"], icon: "queue", hint: "Queues and who waits at them; runners, coordinators and hooks",
    isPressed: ({ drawers }) => drawers.isOpen("input"), isEnabled: always, run: ({ drawers }) => drawers.toggle("input"),
  },
  {
    id: "save", label: "Save the picture", keys: ["S"], icon: "save", isPressed: ({ drawers }) => drawers.isOpen("save"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("save"),
  },
  { id: "export-svg", label: "Save as SVG", keys: [], icon: "save", isEnabled: always, run: exportSvg },
  { id: "export-png", label: "Save as PNG", keys: [], icon: "save", isEnabled: always, run: exportPng },
  saveSteps("chrome", "Save steps for Chrome, Perfetto"), saveSteps("recording", "Save steps as a recording"), saveSteps("html", "Save steps as HTML page"),
  { id: "export-dot", label: "Save as DOT (Graphviz)", keys: [], icon: "save", isEnabled: always, run: exportDot },
  walk("walk-up", "Go to an input", "ArrowUp", "up"),
  walk("walk-down", "Go to a consumer", "ArrowDown", "down"),
  walk("walk-left", "Go to the left neighbour", "ArrowLeft", "left"),
  walk("walk-right", "Go to the right neighbour", "ArrowRight", "right"),
  {
    id: "toggle", label: "Open or close the selection", keys: ["Enter"], isEnabled: hasSelection,
    run: ({ navigation, selection }) => selection.box !== null && navigation.toggle(selection.box),
  },
  {
    id: "leave", label: "Select what is around", keys: ["Escape"],
    isEnabled: always, run: leave,
  },
  {
    id: "more", label: "More", keys: [], icon: "more", isPressed: ({ drawers }) => drawers.isOpen("more"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("more"),
  },
  {
    id: "keys", label: "Keys", keys: ["?"], icon: "keys", isPressed: ({ drawers }) => drawers.isOpen("keys"),
    isEnabled: always, run: ({ drawers }) => drawers.toggle("keys"),
  },
];

const KEY_NAMES: Readonly<Record<string, string>> = {
  " ": "Space", ArrowUp: "\u2191", ArrowDown: "\u2193", ArrowLeft: "\u2190", ArrowRight: "\u2192", Escape: "Esc", "-": "\u2212",
};

/** A command's keys as they are shown: "+ =". */
export function keysText({ keys }: ViewCommand): string {
  return keys.map((key) => KEY_NAMES[key] ?? key).join(" ");
}
