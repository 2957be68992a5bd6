/** A view's link to the session: sends what the user asks for, knows whether that is heard, and what is answered. */
import { Signal } from "../model/signal.js";
import type { Answer, Asked, QuestionKind, Wish } from "../wire/channel.js";
import { QUESTIONS, type Command, type Questions } from "../wire/messages.js";

export type SendCommand = (name: Command["name"], value?: Command["value"]) => void;

/** Asks what is told only when it is asked for. */
export type Ask = (question: Asked) => void;

export class SessionLink {
  readonly changed = new Signal<void>();
  readonly #send: SendCommand | null;
  #isHeard = false;
  #message = "";
  #isLasting = false;
  #isRecorded = false;

  readonly #ask: Ask;
  readonly #takers = new Map<Answer["kind"], (answer: Answer) => void>();

  /** Without `send` the view only shows. */
  constructor(send: SendCommand | null, ask: Ask = () => undefined) {
    this.#send = send;
    this.#ask = ask;
  }

  /** Asks a question; answers to questions of this kind go to `take` from now on. */
  ask<K extends QuestionKind>(kind: K, wish: Wish<K>, take: (answer: Questions[K][1]) => void): void {
    this.#takers.set(QUESTIONS[kind].answer, take as (answer: Answer) => void);
    this.#ask({ ...wish, kind } as Asked);
  }

  /** Hands an answer to whoever has asked. */
  take(answer: Answer): void {
    this.#takers.get(answer.kind)?.(answer);
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
