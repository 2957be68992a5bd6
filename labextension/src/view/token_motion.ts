/**
 * Values on their way: a dot starts when the kernel tells of it, travels in a time that fits the pace, and
 * rests where it has arrived until the next ones start. Time comes in.
 */
import type { ChosenIteration } from "../model/running.js";
import type { EdgePaths } from "../model/edge_paths.js";
import type { MovingToken } from "../render/running.js";
import type { RunState, Token } from "../wire/messages.js";

const LEAST_MS = 150;
const MOST_MS = 700;
/** Dots that are shown at once; of more, the last ones. */
const MOST = 40;
/** The kernel tells about eight times a second: what comes together starts within this time. */
const SPREAD_MS = 110;

export class TokenMotion {
  #tokens: readonly Token[] = [];
  #startedAt = 0;
  #pace_ms = 0;

  get count(): number {
    return this.#tokens.length;
  }

  /** Takes what has moved; what rests stays while the run is stepped or slow and nothing moves. */
  take(run: RunState | null, now_ms: number): void {
    if (run && run.tokens.length > 0) {
      this.#tokens = run.tokens.slice(-MOST);
      this.#startedAt = now_ms;
      this.#pace_ms = run.pace_s * 1000;
    } else if (!run || (run.position === null && (run.pace_s === 0 || run.frames.length === 0))) {
      this.#tokens = [];
    }
  }

  /** Whether a dot is still travelling. */
  moves(now_ms: number): boolean {
    return this.#tokens.length > 0 && now_ms < this.#startedAt + this.#gap * (this.#tokens.length - 1) + this.#travel;
  }

  /** The dots as they stand now; without motion they stand half way. */
  at(now_ms: number, edgePaths: EdgePaths, chosen: ChosenIteration | null, isStill: boolean): MovingToken[] {
    return this.#tokens.flatMap((token, k) => {
      const since = now_ms - this.#startedAt - k * this.#gap;
      const [from, to] = [edgePaths.boxOf(token.source), edgePaths.boxOf(token.target)];
      if (since < 0 || from === null || to === null) return [];
      const share = isStill ? 0.5 : eased(Math.min(1, since / this.#travel));
      const links = edgePaths.find(token.source, token.output, token.target);
      return [{ links, from, to, text: textOf(token), isDead: token.is_dead, isFaint: isOther(token, chosen), share }];
    });
  }

  get #travel(): number {
    return this.#pace_ms > 0 ? Math.min(MOST_MS, Math.max(LEAST_MS, 0.8 * this.#pace_ms)) : MOST_MS / 2;
  }

  get #gap(): number {
    return Math.min(this.#pace_ms, SPREAD_MS / Math.max(1, this.#tokens.length));
  }
}

function textOf({ iterations }: Token): string {
  return iterations.length > 0 ? String(iterations[iterations.length - 1]) : "";
}

function isOther({ frame, iterations }: Token, chosen: ChosenIteration | null): boolean {
  return chosen !== null && frame === chosen.frame && iterations[iterations.length - 1] !== chosen.number;
}

const eased = (t: number): number => t * t * (3 - 2 * t);
