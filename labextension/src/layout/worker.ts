/** The layout thread: takes scopes, answers with positions. Bundled to a string by the build. */
import { LayoutMemory, layoutTree } from "./tree.js";
import type { ScopeInput } from "./types.js";

interface Port {
  onmessage: ((event: { data: { id: number; root: ScopeInput } }) => void) | null;
  postMessage(message: unknown): void;
}

const port = globalThis as unknown as Port;
const memory = new LayoutMemory();

port.onmessage = ({ data }) => {
  port.postMessage({ id: data.id, positions: layoutTree(data.root, memory) });
};
