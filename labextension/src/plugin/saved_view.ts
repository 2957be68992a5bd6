/** The output that a notebook file keeps of a view, read with care: the file may come from anyone. */
import type { Snapshot } from "../wire/messages.js";
import { unpack } from "../wire/columns.js";
import type { Packed } from "../wire/packing.js";
import type { Sliced } from "../wire/sliced.js";

export const MIME_TYPE = "application/vnd.flowscope.view+json";
export const WIDGET_MIME_TYPE = "application/vnd.jupyter.widget-view+json";

/** What a snapshot of an older version may lack. */
const NO_CHANGE = { placed: [], changed: [], removed: [], marked: [], fetches: [] } as const;
const NO_QUEUES = { queues: [], helpers: [], failure: null, debug: null, history: null } as const;
const PLAIN = {
  stale: null, body: "", is_result: false, calls: "", runs: [], roles: [], predicate: null, carried: [], enters: [], leaves: [],
  always_runs: [], made_from: [], scope: "", frame: "", flops: 0,
} as const;

export interface SavedView {
  /** The widget's model in the kernel, "" for none. */
  readonly modelId: string;
  readonly svg: string;
  readonly text: string;
  /** The graph: compressed, "" for none; or as older versions have written it. */
  readonly packed: string;
  readonly snapshot: Snapshot | null;
}

export function readSavedView(data: unknown): SavedView {
  const record = (typeof data === "object" && data !== null ? data : {}) as Readonly<Record<string, unknown>>;
  const text = (name: string): string => (typeof record[name] === "string" ? record[name] : "");
  return {
    modelId: text("model_id"), svg: text("svg"), text: text("text"), packed: text("packed"),
    snapshot: isSnapshot(record.snapshot) ? whole(record.snapshot) : null,
  };
}

/** The graph that is kept, of which the compressed part was read. Throws where there is none, or one of another form. */
export function* snapshotIn({ snapshot }: SavedView, packed: Packed | null): Sliced<Snapshot> {
  const found: unknown = packed ? yield* unpack(packed.message as Snapshot, [packed.numbers]) : snapshot;
  if (!isSnapshot(found)) throw new Error("saved view: this is no snapshot");
  return packed ? settled(found) : found;
}

function isSnapshot(value: unknown): value is Snapshot {
  if (typeof value !== "object" || value === null) return false;
  const { kind, graph } = value as { kind?: unknown; graph?: { added?: unknown } | null };
  return kind === "snapshot" && Array.isArray(graph?.added) && graph.added.length > 0;
}

function whole(snapshot: Snapshot): Snapshot {
  const added = snapshot.graph.added.map((node) => ({ ...PLAIN, ...node }));
  return settled({ ...snapshot, graph: { ...snapshot.graph, added } });
}

/** Nothing runs in a saved graph. */
function settled(snapshot: Snapshot): Snapshot {
  const session = snapshot.session && { ...NO_QUEUES, ...snapshot.session };
  return { ...snapshot, session, run: null, level: "graph", silence_s: 0, view: 0, trace: null, graph: { ...NO_CHANGE, ...snapshot.graph } };
}

/** A picture as an address: in an image nothing of it can run. */
export function svgAddress(svg: string): string {
  const wellFormed = svg.replace(/\p{Surrogate}/gu, "\ufffd");
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(wellFormed)}`;
}
