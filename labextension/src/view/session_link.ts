/** A view's link to the session: sends what the user asks for, knows whether that is heard, and what is answered. */
import { Signal } from "../model/signal.js";
import type { ClusterWish, CulpritWish, ExplanationWish, ExportWish, FindingsWish, HistoryWish, PlacementWish, SpansWish, SummariesWish, ValuesWish, VariablesWish } from "../wire/channel.js";
import type { Command } from "../wire/messages.js";

export type SendCommand = (name: Command["name"], value?: Command["value"]) => void;

/** Asks what is told only when it is asked for. */
export type Ask = (
  question: { readonly kind: "ask"; readonly wish: SpansWish } | { readonly kind: "ask_values"; readonly wish: ValuesWish }
    | { readonly kind: "ask_placement"; readonly wish: PlacementWish } | { readonly kind: "ask_history"; readonly wish: HistoryWish }
    | { readonly kind: "ask_cluster"; readonly wish: ClusterWish }
    | { readonly kind: "ask_summaries"; readonly wish: SummariesWish }
    | { readonly kind: "ask_explanation"; readonly wish: ExplanationWish }
    | { readonly kind: "ask_variables"; readonly wish: VariablesWish }
    | { readonly kind: "ask_culprit"; readonly wish: CulpritWish } | { readonly kind: "ask_findings"; readonly wish: FindingsWish }
    | { readonly kind: "ask_export"; readonly wish: ExportWish },
) => void;

export class SessionLink {
  readonly changed = new Signal<void>();
  readonly #send: SendCommand | null;
  #isHeard = false;
  #message = "";
  #isLasting = false;
  #isRecorded = false;

  readonly #ask: Ask;

  /** Without `send` the view only shows. */
  constructor(send: SendCommand | null, ask: Ask = () => undefined) {
    this.#send = send;
    this.#ask = ask;
  }

  /** Asks what happened in a recorded step. */
  ask(wish: SpansWish): void {
    this.#ask({ kind: "ask", wish });
  }

  /** Asks for values of a held step. */
  askValues(wish: ValuesWish): void {
    this.#ask({ kind: "ask_values", wish });
  }

  /** Asks how the cluster is. */
  askCluster(wish: ClusterWish): void {
    this.#ask({ kind: "ask_cluster", wish });
  }

  /** Asks for the values that a recorded tensor had. */
  askHistory(wish: HistoryWish): void {
    this.#ask({ kind: "ask_history", wish });
  }

  /** Asks for what writers of summaries were given. */
  askSummaries(wish: SummariesWish): void {
    this.#ask({ kind: "ask_summaries", wish });
  }

  /** Asks what an operation does. */
  askExplanation(wish: ExplanationWish): void {
    this.#ask({ kind: "ask_explanation", wish });
  }

  /** Asks for the list of variables. */
  askVariables(wish: VariablesWish): void {
    this.#ask({ kind: "ask_variables", wish });
  }

  /** Asks what made the value that a watchpoint holds a step for. */
  askCulprit(wish: CulpritWish): void {
    this.#ask({ kind: "ask_culprit", wish });
  }

  /** Asks why steps are slow. */
  askFindings(wish: FindingsWish): void {
    this.#ask({ kind: "ask_findings", wish });
  }

  /** Asks for what was traced as a file. */
  askExport(wish: ExportWish): void {
    this.#ask({ kind: "ask_export", wish });
  }

  /** Asks where operations are placed. */
  askPlacement(wish: PlacementWish): void {
    this.#ask({ kind: "ask_placement", wish });
  }

  /** Whether there is a session to be asked. */
  get isLive(): boolean {
    return this.#send !== null && !this.#isRecorded;
  }

  /** Whether a recording is shown: it answers questions, but takes no commands. */
  get isRecorded(): boolean {
    return this.#isRecorded;
  }

  /** Whether commands are heard now. */
  get isHeard(): boolean {
    return this.#isHeard && !this.#isRecorded;
  }

  /** Whether questions are answered: by a kernel, or by a recording. */
  get isAnswered(): boolean {
    return this.#isHeard;
  }

  get message(): string {
    return this.#message;
  }

  /** Whether the message stays when the session's state changes. */
  get isLasting(): boolean {
    return this.#isLasting;
  }

  send(...command: Parameters<SendCommand>): void {
    this.#send?.(...command);
  }

  setRecorded(isRecorded: boolean): void {
    if (isRecorded === this.#isRecorded) return;
    this.#isRecorded = isRecorded;
    this.changed.emit();
  }

  setHeard(isHeard: boolean): void {
    if (isHeard === this.#isHeard) return;
    this.#isHeard = isHeard;
    this.changed.emit();
  }

  say(message: string, isLasting: boolean): void {
    this.#message = message;
    this.#isLasting = isLasting;
    this.changed.emit();
  }
}
