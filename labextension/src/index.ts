/** The widget's entry: joins the kernel's messages, the channel and the instrument. */
import { Instrument } from "./view/instrument.js";
import { Channel, isFromKernel, type ChannelEvent, type Instruction } from "./wire/channel.js";
import { PROTOCOL, type Command, type FromView, type Reply } from "./wire/messages.js";

/** What is used of a widget model; each display of a widget shares it with the others. */
export interface WidgetModel {
  on(event: "msg:custom", listener: (message: unknown) => void): void;
  off(event: "msg:custom", listener: (message: unknown) => void): void;
  send(message: FromView): void;
}

export interface RenderContext {
  readonly model: WidgetModel;
  readonly el: HTMLElement;
  readonly signal?: AbortSignal;
}

function render({ model, el, signal }: RenderContext): () => void {
  const life = new AbortController();
  const channel = new Channel(Math.floor(Math.random() * 2 ** 40));
  const now = (): number => performance.now();
  const take = (event: ChannelEvent): void => {
    for (const instruction of channel.take(event)) carryOut(instruction);
    instrument.runBar.setHeard(channel.takesCommands);
  };
  const instrument = new Instrument(el, (name, value) => {
    if (channel.takesCommands) take({ kind: "command", name, at_ms: now(), ...(value === undefined ? {} : { value }) });
  }, life.signal);
  const carryOut = (instruction: Instruction): void => {
    if (instruction.kind === "send") model.send(instruction.message);
    else if (instruction.kind === "answered") answer(instrument, instruction.name, instruction.reply);
    else if (instruction.message.kind === "snapshot") {
      instrument.model.applySnapshot(instruction.message);
      if (instruction.message.protocol !== PROTOCOL) {
        instrument.runBar.say(`the kernel speaks version ${instruction.message.protocol}, this view ${PROTOCOL}`, true);
      }
    } else instrument.model.applyDelta(instruction.message);
  };
  const listen = (message: unknown): void => {
    if (isFromKernel(message)) take({ kind: "message", message, at_ms: now() });
  };
  const dispose = (): void => {
    if (life.signal.aborted) return;
    model.off("msg:custom", listen);
    for (const instruction of channel.take({ kind: "close" })) carryOut(instruction);
    life.abort();
  };
  model.on("msg:custom", listen);
  signal?.addEventListener("abort", dispose, { once: true, signal: life.signal });
  take({ kind: "open" });
  return dispose;
}

/** What a step or a pace does is seen. A reply to another view's command is not ours to show, unless it failed. */
function answer(instrument: Instrument, name: Command["name"] | null, reply: Reply): void {
  const isSeen = name === null || name === "step_op" || name === "step_iteration" || name === "pace" || name === "level";
  if (!isSeen || !reply.ok) instrument.runBar.say(reply.message, !reply.ok);
  else if (name === "level") instrument.runBar.say("", false);
}

export default { render };
