/**
 * A view's comm, without a widget manager: of a widget whose kernel is busy - when a page is reloaded while a cell runs, the
 * widget manager waits for the kernel's main shell to tell which widgets there are -, or of the docked panel. Messages go
 * to a subshell, which answers meanwhile.
 */
import type { NotebookPanel } from "@jupyterlab/notebook";
import { UUID } from "@lumino/coreutils";
import type { WidgetModel } from "../view/mount.js";
import type { Buffer } from "../wire/columns.js";

export type Kernel = NonNullable<NonNullable<NotebookPanel["sessionContext"]["session"]>["kernel"]>;

/** States of a kernel in which what it had is gone. */
const GONE: readonly string[] = ["restarting", "autorestarting", "dead", "terminating"];
export const isGone = (status: string): boolean => GONE.includes(status);

type Listener = (message: unknown, buffers?: readonly Buffer[]) => void;

interface CommData {
  readonly method?: string;
  readonly content?: unknown;
  readonly state?: Readonly<Record<string, unknown>>;
}

/** What a comm that the page opens is for. */
export interface Opening {
  readonly target: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export class CommModel implements WidgetModel {
  /** A connection of its own: what others have asked for and wait for does not stand before it. */
  readonly #kernel: Kernel;
  readonly #id: string;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #state = new Map<string, unknown>();
  readonly #subshell: Promise<string | null>;
  /** Set where the page opens the comm; then a kernel without subshells is spoken to as well. */
  readonly #opening: Opening | null;
  #isDisposed = false;

  /** Joins a comm that the kernel has, or opens one. */
  constructor(kernel: Kernel, id: string, opening: Opening | null = null) {
    this.#kernel = kernel.clone({ handleComms: false });
    this.#id = id;
    this.#opening = opening;
    this.#kernel.iopubMessage.connect((_, { header, content, buffers }) => {
      const { comm_id, data } = content as { comm_id?: string; data?: CommData };
      if (comm_id !== id) return;
      const type = header.msg_type as string;
      if (type === "comm_close") this.#emit("close", null);
      else if (type === "comm_msg" && data) this.#hear(data, (buffers ?? []) as Buffer[]);
    });
    this.#subshell = connected(this.#kernel).then(() => this.#openSubshell());
    if (opening) this.#send("comm_open", { target_name: opening.target, data: opening.data });
  }

  get(name: string): unknown {
    return this.#state.get(name) ?? null;
  }

  on(event: string, listener: Listener): void {
    const known = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, known.add(listener));
  }

  off(event: string, listener: Listener): void {
    this.#listeners.get(event)?.delete(listener);
  }

  send(message: unknown): void {
    this.#send("comm_msg", { data: { method: "custom", content: message } });
  }

  #send(type: string, content: object): void {
    void this.#subshell.then((subshell) => {
      if (this.#kernel.isDisposed || (subshell === null && !this.#opening)) return;
      const header = subshell === null ? {} : { subshell_id: subshell };
      const made = this.#message(type, "shell", { comm_id: this.#id, ...content }, header);
      this.#kernel.sendShellMessage(made as Parameters<Kernel["sendShellMessage"]>[0], false, true);
    });
  }

  /** Ends the connection, once what was sent last is on its way. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#opening) this.#send("comm_close", { data: {} });
    void this.#subshell.then((subshell) => {
      if (this.#kernel.isDisposed) return;
      if (subshell !== null) this.#control("delete_subshell_request", { subshell_id: subshell });
      this.#kernel.dispose();
    });
  }

  #hear(data: CommData, buffers: readonly Buffer[]): void {
    if (data.method === "custom") this.#emit("msg:custom", data.content, buffers);
    for (const [name, value] of Object.entries(data.state ?? {})) {
      this.#state.set(name, value);
      this.#emit(`change:${name}`, value);
    }
  }

  #emit(event: string, message: unknown, buffers: readonly Buffer[] = []): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(message, buffers);
  }

  async #openSubshell(): Promise<string | null> {
    try {
      const reply = await this.#control("create_subshell_request", {})?.done;
      const content = reply?.content as { status?: string; subshell_id?: string } | undefined;
      return content?.status === "ok" ? (content.subshell_id ?? null) : null;
    } catch {
      return null; // the connection has ended
    }
  }

  #control(type: string, content: object): ReturnType<Kernel["sendControlMessage"]> | null {
    if (this.#kernel.isDisposed) return null;
    const made = this.#message(type, "control", content);
    return this.#kernel.sendControlMessage(made as Parameters<Kernel["sendControlMessage"]>[0], true, true);
  }

  #message(type: string, channel: "shell" | "control", content: object, header: object = {}): unknown {
    return {
      header: {
        msg_id: UUID.uuid4(), msg_type: type, session: this.#kernel.clientId, username: this.#kernel.username,
        date: new Date().toISOString(), version: "5.2", ...header,
      },
      parent_header: {}, metadata: {}, content, buffers: [], channel,
    };
  }
}

function connected(kernel: Kernel): Promise<void> {
  if (kernel.connectionStatus === "connected") return Promise.resolve();
  return new Promise((resolve) => {
    kernel.connectionStatusChanged.connect((_, status) => status === "connected" && resolve());
    kernel.disposed.connect(() => resolve());
  });
}
