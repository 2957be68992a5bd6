/** Bundles the widget: one ES module and one style sheet, put where the Python package looks. */
import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";
import { makeWorkerSource } from "./worker.mjs";

const OUT = "../widgets/flowscope_widgets/static";

await makeWorkerSource();
await mkdir(OUT, { recursive: true });
await build({
  entryPoints: { graph_view: "src/index.ts" }, outdir: OUT, bundle: true, minify: true,
  format: "esm", target: "es2022", legalComments: "none",
});
await build({ entryPoints: { graph_view: "style/graph_view.css" }, outdir: OUT, minify: true });
