/** What a view says of the reply to a command. Pure. */
import type { Command, Reply } from "../wire/messages.js";

/** What these do is seen, so that success need not be told. */
const SEEN: ReadonlySet<Command["name"]> = new Set([
  "step_op", "step_iteration", "step_out", "step_run", "pace", "level", "run", "move", "unbreak", "enable", "disable", "stop_at_nan",
  "record", "replay", "step_back",
]);
/** What was said of an earlier try is over when these succeed. */
const ENDS: ReadonlySet<Command["name"]> = new Set(["level", "run", "move", "stop_at_nan"]);

export interface Said {
  readonly text: string;
  readonly isLasting: boolean;
}

/**
 * What is to be said; null where what is said stays. A reply to another view's command (`name` null) is not ours to show,
 * unless it failed.
 */
export function said(name: Command["name"] | null, { ok, message }: Pick<Reply, "ok" | "message">): Said | null {
  if (!ok) return { text: message, isLasting: true };
  if (name === null || SEEN.has(name)) return name !== null && ENDS.has(name) ? { text: "", isLasting: false } : null;
  return { text: message, isLasting: false };
}
