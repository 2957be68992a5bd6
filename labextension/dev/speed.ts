/** Times of the stages from a snapshot to a layout: `node speed.mjs PATH...`, milliseconds of the processor. */
import { readFileSync } from "node:fs";
import { layoutJob, roughMeasure } from "../src/layout/measure.js";
import { LayoutMemory, layoutTree } from "../src/layout/tree.js";
import { GraphModel } from "../src/model/graph.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import { Store } from "../src/model/store.js";
import { visibleGraph } from "../src/model/visible.js";
import { unpacked } from "../src/wire/columns.js";
import type { FromKernel, GraphChange, Node } from "../src/wire/messages.js";

function cpu<T>(work: () => T, note: (ms: number) => void): T {
  const start = process.cpuUsage();
  const found = work();
  const { user, system } = process.cpuUsage(start);
  note((user + system) / 1000);
  return found;
}

const ROUNDS = Number(process.env.ROUNDS ?? 1);
for (const path of process.argv.slice(2)) {
  const text = readFileSync(`${path}.json`, "utf8");
  const buffers = [0, 1].map((k) => readFileSync(`${path}.${k}.bin`));
  for (let round = 0; round < ROUNDS; round++) {
    const times: string[] = [];
    const timed = <T>(name: string, work: () => T): T => cpu(work, (ms) => times.push(`${name} ${ms.toFixed(0)}`));
    const told = timed("JSON", () => JSON.parse(text) as FromKernel);
    const message = timed("columns", () => unpacked(told, buffers));
    if (message.kind !== "snapshot") throw new Error("no snapshot");
    const model = new GraphModel();
    timed("model", () => model.applySnapshot(message));
    timed("bodies", () => model.bodies);
    timed("frames", () => model.frames);
    timed("fold", () => model.tree);
    const scopes = new OpenScopes(new Store(), {});
    timed("begin", () => scopes.begin(model));
    const graph = timed("visible", () => visibleGraph(model, (scope) => scopes.isOpen(scope)));
    const job = timed("job", () => layoutJob(graph, roughMeasure));
    timed("layout", () => layoutTree(job.root, new LayoutMemory()));
    // A cell adds a hundred operations.
    const nodes = [...model.nodes.values()];
    const last = nodes[nodes.length - 1]!;
    for (let k = 0; k < 3; k++) {
      const added = Array.from({ length: 100 }, (_, i): Node => ({
        ...last, id: last.id + 1 + 100 * k + i, name: `later/add_${k}_${i}`, type: "Add", inputs: [[last.id + 100 * k + i, 0]], control: [], attributes: {}, runs: [], roles: [], carried: [], enters: [], leaves: [], always_runs: [],
      }));
      const graphChange: GraphChange = { added, changed: [], removed: [], placed: [], marked: [], fetches: [] } as unknown as GraphChange;
      timed("| delta", () => model.applyDelta({ kind: "delta", skipped: 0, view: 0, seq: k, graph: graphChange, session: null, run: null } as never));
      timed("fold", () => model.tree);
      timed("visible", () => visibleGraph(model, (scope) => scopes.isOpen(scope)));
    }
    console.log(`${path.split("/").pop()} (${model.nodes.size}): ${times.join(", ")}`);
  }
}
