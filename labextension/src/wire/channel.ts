/**
 * The live channel as a state machine: messages and wishes in, instructions out. It knows no DOM,
 * no socket and no clock; whoever owns it carries the instructions out.
 */
import { PROTOCOL, QUESTIONS, type Ack, type Command, type Delta, type FromKernel, type FromView, type Questions, type Reply, type Snapshot } from "./messages.js";

export type ChannelState = "new" | "connecting" | "synced" | "gap" | "away" | "closed";

export type QuestionKind = keyof Questions;

/** What a view says of a question: all but itself. */
export type Wish<K extends QuestionKind> = Omit<Questions[K][0], "view" | "kind">;

/** A question without the view that asks it. */
export type Asked = { [K in QuestionKind]: Wish<K> & { readonly kind: K } }[QuestionKind];

/** What answers a question, and not a command. */
export type Answer = Questions[QuestionKind][1];

export type ChannelEvent =
  | { readonly kind: "open" }
  | { readonly kind: "message"; readonly message: FromKernel; readonly at_ms: number }
  | { readonly kind: "command"; readonly name: Command["name"]; readonly value?: Command["value"]; readonly at_ms: number }
  | { readonly kind: "ask"; readonly question: Asked }
  | { readonly kind: "alive" }
  | { readonly kind: "away" }
  | { readonly kind: "close" };

export type Instruction =
  | { readonly kind: "send"; readonly message: FromView }
  /** The message is to be shown, and then acknowledged. */
  | { readonly kind: "deliver"; readonly message: Snapshot | Delta; readonly ack: Ack }
  /** The answer to a question. */
  | { readonly kind: "told"; readonly message: Answer }
  | { readonly kind: "answered"; readonly name: Command["name"] | null; readonly reply: Reply; readonly took_ms: number };

const isAnswer = (message: FromKernel): message is Answer => ANSWERS.has(message.kind);
const ANSWERS: ReadonlySet<FromKernel["kind"]> = new Set(Object.values(QUESTIONS).map(({ answer }) => answer));
const KINDS: ReadonlySet<FromKernel["kind"]> = new Set([...ANSWERS, "snapshot", "delta", "reply"]);

/** What the table is asked about: a delta is told apart by its number. */
type Trigger = "open" | "close" | "alive" | "away" | "command" | "ask" | "snapshot" | "reply" | "told" | "next" | "ahead" | "old";

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
    snapshot: adopt, reply: answer("connecting"), told: tell("connecting"), ask: drop("connecting"), alive: stay("connecting"), away, close: leave,
    // Deltas that were on their way before the snapshot say nothing we can use.
    next: drop("connecting"), ahead: drop("connecting"), old: drop("connecting"),
  },
  synced: {
    // The kernel may put a snapshot in the place of many deltas.
    snapshot: adopt, reply: answer("synced"), told: tell("synced"), command: ask("synced"), ask: ask("synced"), alive: stay("synced"), away, close: leave,
    next: { action: "apply", next: "synced" }, old: drop("synced"),
    ahead: { action: "connect", next: "gap" },
  },
  gap: {
    snapshot: adopt, reply: answer("gap"), told: tell("gap"), command: ask("gap"), ask: ask("gap"), alive: stay("gap"), away, close: leave,
    next: drop("gap"), ahead: drop("gap"), old: drop("gap"),
  },
  // The page is hidden for good, or comes back from the browser's memory.
  away: {
    open: { action: "connect", next: "connecting" }, close: end, alive: drop("away"), away: drop("away"),
    snapshot: drop("away"), reply: drop("away"), told: drop("away"), ask: drop("away"), next: drop("away"), ahead: drop("away"), old: drop("away"),
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
    if (event.kind !== "message") return event.kind;
    const message = event.message;
    if (isAnswer(message)) return "told";
    if (message.kind !== "delta") return message.kind;
    if (message.seq <= this.#seq) return "old";
    return message.seq === this.#seq + 1 ? "next" : "ahead";
  }

  #act(action: Action, event: ChannelEvent): readonly Instruction[] {
    if (action === "connect") return [{ kind: "send", message: { kind: "connect", view: this.#view, protocol: PROTOCOL } }];
    if (action === "stay") return [{ kind: "send", message: { kind: "alive", view: this.#view } }];
    if (action === "leave") return [{ kind: "send", message: { kind: "disconnect", view: this.#view } }];
    if (event.kind === "command" && action === "ask") return [this.#ask(event.name, event.value ?? null, event.at_ms)];
    if (event.kind === "ask" && action === "ask") return [{ kind: "send", message: { ...event.question, view: this.#view } as FromView }];
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
