/** What JupyterLab shows of the table of commands. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { COMMANDS } from "../src/view/commands.js";

test("the menu of the settings schema names commands that there are", () => {
  const schema = JSON.parse(readFileSync("schema/panel.json", "utf8")) as {
    "jupyter.lab.menus": { main: { items: { submenu: { items: { command?: string }[] } }[] }[] };
  };
  const items = schema["jupyter.lab.menus"].main.flatMap(({ items }) => items.flatMap(({ submenu }) => submenu.items));
  const named = items.flatMap(({ command }) => (command?.startsWith("flowscope:view-") ? [command.slice("flowscope:view-".length)] : []));
  const known = new Set(COMMANDS.map(({ id }) => id));
  assert.ok(named.length > 5);
  assert.deepEqual(named.filter((id) => !known.has(id)), []);
});
