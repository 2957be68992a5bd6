/** What runs, over the picture: joins the run's state, the lines of the picture and the clock. */
import type { Positions } from "../layout/types.js";
import type { BoxId } from "../model/ids.js";
import { chipsOf, type ChosenIteration } from "../model/running.js";
import type { EdgePaths } from "../model/edge_paths.js";
import type { Mark } from "../render/marks.js";
import { failedMarks } from "../render/failed.js";
import { runningMarks } from "../render/running.js";
import type { Theme } from "../render/theme.js";
import type { RunState } from "../wire/messages.js";
import { TokenMotion } from "./token_motion.js";

export class RunningLayer {
  /** The iteration that the user has chosen; values of others are faint. */
  chosen: ChosenIteration | null = null;
  /** The lines of the picture that is shown. */
  edgePaths: EdgePaths | null = null;
  readonly #motion = new TokenMotion();
  #run: RunState | null = null;
  /** The operation at which the latest step failed. */
  failed: number | null = null;
  /** The operations that made what steps are held for. */
  culprits: readonly number[] = [];

  /** Takes the run's state; whether the picture differs now. */
  take(run: RunState | null, now_ms: number): boolean {
    if (run === this.#run) return false;
    this.#run = run;
    this.#motion.take(run, now_ms);
    return true;
  }

  /** How many values are on their way or have just arrived. */
  get tokens(): number {
    return this.#motion.count;
  }

  /** The box that shows the operation before which a step is held. */
  get held(): BoxId | null {
    const op = this.#run?.position?.op ?? null;
    return op === null ? null : (this.edgePaths?.boxOf(op) ?? null);
  }

  /** The box that shows the operation at which the latest step failed. */
  get failedBox(): BoxId | null {
    return this.failed === null ? null : (this.edgePaths?.boxOf(this.failed) ?? null);
  }

  moves(now_ms: number): boolean {
    return !isStill() && this.#motion.moves(now_ms);
  }

  /** What is drawn over the picture at a zoom. */
  marks(positions: Positions, theme: Theme, now_ms: number, zoom: number): Mark[] {
    const edgePaths = this.edgePaths;
    const found = this.culprits.flatMap((op) => edgePaths?.boxOf(op) ?? []).flatMap((box) => failedMarks(positions.boxes.get(box), theme, zoom, "NaN"));
    const failed = [...failedMarks(positions.boxes.get(this.failedBox ?? ""), theme, zoom), ...found];
    if (!edgePaths || !this.#run) return failed;
    const chips = chipsOf(this.#run, (op) => edgePaths.frameOf(op), this.chosen);
    const tokens = this.#motion.at(now_ms, edgePaths, this.chosen, isStill());
    return [...failed, ...runningMarks({ chips, held: this.held, tokens }, positions, theme, zoom)];
  }
}

function isStill(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
