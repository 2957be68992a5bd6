"""Graphs written as ONNX: equal to ours by ONNX's own evaluator, and read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_models import residual_network

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
X = np.random.default_rng(2).normal(size=(3, 8, 8, 2)).astype(np.float32)


def network(x: Any) -> Any:
    """Convolutions, pools, batch norm and dense layers, as they are for inference."""
    h = fs.layers.conv2d(x, 4, 3, strides=2, padding="same", activation=fs.nn.relu)
    h = fs.layers.batch_normalization(h)
    h = fs.layers.conv2d(h, 4, 2, dilation_rate=2, activation=fs.nn.leaky_relu)
    pools = [fs.layers.max_pooling2d(h, 2, 1), fs.layers.average_pooling2d(h, 2, 1)]
    h = fs.layers.flatten(fs.concat(pools, 3))
    return fs.nn.softmax(fs.layers.dense(h, 5, fs.tanh))


def indices(x: Any) -> Any:
    parts = fs.split(fs.transpose(x, [0, 3, 1, 2]), [1, 1], axis=1)
    a, b = fs.squeeze(parts[0], 1), parts[1][:, 0]
    c = fs.stack([a[:, 1:, ::-2], b[:, :-1, 1::2]], axis=1)
    d = fs.pad(c, [[0, 0], [1, 0], [0, 2], [0, 0]], constant_values=3.0)
    return fs.tile(fs.expand_dims(fs.gather(d, [2, 0], axis=2), 0), [2, 1, 1, 1, 1])


def arithmetic(x: Any) -> Any:
    y = fs.square(x) - fs.squared_difference(x, 0.5) + fs.rsqrt(fs.abs(x) + 1.0)
    y = fs.where_v2(x > 0.0, fs.nn.relu6(y), fs.maximum(-y, fs.erf(x)))
    y = fs.matmul(y, y, transpose_b=True) + fs.add_n([y, y, y])[:, :, :, :1]
    rows = fs.cast(fs.argmax(y, 3, output_type=fs.int32), fs.float32)
    return fs.reduce_sum(y, [1, 3], keepdims=True) * fs.reduce_mean(rows) + fs.reduce_max(y)


def shapes(x: Any) -> Any:
    flat = fs.reshape(x, [fs.shape(x)[0], -1])
    return fs.nn.log_softmax(flat) * fs.reduce_prod(fs.cast(fs.shape(x), fs.float32))


@pytest.mark.parametrize("build", [network, indices, arithmetic, shapes])
def test_a_model_computes_what_the_graph_does(build: Callable[[Any], Any], tmp_path: Path) -> None:
    x = fs.placeholder(fs.float32, [3, 8, 8, 2], name="x")
    y, path = build(x), tmp_path / "model.onnx"
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        wanted = sess.run(y, {x: X})
        model = fs.onnx.export({"y": y}, [x], path)
    assert [i.name for i in model.graph.input] == ["x"]
    (found,) = ReferenceEvaluator(model).run(None, {"x": X})
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
    with fs.onnx.load(path) as loaded:
        np.testing.assert_allclose(loaded.run({"x": X})["y"], wanted, rtol=2e-5, atol=2e-6)


def test_a_part_between_tensors_is_written_with_their_names() -> None:
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    h = fs.identity(x * 2.0, name="h")
    first, second = fs.split(h + 1.0, 2, axis=1, name="two")
    model = fs.onnx.export([first, second], {"in": h})
    assert [o.name for o in model.graph.output] == ["two", "two:1"]
    found = ReferenceEvaluator(model).run(None, {"in": np.float32([[1, 2]])})
    assert [f.tolist() for f in found] == [[[2.0]], [[3.0]]]


def test_what_cannot_be_written_is_named() -> None:
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.cumsum(fs.sort(x), name="sums")
    with pytest.raises(fs.errors.UnimplementedError, match=r'"sums" \(Cumsum\)'):
        fs.onnx.export(y, x)
    with pytest.raises(fs.errors.InvalidArgumentError, match="among the inputs, got x"):
        fs.onnx.export(x + 1.0, [])
    v = fs.Variable([1.0, 2.0], name="v")
    with pytest.raises(fs.errors.FailedPreconditionError, match="the values of v need a session"):
        fs.onnx.export(x * v, x)
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected tensors"):
        fs.onnx.export({"y": 3.0}, x)
    z = fs.placeholder(fs.complex64, [2], name="z")
    with pytest.raises(fs.errors.InvalidArgumentError, match="no such model"):
        fs.onnx.export(fs.tanh(z), z)


def test_what_was_loaded_is_written_again() -> None:
    """Convolutions with margins of their own, products and sums, as files of others have them."""
    loaded = residual_network((1, 1), 4)
    images = np.random.default_rng(0).normal(size=(2, 3, 64, 64)).astype(np.float32)
    with fs.onnx.load(loaded, trainable=True) as model:
        expected = model.run({"image": images})["y"]
        h = model.graph.get_tensor_by_name("conv1/Conv/Conv2D:0")
        expected_h = model.session.run(h, {model.inputs["image"]: images})
        again = fs.onnx.export({"h": h}, model.inputs, session=model.session)
    assert np.isfinite(expected).all()
    with fs.onnx.load(again) as model:
        found = model.run({"image": images})["h"]
    np.testing.assert_allclose(found, expected_h, rtol=1e-5, atol=1e-5)
