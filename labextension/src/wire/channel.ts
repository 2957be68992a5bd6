/**
 * The live channel as a state machine: messages and wishes in, instructions out. It knows no DOM,
 * no socket and no clock; whoever owns it carries the instructions out.
 */
import { PROTOCOL, type Ack, type AskCluster, type AskCulprit, type AskExplanation, type AskExport, type AskFindings, type AskHistory, type AskPlacement, type AskSpans, type AskSummaries, type AskValues, type AskVariables, type Cluster, type Command, type Culprit, type Delta, type Explanation, type Export, type Findings, type FromKernel, type FromView, type Placement, type Reply, type Snapshot, type Spans, type Summaries, type TensorHistory, type Values, type Variables } from "./messages.js";

export type ChannelState = "new" | "connecting" | "synced" | "gap" | "away" | "closed";

/** What a view wants to know of a traced step. */
export type SpansWish = Pick<AskSpans, "request_id" | "step" | "begin_us" | "end_us" | "most">;

/** What a view wants to know of a held step's values. */
export type ValuesWish = Pick<AskValues, "request_id" | "stop" | "tensors" | "at">;

/** What a view wants to know of devices. */
export type PlacementWish = Pick<AskPlacement, "request_id" | "name" | "device" | "parts">;
/** What a view wants to know of the values that a tensor had. */
export type HistoryWish = Pick<AskHistory, "request_id" | "tensor" | "most" | "row" | "at">;
/** What a view wants to know of summaries. */
export type SummariesWish = Pick<AskSummaries, "request_id" | "step">;

/** What a view wants to have explained. */
export type ExplanationWish = Pick<AskExplanation, "request_id" | "name">;

/** What a view wants to know of variables. */
export type VariablesWish = Pick<AskVariables, "request_id" | "measured" | "step">;

/** What a view wants to know of the cluster. */
export type ClusterWish = Pick<AskCluster, "request_id">;

/** What a view wants to know of what a watchpoint has found, and of why steps are slow. */
export type CulpritWish = Pick<AskCulprit, "request_id" | "stop">;
export type ExportWish = Pick<AskExport, "request_id" | "what">;
export type FindingsWish = Pick<AskFindings, "request_id" | "program">;

export type ChannelEvent =
  | { readonly kind: "open" }
  | { readonly kind: "message"; readonly message: FromKernel; readonly at_ms: number }
  | { readonly kind: "command"; readonly name: Command["name"]; readonly value?: Command["value"]; readonly at_ms: number }
  | { readonly kind: "ask"; readonly wish: SpansWish }
  | { readonly kind: "ask_values"; readonly wish: ValuesWish }
  | { readonly kind: "ask_placement"; readonly wish: PlacementWish }
  | { readonly kind: "ask_history"; readonly wish: HistoryWish }
  | { readonly kind: "ask_cluster"; readonly wish: ClusterWish }
  | { readonly kind: "ask_summaries"; readonly wish: SummariesWish }
  | { readonly kind: "ask_explanation"; readonly wish: ExplanationWish }
  | { readonly kind: "ask_variables"; readonly wish: VariablesWish }
  | { readonly kind: "ask_culprit"; readonly wish: CulpritWish }
  | { readonly kind: "ask_findings"; readonly wish: FindingsWish }
  | { readonly kind: "ask_export"; readonly wish: ExportWish }
  | { readonly kind: "alive" }
  | { readonly kind: "away" }
  | { readonly kind: "close" };

export type Instruction =
  | { readonly kind: "send"; readonly message: FromView }
  /** The message is to be shown, and then acknowledged. */
  | { readonly kind: "deliver"; readonly message: Snapshot | Delta; readonly ack: Ack }
  /** The answer to what was asked of a traced step, of the values of a held one or of the past, of devices or of the cluster. */
  | { readonly kind: "told"; readonly message: Answer }
  | { readonly kind: "answered"; readonly name: Command["name"] | null; readonly reply: Reply; readonly took_ms: number };

