/** Bundles the widget - its loader, an ES module and a style sheet -, what draws saved pictures, and what shows recordings in a page, and puts them where the Python package looks. */
import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";
import { makeWorkerSource } from "./worker.mjs";

const OUT = "../widgets/flowscope_widgets/static";

await makeWorkerSource();
await mkdir(OUT, { recursive: true });
await build({
  entryPoints: { graph_view: "src/index.ts", loader: "src/loader.ts" }, outdir: OUT, bundle: true, minify: true,
  format: "esm", target: "es2022", legalComments: "none",
});
await build({
  entryPoints: { picture: "src/picture.ts" }, outdir: OUT, bundle: true, minify: true,
  format: "iife", globalName: "flowscopePicture", target: "es2022", legalComments: "none",
});
await build({
  entryPoints: { page: "src/page.ts" }, outdir: OUT, bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none",
});
await build({ entryPoints: { graph_view: "style/graph_view.css" }, outdir: OUT, minify: true });
