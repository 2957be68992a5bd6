/** Prints the folded tree of snapshots as text: `node fold_text.mjs PATH...`. */
import { readFileSync } from "node:fs";
import { GraphModel } from "../src/model/graph.js";
import type { Scope } from "../src/model/scopes.js";
import { unpacked } from "../src/wire/columns.js";
import type { FromKernel } from "../src/wire/messages.js";

const DEPTH = Number(process.env.DEPTH ?? 3);
function show(model: GraphModel, scope: Scope, depth: number): void {
  const pad = "  ".repeat(depth);
  for (const inner of scope.scopes.values()) {
    const { group } = inner;
    console.log(`${pad}+ ${inner.name} ${group ? `<${group.kind} ${group.detail} x${group.count} ${group.carries ? JSON.stringify(group.carries) : ""}>` : ""} ${inner.size} ops, ${inner.scopes.size + inner.ops.size} boxes`);
    if (depth + 1 < DEPTH) show(model, inner, depth + 1);
  }
  for (const op of scope.ops) console.log(`${pad}- ${model.nodes.get(op)?.name} ${model.nodes.get(op)?.type} ${model.lanes.get(op) ?? ""}`);
}
for (const path of process.argv.slice(2)) {
  const told = JSON.parse(readFileSync(`${path}.json`, "utf8")) as FromKernel;
  const message = unpacked(told, [0, 1].map((k) => readFileSync(`${path}.${k}.bin`)));
  const model = new GraphModel();
  if (message.kind === "snapshot") model.applySnapshot(message);
  const start = process.cpuUsage();
  const { root } = model.tree;
  console.log(`## ${path}: ${Math.round(process.cpuUsage(start).user / 1000)} ms of the processor, ${root.scopes.size + root.ops.size} boxes`);
  show(model, root, 0);
}
