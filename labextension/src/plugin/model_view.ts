/** The view of a model's file: a kernel reads it, sends the graph, and ends; then nothing runs. */
import type { NotebookPanel } from "@jupyterlab/notebook";
import { Panel, Widget } from "@lumino/widgets";
import { make } from "../view/dom.js";
import type { Kernel } from "./comm_model.js";
import { questionFor } from "./model_cells.js";
import { SavedApp } from "./output.js";
import { MIME_TYPE, readSavedView, type SavedView } from "./saved_view.js";

type Session = NonNullable<NotebookPanel["sessionContext"]["session"]>;

const READING = "A kernel reads the model \u2026";
const NOTE = "A file: nothing runs here. A notebook with this model runs it";
/** Where the kernel has no flowscope. */
const MISSING = "The kernel has no flowscope: install it where the kernel's Python is (pip install flowscope).";

export class ModelView extends Panel {
  readonly #note = make("p", { class: "fs-document-note", role: "status", "data-testid": "fs-document-note" }, READING);

  /** `start` starts a session whose kernel runs in the folder of a path. */
  constructor(path: string, start: (path: string) => Promise<Session>) {
    super();
    this.addClass("fs-document");
    this.addWidget(new Widget({ node: this.#note }));
    void this.#read(path, start);
  }

  async #read(path: string, start: (path: string) => Promise<Session>): Promise<void> {
    try {
      const session = await start(path);
      try {
        if (session.kernel) this.#show(await answerOf(session.kernel, path.slice(path.lastIndexOf("/") + 1)));
      } finally {
        await session.shutdown();
        session.dispose();
      }
    } catch (error) {
      if (!this.isDisposed) this.#note.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  #show(view: SavedView): void {
    if (this.isDisposed) return;
    this.widgets[0]?.dispose();
    const app = new SavedApp(view);
    app.say(NOTE);
    this.addWidget(app);
  }
}

/** What a kernel sends of a model in its folder. Throws what it says where it cannot read it. */
async function answerOf(kernel: Kernel, name: string): Promise<SavedView> {
  let found: SavedView | null = null;
  let problem = "the kernel has sent no graph";
  const asked = kernel.requestExecute({ code: questionFor(name), store_history: false, allow_stdin: false });
  asked.onIOPub = ({ header, content }) => {
    const told = content as { data?: Record<string, unknown>; ename?: string; evalue?: string };
    if (header.msg_type === "display_data" && told.data?.[MIME_TYPE] !== undefined) found = readSavedView(told.data[MIME_TYPE]);
    if (header.msg_type === "error") problem = told.ename === "ModuleNotFoundError" && told.evalue?.includes("flowscope") ? MISSING : (told.evalue ?? problem);
  };
  await asked.done;
  if (found === null) throw new Error(problem);
  return found;
}
