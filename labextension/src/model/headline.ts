/** What the header says of how far things have come: of a loop in Python, else of a loop in a long step. Pure. */
import type { RunState, SessionState } from "../wire/messages.js";
import { whole } from "./figures.js";
import type { ViewState } from "./view_state.js";
import { countText, inOrder, nameText, paceText, shareOf } from "./running.js";

export interface Headline {
  readonly text: string;
  /** How much is done, 0 to 1; null where that is not known. */
  readonly share: number | null;
  /** Seconds left; null where nothing runs or it cannot be told. */
  readonly left_s: number | null;
}

/** null where nothing has a beginning and an end. */
export function headline(session: SessionState | null, run: RunState | null, { kind, isGoing }: Pick<ViewState, "kind" | "isGoing">): Headline | null {
  // Between two steps of a loop in Python a session is idle, and the loop goes on.
  return ofProgress(session, isGoing || kind === "idle") ?? ofLoop(run, isGoing);
}

/** Iterations per second of the outermost loop; "" where none runs. */
export function loopRate(run: RunState | null, isGoing: boolean): string {
  const [outermost] = inOrder(run?.frames ?? []);
  return outermost && isGoing ? paceText(outermost.iterations_per_s) : "";
}

function ofProgress(session: SessionState | null, isGoing: boolean): Headline | null {
  const progress = session?.progress ?? null;
  if (!progress) return null;
  const { description, done, total, eta_s } = progress;
  const count = total === null ? whole(done) : `${whole(done)}/${whole(total)}`;
  const isDone = done === total;
  return {
    text: description ? `${description} ${count}` : count, share: total ? Math.min(1, done / total) : null,
    left_s: isDone || !isGoing ? null : eta_s,
  };
}

function ofLoop(run: RunState | null, isGoing: boolean): Headline | null {
  const [loop] = inOrder(run?.frames ?? []);
  if (!loop) return null;
  const { limit, iteration, iterations_per_s: rate } = loop;
  const left_s = isGoing && limit !== null && rate ? Math.max(0, limit - iteration) / rate : null;
  return { text: `${nameText(loop)} ${countText(loop)}`, share: shareOf(loop), left_s };
}
