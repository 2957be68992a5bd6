/** Puts a view into a page: joins the kernel's messages, the channel and the app. */
import { App } from "./app.js";
import type { Arrangement } from "./arrangement.js";
import type { WidgetState } from "./store_sync.js";
import { unpack, type Buffer } from "../wire/columns.js";
import { said } from "../model/replies.js";
import { finish, type Sliced } from "../wire/sliced.js";
import { Channel, isFromKernel, type ChannelEvent, type Instruction } from "../wire/channel.js";
import { PROTOCOL, type Ack, type Command, type Delta, type FromView, type Reply, type Snapshot } from "../wire/messages.js";

/** What is used of a widget model; each display of a widget shares it with the others. */
export interface WidgetModel extends WidgetState {
  on(event: string, listener: (message: unknown, buffers?: readonly Buffer[]) => void): void;
  off(event: string, listener: (message: unknown, buffers?: readonly Buffer[]) => void): void;
  send(message: FromView): void;
}

export interface RenderContext {
  readonly model: WidgetModel;
  readonly el: HTMLElement;
  readonly signal?: AbortSignal;
  /** How the view's parts stand; beside the stage where nothing is said. */
  readonly arrangement?: Arrangement;
}

export function render({ model, el, signal, arrangement }: RenderContext): () => void {
  const life = new AbortController();
  const channel = new Channel(Math.floor(Math.random() * 2 ** 40));
  const now = (): number => performance.now();
  const take = (event: ChannelEvent, buffers: readonly Buffer[] = []): void => {
    for (const instruction of channel.take(event)) carryOut(instruction, buffers);
    app.session.setHeard(channel.takesCommands);
  };
  const app = new App(el, (name, value) => {
    if (channel.takesCommands) take({ kind: "command", name, at_ms: now(), ...(value === undefined ? {} : { value }) });
  }, life.signal, model, arrangement, (question) => channel.takesCommands && take({ kind: "ask", question }));
  const beat = new Beat(() => take({ kind: "alive" }), life.signal);
  let isUnderstood = false;
  const carryOut = (instruction: Instruction, buffers: readonly Buffer[]): void => {
    if (instruction.kind === "send") model.send(instruction.message);
    else if (instruction.kind === "told") app.session.take(finish(unpack(instruction.message, buffers)));
    else if (instruction.kind === "answered") answer(app, instruction.name, instruction.reply);
    else if (instruction.kind === "deliver") deliver(instruction.message, instruction.ack, buffers);
  };
  const deliver = (message: Snapshot | Delta, ack: Ack, buffers: readonly Buffer[]): void => {
    if (message.kind === "snapshot") {
      const { protocol, silence_s } = message;
      isUnderstood = protocol === PROTOCOL;
      if (!isUnderstood) return app.session.say(otherVersion(protocol), true);
      beat.every(silence_s * 1000 / 3);
    }
    if (isUnderstood) app.slicer.later(takeUp(message, ack, buffers));
  };
  function* takeUp(message: Snapshot | Delta, ack: Ack, buffers: readonly Buffer[]): Sliced<void> {
    const told = yield* unpack(message, buffers);
    yield* told.kind === "snapshot" ? app.model.takeSnapshot(told) : app.model.takeDelta(told);
    if (told.kind === "snapshot" || told.trace) app.trace.takeState(told.trace ?? null, performance.now());
    // It is taken when it is drawn: a page that is not seen draws nothing, and is sent nothing more.
    requestAnimationFrame(() => !life.signal.aborted && model.send(ack));
  }
  const listen = (message: unknown, buffers: readonly Buffer[] = []): void => {
    if (isFromKernel(message)) take({ kind: "message", message, at_ms: now() }, buffers);
  };
  const dispose = (): void => {
    if (life.signal.aborted) return;
    model.off("msg:custom", listen);
    for (const instruction of channel.take({ kind: "close" })) carryOut(instruction, []);
    life.abort();
  };
  model.on("msg:custom", listen);
  // A page that is left or reloaded says so, as long as it can.
  addEventListener("pagehide", () => take({ kind: "away" }), { signal: life.signal });
  addEventListener("pageshow", ({ persisted }) => persisted && take({ kind: "open" }), { signal: life.signal });
  signal?.addEventListener("abort", dispose, { once: true, signal: life.signal });
  take({ kind: "open" });
  return dispose;
}

/** Says again and again that the view is there. */
class Beat {
  readonly #act: () => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #period_ms = 0;

  constructor(act: () => void, until: AbortSignal) {
    this.#act = act;
    until.addEventListener("abort", () => clearInterval(this.#timer), { once: true });
  }

  /** 0 for never. */
  every(period_ms: number): void {
    if (period_ms === this.#period_ms) return;
    this.#period_ms = period_ms;
    clearInterval(this.#timer);
    if (period_ms > 0) this.#timer = setInterval(this.#act, period_ms);
  }
}

/** After an upgrade the kernel, or the page, is still of the version before. */
function otherVersion(protocol: number): string {
  return `the kernel's messages are of version ${protocol}, this page understands ${PROTOCOL}: restart the kernel, reload the page`;
}

/** Hands a reply to whom it concerns, and has it said. */
function answer(app: App, name: Command["name"] | null, reply: Reply): void {
  if (name === "break" || name === "watch") return app.debug.takeReply(reply);
  if (name === "record" || name === "replay" || name === "step_back") app.past.takeReply(reply.ok, reply.message);
  if (name === "replace") return app.debug.takeReplaced(reply);
  const told = said(name, reply);
  if (told) app.session.say(told.text, told.isLasting);
}

