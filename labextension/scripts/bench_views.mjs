/** Bundles the figures of pictures and runs them: `node scripts/bench_views.mjs FOLDER`. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const out = await mkdtemp(join(tmpdir(), "flowscope-views-"));
const file = join(out, "bench_views.mjs");
await build({ entryPoints: ["dev/bench_views.ts"], outfile: file, bundle: true, platform: "node", format: "esm", target: "node20" });
const { status } = spawnSync(process.execPath, [file, ...process.argv.slice(2)], { stdio: "inherit" });
await rm(out, { recursive: true });
process.exit(status ?? 1);
