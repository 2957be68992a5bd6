/** Imports go only leftwards: wire, rules, model, layout, render, picture, view, loader, page, index. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import test from "node:test";

const FLOORS = ["wire", "rules", "model", "layout", "render", "picture", "view", "loader", "page", "index", "plugin"];
const PURE = ["wire", "rules", "model", "layout", "render", "picture"];

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name: name.replaceAll("\\", "/"), text: readFileSync(join("src", name), "utf8") }));

const floorOf = (path: string): number => FLOORS.indexOf((path.split("/")[0] ?? "").replace(/\.(ts|js)$/, ""));

test("every file stands on a floor and imports only from its own or from the left", () => {
  for (const { name, text } of files) {
    assert.ok(floorOf(name) >= 0, `src/${name} stands on no floor`);
    for (const [, target] of text.matchAll(/(?:from|import) "(\.[^"]+)"/g)) {
      const path = posix.join(posix.dirname(name), target ?? "");
      assert.ok(floorOf(path) <= floorOf(name), `src/${name} imports ${path}, which lies to the right`);
    }
  }
});

test("the widget needs no other package", () => {
  for (const { name, text } of files) {
    if (name.startsWith("plugin/")) continue;
    const foreign = [...text.matchAll(/^import .* from "([^."][^"]*)"/gm)].map(([, target]) => target);
    assert.deepEqual(foreign, [], `src/${name}`);
  }
});

test("data never becomes markup by innerHTML", () => {
  for (const { name, text } of files) assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write/, name);
});

test("nothing left of the view touches the document", () => {
  for (const { name, text } of files) {
    const isPure = PURE.includes(name.split("/")[0] ?? "") && name !== "layout/worker_source.ts";
    if (isPure) assert.doesNotMatch(text, /\bdocument\.\w|\bwindow\.\w/, name);
  }
});
