"""Programs that are written for TensorFlow: placeholders in, tensors out.

With a folder as argument, writes each as a saved model and as a graph, with what it computes:

    python tests/helpers/written_programs.py FOLDER
    python-of-tensorflow tests/tensorflow/load_written.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import flowscope as fs

X = np.random.default_rng(4).normal(size=(3, 8, 8, 2)).astype(np.float32)


def network(x: Any) -> Any:
    """Convolutions, pools, batch norm and dense layers, as they are for inference."""
    h = fs.layers.conv2d(x, 4, 3, strides=2, padding="same", activation=fs.nn.relu)
    h = fs.layers.batch_normalization(h)
    h = fs.layers.conv2d(h, 4, 2, dilation_rate=2, activation=fs.nn.leaky_relu)
    pools = [fs.layers.max_pooling2d(h, 2, 1), fs.layers.average_pooling2d(h, 2, 1)]
    h = fs.layers.flatten(fs.concat(pools, 3))
    return fs.nn.softmax(fs.layers.dense(h, 5, fs.tanh))


def indices(x: Any) -> Any:
    """Parts of arrays, put together anew."""
    parts = fs.split(fs.transpose(x, [0, 3, 1, 2]), [1, 1], axis=1)
    a, b = fs.squeeze(parts[0], 1), parts[1][:, 0]
    c = fs.stack([a[:, 1:, ::-2], b[:, :-1, 1::2]], axis=1)
    d = fs.pad(c, [[0, 0], [1, 0], [0, 2], [0, 0]], constant_values=3.0)
    e = fs.gather(d, [2, 0], axis=2)[:, fs.newaxis, ..., -1]
    return fs.tile(fs.expand_dims(e, 0), [2, 1, 1, 1, 1]) + fs.slice(x, [0, 1, 1, 0], [1, 1, 1, 1])


def arithmetic(x: Any) -> Any:
    """Elementwise functions, products, reductions."""
    y = fs.square(x) - fs.squared_difference(x, 0.5) + fs.rsqrt(fs.abs(x) + 1.0)
    y = fs.where_v2(x > 0.0, fs.nn.relu6(y), fs.maximum(-y, fs.erf(x)))
    y = fs.matmul(y, y, transpose_b=True) + fs.add_n([y, y, y])[:, :, :, :1]
    y = fs.where_v2(fs.logical_and(y > 0.0, fs.logical_not(y > 2.0)), y, fs.stop_gradient(-y))
    found = fs.reduce_sum(y, [1, 3], keepdims=True) / (1.0 + fs.reduce_max(fs.abs(y)))
    index = fs.cast(fs.argmax(y, 3), fs.float32)
    return found + fs.reduce_mean(index) + fs.cast(fs.shape(y)[1], fs.float32)


def other_dtypes(x: Any) -> Any:
    """Other dtypes: each cast from and to floats, and added."""
    names = ("int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float64", "bool")
    sides = [fs.cast(fs.cast(fs.constant([1.0, 0.0]), getattr(fs, n)), fs.float32) for n in names]
    return fs.reduce_sum(x, [1, 2]) + fs.add_n(sides)


PROGRAMS = (network, indices, arithmetic, other_dtypes)


def write(program: Any, folder: Path) -> Any:
    """Writes a program to a folder; returns what it gives for `X`."""
    with fs.Graph().as_default() as graph, fs.Session() as session:
        fs.set_random_seed(3)
        x = fs.placeholder(fs.float32, [None, 8, 8, 2], name="x")
        y = fs.identity(program(x), name="y")
        session.run(fs.global_variables_initializer())
        fs.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
        frozen = fs.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        for name, as_text in (("graph.pb", False), ("graph.pbtxt", True)):
            fs.train.write_graph(frozen, folder, name, as_text, form="tensorflow")
        return session.run(y, {x: X})


if __name__ == "__main__":
    for one in PROGRAMS:
        at = Path(sys.argv[1]) / one.__name__
        found = write(one, at)
        np.savez(at / "expected.npz", x=X, y=found)
        print(one.__name__, found.shape)
