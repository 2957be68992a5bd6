/** The development page: a kernel that is played, and the widget on it. ?graph=mlp&theme=dark */
import widget from "../src/index.js";
import type { FromKernel, FromView, SessionState } from "../src/wire/messages.js";
import { snapshotOf } from "./builder.js";
import { PlayedRun } from "./running.js";
import { chain, deep, flat, functions, loops, mlp, star } from "./graphs.js";

const query = new URLSearchParams(location.search);
const size = Number(query.get("size") ?? 0);
const GRAPHS = {
  mlp: () => mlp(), deep: () => deep(size || 15_000), flat: () => flat(size || 2000),
  chain: () => chain(size || 10_000), star: () => star(size || 60), functions, loops,
} as const;

if (query.get("theme") === "dark") document.documentElement.dataset.theme = "dark";
const nodes = GRAPHS[(query.get("graph") ?? "mlp") as keyof typeof GRAPHS]();
const listeners = new Set<(message: unknown) => void>();
let seq = 0;
const played = new PlayedRun(nodes);
let steps = 4100;

function session(): SessionState {
  const isRunning = played.state === "running";
  return {
    state: played.state, steps, steps_per_s: isRunning ? 1243.7 : null, step_time_s: isRunning ? 0.000804 : null,
    progress: { description: "epoch 2", done: steps % 10000, total: 10000, elapsed_s: 13, eta_s: 41 },
    queues: [], helpers: [], failure: null, debug: null, history: null, moved: null, summaries: null, devices: [], is_simulated: false, scalars: [],
  };
}

function tell(message: FromKernel): void {
  for (const listener of listeners) listener(message);
}

const model = {
  on: (event: string, listener: (message: unknown) => void) => void (event === "msg:custom" && listeners.add(listener)),
  off: (_: string, listener: (message: unknown) => void) => void listeners.delete(listener),
  get: () => null,
  send(message: FromView): void {
    if (message.kind === "connect") return tell(snapshotOf(nodes, session(), seq));
    if (message.kind !== "command") return;
    played.hear(message);
    tell({ kind: "reply", view: 0, command_id: message.command_id, ok: true, message: `${message.name}: done` });
    tell({ kind: "delta", skipped: 0, trace: null, view: 0, seq: ++seq, graph: null, session: session(), run: played.run() });
  },
};

const startedAt = performance.now();
const host = document.getElementById("host");
if (!host) throw new Error("the page has no host");
const dispose = widget.render({ model, el: host });
Object.assign(globalThis, { dispose, tell, listeners, startedAt });
if (query.has("live")) {
  setInterval(() => {
    if (played.state !== "running") return;
    played.tick();
    steps += 124;
    tell({ kind: "delta", skipped: 0, trace: null, view: 0, seq: ++seq, graph: null, session: session(), run: played.run() });
  }, 125);
}
