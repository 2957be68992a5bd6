/**
 * What a view shows of its session, in one word, and what can be done then. Pure: header, buttons and what they say are
 * functions of it, so that they never contradict each other.
 */
import type { SessionState, StopState } from "../wire/messages.js";
import { shortName } from "./scopes.js";

/** How a view is joined to a kernel: a saved picture, a recording, a page of a graph, nobody answers now, or commands are heard. */
export type Link = "saved" | "recording" | "graph" | "silent" | "heard";

/** "past": a step computed again stands; moves are its own. "held": at a breakpoint; "paused": by hand. */
export type ViewKind =
  | "saved" | "recording" | "graph" | "lost" | "none" | "idle" | "running" | "pausing" | "paused" | "held" | "past" | "stopping" | "stopped" | "closed";

/** What the button beside the state does: holds the next step, lets the held one go on, or leaves the past. */
export type PauseAction = "pause" | "continue" | "leave past";

export interface ViewState {
  readonly kind: ViewKind;
  readonly text: string;
  /** Why it is not live, and what to do about it; "" where it is. */
  readonly why: string;
  /** The recorded step that values, shares, devices, variables and the cluster are shown of; null for the present. */
  readonly shown: number | null;
  /** null where there is nothing to pause and nothing to let go on. */
  readonly pause: PauseAction | null;
  /** Whether a move - an operation, an iteration - can be asked for. */
  readonly canMove: boolean;
  /** Whether a step stands whose values can be asked for: its loops can be left, it can be run to its end. */
  readonly isHeld: boolean;
  readonly canStop: boolean;
  /** Whether steps make progress: only then is a time left that can be told. */
  readonly isGoing: boolean;
}

type Allowed = Omit<ViewState, "kind" | "text" | "why" | "shown" | "isHeld">;

const NOTHING: Allowed = { pause: null, canMove: false, canStop: false, isGoing: false };

/** What can be done, by kind. */
export const ALLOWED: Readonly<Record<ViewKind, Allowed>> = {
  saved: NOTHING, recording: NOTHING, graph: NOTHING, lost: NOTHING, none: NOTHING, closed: NOTHING, stopping: NOTHING,
  idle: { ...NOTHING, pause: "pause" },
  stopped: { ...NOTHING, pause: "pause" },
  running: { pause: "pause", canMove: true, canStop: true, isGoing: true },
  pausing: { pause: "continue", canMove: true, canStop: true, isGoing: false },
  paused: { pause: "continue", canMove: true, canStop: true, isGoing: false },
  held: { pause: "continue", canMove: true, canStop: true, isGoing: false },
  past: { pause: "leave past", canMove: true, canStop: false, isGoing: false },
};

const TEXT: Readonly<Record<ViewKind, string>> = {
  saved: "saved", recording: "recording", graph: "graph", lost: "not connected", none: "no session", idle: "idle", running: "running",
  pausing: "pausing\u2026", paused: "paused", held: "held", past: "past", stopping: "stopping\u2026", stopped: "stopped", closed: "closed",
};

/** Of what is not live: why, and what to do. */
const WHY: Readonly<Partial<Record<ViewKind, string>>> = {
  saved: "A saved picture: run its cell for the live view.",
  recording: "A recording: it can be gone through, but nothing runs. Run its program for a live view.",
  graph: "A graph: it can be gone through, but nothing runs. Load it in Python for a live view.",
  lost: "No answer from the kernel: it is busy with a cell, or has ended. The view comes when the cell ends; after a restart run the cell again. With the kernel \"Python 3 (flowscope)\" views are live while cells run.",
  none: "No session runs this graph: make one, fs.Session(), and run something.",
  closed: "The session is closed: make another one, fs.Session(), to run this graph.",
};

/**
 * @param stop the step that is looked at where one stands
 * @param shown the recorded step that was gone back to; null for the present
 * @param nameOf the name of the operation that is next there; null where it has none here
 */
export function viewState(link: Link, session: SessionState | null, stop: StopState | null, shown: number | null, nameOf: (op: number) => string | null): ViewState {
  const kind = kindOf(link, session, stop);
  const allowed = ALLOWED[kind];
  const isHeld = link === "heard" && stop !== null;
  // The real step can be stopped while the past is looked at.
  const canStop = allowed.canStop || (kind === "past" && session !== null && ALLOWED[session.state].canStop);
  // What is computed again says itself which step it is.
  const text = `${textOf(kind, session, stop, nameOf)}${shown === null || kind === "past" ? "" : `; step ${shown} shown`}`;
  return { kind, text, why: WHY[kind] ?? "", shown, ...allowed, isHeld, canStop };
}

function kindOf(link: Link, session: SessionState | null, stop: StopState | null): ViewKind {
  if (link === "saved" || link === "recording" || link === "graph") return link;
  if (link === "silent") return "lost";
  if (session === null) return "none";
  if (session.state === "closed") return "closed";
  if (stop?.is_past === true) return "past";
  if (session.state === "paused" && stop !== null && stop.breakpoint !== null) return "held";
  return session.state;
}

function textOf(kind: ViewKind, session: SessionState | null, stop: StopState | null, nameOf: (op: number) => string | null): string {
  if (kind === "past") {
    const others = (session?.debug?.stops ?? []).filter(({ is_past }) => !is_past);
    return `past: step ${stop?.step ?? "?"}${others.length > 0 ? `, step ${others[0]?.step ?? "?"} is held` : ""}`;
  }
  if (kind !== "held" || stop === null) return TEXT[kind];
  const made = stop.culprit === null ? null : nameOf(stop.culprit);
  if (made !== null) return `held after ${shortName(made)}`;
  const name = stop.op === null ? null : nameOf(stop.op);
  return name === null ? "held" : `held at ${shortName(name)}`;
}
