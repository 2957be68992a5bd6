/** Programs that read models. */
import assert from "node:assert/strict";
import test from "node:test";
import { cellFor, pythonText, questionFor } from "../src/plugin/model_cells.js";

test("a name is a text of Python's, whatever is in it", () => {
  assert.equal(pythonText('a"b\\c\n'), String.raw`"a\"b\\c\n"`);
  assert.equal(pythonText("\u00e9\u2603"), String.raw`"\u00e9\u2603"`);
  assert.match(questionFor('x"); import os #.onnx'), /^from .*\nsend_model\("x\\"\); import os #\.onnx"\)$/);
});

test("a cell loads what its file is", () => {
  assert.match(cellFor("m.onnx"), /fs\.onnx\.load\("m\.onnx"\)\nfs\.show\(model\.graph\)$/);
  assert.match(cellFor("saved_model.pb"), /fs\.saved_model\.load\("\."\)/);
  assert.match(cellFor("frozen.pb"), /import_graph_def\(fs\.io\.read_graph\("frozen\.pb"\), name=""\)/);
});
