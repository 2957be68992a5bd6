/**
 * Which widgets live in a notebook's kernel. The kernel is asked when it connects; as it does not
 * answer while a cell is busy, what it opens and closes is also followed as it happens.
 */
import type { NotebookPanel } from "@jupyterlab/notebook";
import { Signal } from "../model/signal.js";
import { isGone } from "./comm_model.js";

type Session = NotebookPanel["sessionContext"];
type Kernel = NonNullable<NonNullable<Session["session"]>["kernel"]>;

interface Message {
  readonly header: { readonly msg_type: string };
  readonly content: unknown;
}

/** An idle kernel has answered by then. */
const PATIENCE_MS = 500;
const TARGET = "jupyter.widget";

export class LiveModels {
  readonly changed = new Signal<void>();
  readonly #session: Session;
  #ids = new Set<string>();
  #isSilent = false;
  /** What was opened since the kernel was last asked. */
  #opened = new Set<string>();

  constructor(session: Session) {
    this.#session = session;
    session.iopubMessage.connect((_, message) => this.#hear(message));
    session.statusChanged.connect((_, status) => isGone(status) && this.#forget());
    session.kernelChanged.connect(() => {
      this.#forget();
      void this.#ask();
    });
    session.connectionStatusChanged.connect((_, status) => status === "connected" && void this.#ask());
    void this.#ask();
  }

  get kernel(): Kernel | null {
    return this.#session.session?.kernel ?? null;
  }

  /** The kernel, where it has been asked for its widgets and does not answer: it is busy. */
  get silentKernel(): Kernel | null {
    return this.#isSilent ? this.kernel : null;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  #hear(message: Message): void {
    const content = message.content as { comm_id?: string; target_name?: string };
    const type = message.header.msg_type;
    const id = content.comm_id;
    if (id === undefined) return;
    if (type === "comm_open" && content.target_name === TARGET) {
      this.#opened.add(id);
      this.#ids.add(id);
      this.changed.emit();
    } else if (type === "comm_close" && this.#ids.delete(id)) {
      this.#opened.delete(id);
      this.changed.emit();
    }
  }

  #forget(): void {
    this.#ids = new Set();
    this.#opened = new Set();
    this.changed.emit();
  }

  #setSilent(isSilent: boolean): void {
    this.#isSilent = isSilent;
    this.changed.emit();
  }

  async #ask(): Promise<void> {
    const kernel = this.#session.session?.kernel;
    if (!kernel) return;
    const timer = setTimeout(() => this.#setSilent(true), PATIENCE_MS);
    const ids = await widgetsOf(kernel);
    clearTimeout(timer);
    this.#isSilent = false;
    if (ids === null || this.#session.session?.kernel !== kernel) return;
    this.#ids = new Set([...ids, ...this.#opened]);
    this.#opened = new Set();
    this.changed.emit();
  }
}

/** null where the kernel went away before it answered. */
async function widgetsOf(kernel: Kernel): Promise<string[] | null> {
  try {
    const { content } = await kernel.requestCommInfo({ target_name: TARGET });
    return content.status === "ok" ? Object.keys(content.comms) : [];
  } catch {
    return null;
  }
}