/** What answers a question, and not a command. */
type Answer = Spans | Values | Placement | TensorHistory | Cluster | Summaries | Explanation | Variables | Culprit | Findings | Export;

const isAnswer = (message: FromKernel): message is Answer => ANSWERS.has(message.kind);
const ANSWERS: ReadonlySet<FromKernel["kind"]> = new Set(["spans", "values", "placement", "history", "cluster", "summaries", "explanation", "variables", "culprit", "findings", "export"]);
const KINDS: ReadonlySet<FromKernel["kind"]> = new Set([...ANSWERS, "snapshot", "delta", "reply"]);

/** What the table is asked about: a delta is told apart by its number. */
type Trigger = "open" | "close" | "alive" | "away" | "command" | "ask" | "snapshot" | "reply" | "spans" | "next" | "ahead" | "old";

type Action = "connect" | "adopt" | "apply" | "drop" | "ask" | "answer" | "tell" | "stay" | "leave" | "end";

interface Transition {
  readonly action: Action;
  readonly next: ChannelState;
}

const answer = (next: ChannelState): Transition => ({ action: "answer", next });
const tell = (next: ChannelState): Transition => ({ action: "tell", next });
const drop = (next: ChannelState): Transition => ({ action: "drop", next });
const ask = (next: ChannelState): Transition => ({ action: "ask", next });
const adopt: Transition = { action: "adopt", next: "synced" };
const end: Transition = { action: "end", next: "closed" };
const leave: Transition = { action: "leave", next: "closed" };
const away: Transition = { action: "leave", next: "away" };
const stay = (next: ChannelState): Transition => ({ action: "stay", next });

/** Every pair that may happen; any other is a mistake of the owner and throws. */
const TABLE: Readonly<Record<ChannelState, Partial<Record<Trigger, Transition>>>> = {
  new: { open: { action: "connect", next: "connecting" }, close: end },
  connecting: {
    snapshot: adopt, reply: answer("connecting"), spans: tell("connecting"), ask: drop("connecting"), alive: stay("connecting"), away, close: leave,
    // Deltas that were on their way before the snapshot say nothing we can use.
    next: drop("connecting"), ahead: drop("connecting"), old: drop("connecting"),
  },
  synced: {
    // The kernel may put a snapshot in the place of many deltas.
    snapshot: adopt, reply: answer("synced"), spans: tell("synced"), command: ask("synced"), ask: ask("synced"), alive: stay("synced"), away, close: leave,
    next: { action: "apply", next: "synced" }, old: drop("synced"),
    ahead: { action: "connect", next: "gap" },
  },
  gap: {
    snapshot: adopt, reply: answer("gap"), spans: tell("gap"), command: ask("gap"), ask: ask("gap"), alive: stay("gap"), away, close: leave,
    next: drop("gap"), ahead: drop("gap"), old: drop("gap"),
  },
  // The page is hidden for good, or comes back from the browser's memory.
  away: {
    open: { action: "connect", next: "connecting" }, close: end, alive: drop("away"), away: drop("away"),
    snapshot: drop("away"), reply: drop("away"), spans: drop("away"), ask: drop("away"), next: drop("away"), ahead: drop("away"), old: drop("away"),
  },
  closed: { close: end },
};

interface Pending {
  readonly name: Command["name"];
  readonly at_ms: number;
}

export class Channel {
  #state: ChannelState = "new";
  #seq = -1;
  readonly #view: number;
  #nextCommand: number;
  readonly #pending = new Map<number, Pending>();

  /** Views of one widget hear each other's replies: each has a number, and counts its commands from it. */
  constructor(view = 1) {
    this.#view = view;
    this.#nextCommand = view;
  }

  get state(): ChannelState {
    return this.#state;
  }

