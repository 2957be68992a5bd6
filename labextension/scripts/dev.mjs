/** Bundles the development page; open dev/index.html then. */
import { build } from "esbuild";
import { makeWorkerSource } from "./worker.mjs";

await makeWorkerSource();
await build({ entryPoints: ["dev/dev.ts"], outdir: "dev/out", bundle: true, format: "iife", target: "es2022", sourcemap: true });
