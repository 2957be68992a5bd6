/** Compares a text with its snapshot; on failure the new one is written beside it. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function matchSnapshot(name: string, extension: string, text: string): void {
  const path = join("tests/snapshots", `${name}.${extension}`);
  const changed = join("tests/snapshots", `${name}-changed.${extension}`);
  if (process.env.FS_SNAP === "accept") {
    writeFileSync(path, text);
    rmSync(changed, { force: true });
    return;
  }
  const wanted = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (wanted !== text) writeFileSync(changed, text);
  else rmSync(changed, { force: true });
  assert.equal(text === wanted, true, `${path} differs; see ${changed}, and accept it with "npm run snap"`);
}
