/** The layout thread: takes scopes of each view, answers with positions. Bundled to a string by the build. */
import type { LayoutAnswer, LayoutRequest } from "./thread.js";
import { LayoutMemory, layoutTree } from "./tree.js";

interface Port {
  onmessage: ((event: { data: LayoutRequest }) => void) | null;
  postMessage(message: LayoutAnswer): void;
}

const port = globalThis as unknown as Port;
/** What was laid out before, by view. */
const memories = new Map<number, LayoutMemory>();

port.onmessage = ({ data: { view, id, root } }) => {
  if (!root) return void memories.delete(view);
  const memory = memories.get(view) ?? new LayoutMemory();
  memories.set(view, memory);
  port.postMessage({ view, id, positions: layoutTree(root, memory) });
};
