/** Bundles the tests to a temporary folder and runs them with node's own runner. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { makeWorkerSource } from "./worker.mjs";

const out = await mkdtemp(join(tmpdir(), "flowscope-tests-"));
await makeWorkerSource();
const names = (await readdir("tests")).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: names.map((name) => `tests/${name}`), outdir: out, bundle: true, platform: "node",
  format: "esm", target: "node20", sourcemap: "inline", outExtension: { ".js": ".mjs" },
});
const files = names.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
await rm(out, { recursive: true });
process.exit(status ?? 1);