  /** Whether a command may be given now. */
  get takesCommands(): boolean {
    return TABLE[this.#state].command !== undefined;
  }

  /** Moves by one event and returns what to do. Throws for a pair that is not in the table. */
  take(event: ChannelEvent): readonly Instruction[] {
    if (event.kind === "message" && event.message.view !== 0 && event.message.view !== this.#view) return [];
    const trigger = this.#trigger(event);
    const transition = TABLE[this.#state][trigger];
    if (!transition) throw new Error(`channel: "${trigger}" cannot happen while "${this.#state}"`);
    this.#state = transition.next;
    return this.#act(transition.action, event);
  }

  #trigger(event: ChannelEvent): Trigger {
    if ("wish" in event) return "ask";
    if (event.kind !== "message") return event.kind;
    const message = event.message;
    if (isAnswer(message)) return "spans";
    if (message.kind !== "delta") return message.kind;
    if (message.seq <= this.#seq) return "old";
    return message.seq === this.#seq + 1 ? "next" : "ahead";
  }

  #act(action: Action, event: ChannelEvent): readonly Instruction[] {
    if (action === "connect") return [{ kind: "send", message: { kind: "connect", view: this.#view, protocol: PROTOCOL } }];
    if (action === "stay") return [{ kind: "send", message: { kind: "alive", view: this.#view } }];
    if (action === "leave") return [{ kind: "send", message: { kind: "disconnect", view: this.#view } }];
    if (event.kind === "command" && action === "ask") return [this.#ask(event.name, event.value ?? null, event.at_ms)];
    if (event.kind === "ask" && action === "ask") return [{ kind: "send", message: { kind: "ask_spans", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_values" && action === "ask") return [{ kind: "send", message: { kind: "ask_values", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_placement" && action === "ask") return [{ kind: "send", message: { kind: "ask_placement", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_history" && action === "ask") return [{ kind: "send", message: { kind: "ask_history", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_cluster" && action === "ask") return [{ kind: "send", message: { kind: "ask_cluster", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_summaries" && action === "ask") return [{ kind: "send", message: { kind: "ask_summaries", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_variables" && action === "ask") return [{ kind: "send", message: { kind: "ask_variables", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_explanation" && action === "ask") return [{ kind: "send", message: { kind: "ask_explanation", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_culprit" && action === "ask") return [{ kind: "send", message: { kind: "ask_culprit", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_export" && action === "ask") return [{ kind: "send", message: { kind: "ask_export", ...event.wish, view: this.#view } }];
    if (event.kind === "ask_findings" && action === "ask") return [{ kind: "send", message: { kind: "ask_findings", ...event.wish, view: this.#view } }];
    if (event.kind !== "message") return [];
    const message = event.message;
    if (action === "drop") return [];
    if (isAnswer(message)) return [{ kind: "told", message }];
    if (message.kind === "reply") return [this.#answer(message, event.at_ms)];
    this.#seq = message.seq;
    return [{ kind: "deliver", message, ack: { kind: "ack", view: this.#view, seq: message.seq } }];
  }

  #ask(name: Command["name"], value: Command["value"], at_ms: number): Instruction {
    const command_id = this.#nextCommand++;
    this.#pending.set(command_id, { name, at_ms });
    return { kind: "send", message: { kind: "command", command_id, name, value, view: this.#view } };
  }

  /** Another view's reply reaches us too; it comes back with the name null. */
  #answer(reply: Reply, at_ms: number): Instruction {
    const asked = this.#pending.get(reply.command_id);
    this.#pending.delete(reply.command_id);
    return { kind: "answered", name: asked?.name ?? null, reply, took_ms: asked ? at_ms - asked.at_ms : 0 };
  }
}

/** Whether a custom message is one of ours. */
export function isFromKernel(message: unknown): message is FromKernel {
  if (typeof message !== "object" || message === null) return false;
  const kind = (message as { kind?: unknown }).kind;
  return KINDS.has(kind as FromKernel["kind"]);
}
