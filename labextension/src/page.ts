/**
 * A page with a recording in it: unpacks it, makes what draws of the text that the page holds, and answers the view as a
 * kernel would. See flowscope_widgets/html_page.py.
 */
import { RecordedMessages } from "./model/recorded_messages.js";
import type { RenderContext, WidgetModel } from "./view/mount.js";
import { numbersOf } from "./wire/packing.js";

const CANNOT = "This recording cannot be shown: the page is damaged, or the browser is too old.";

type Listener = (message: unknown, buffers?: readonly (ArrayBuffer | ArrayBufferView)[]) => void;

function textOf(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

/** As the widget's loader does: a module from a text. */
async function core(): Promise<(context: RenderContext) => void> {
  const bytes = Uint8Array.from(atob(textOf("flowscope-core")), (character) => character.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  try {
    const loaded = (await import(address)) as { default: { render(context: RenderContext): void } };
    return loaded.default.render;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** A widget's model without a kernel: what is chosen stays in the view. */
function modelOf(recorded: RecordedMessages): WidgetModel {
  const listeners = new Map<string, Set<Listener>>();
  return {
    get: () => undefined,
    on: (event: string, listener: Listener) => void listeners.set(event, (listeners.get(event) ?? new Set()).add(listener)),
    off: (event: string, listener: Listener) => void listeners.get(event)?.delete(listener),
    send: (message) => {
      const told = message.kind === "choose" ? null : recorded.answer(message);
      if (told) setTimeout(() => listeners.get("msg:custom")?.forEach((listener) => listener(told.message, told.buffers)));
    },
  };
}

async function show(host: HTMLElement): Promise<void> {
  try {
    const [render, packed] = await Promise.all([core(), numbersOf(textOf("flowscope-recording"))]);
    render({ model: modelOf(new RecordedMessages(packed)), el: host });
    // It fills the window, as if the user had dragged its corner there.
    host.querySelector<HTMLElement>(".fs-view")?.style.setProperty("height", "100%");
  } catch {
    host.textContent = CANNOT;
  }
}

const host = document.querySelector("main");
if (host) void show(host);
