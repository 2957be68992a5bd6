"""Loads what `written_programs.py` wrote, where TensorFlow 2 is; exits with 1 if values differ.

python tests/tensorflow/load_written.py FOLDER
"""

import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

v1 = tf.compat.v1
#: Relative to the largest value.
TOLERANCE = 1e-5


def run_graph(definition, x):
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        return session.run("y:0", {"x:0": x})


def difference(found, expected):
    return float(np.max(np.abs(found - expected)) / max(1.0, np.max(np.abs(expected))))


worst = 0.0
for folder in sorted(Path(sys.argv[1]).iterdir()):
    with np.load(folder / "expected.npz") as file:
        x, y = file["x"], file["y"]
    loaded = tf.saved_model.load(str(folder)).signatures["serving_default"]
    text = text_format.Parse((folder / "graph.pbtxt").read_text(), v1.GraphDef())
    binary = v1.GraphDef.FromString((folder / "graph.pb").read_bytes())
    found = [loaded(tf.constant(x))["y"].numpy(), run_graph(text, x), run_graph(binary, x)]
    off = [difference(one, y) for one in found]
    worst = max(worst, *off)
    print(folder.name, *[f"{one:.1e}" for one in off])
sys.exit(worst > TOLERANCE)
