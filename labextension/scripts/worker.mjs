/** Bundles the layout thread to a string: src/layout/worker_source.ts (not in git). */
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const TARGET = "src/layout/worker_source.ts";

export async function makeWorkerSource() {
  const { outputFiles } = await build({
    entryPoints: ["src/layout/worker.ts"], bundle: true, minify: true, format: "iife",
    target: "es2022", write: false,
  });
  const text = `// Made by scripts/worker.mjs from worker.ts: do not edit.\nexport const WORKER_SOURCE = ${
    JSON.stringify(outputFiles[0].text)};\n`;
  const before = await readFile(TARGET, "utf8").catch(() => "");
  if (before !== text) await writeFile(TARGET, text);
}

if (process.argv[1]?.endsWith("worker.mjs")) await makeWorkerSource();
