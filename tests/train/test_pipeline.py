"""Pipelines of stages: equal to the model in one piece, and stages at work at the same time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError

MODES = ("compiled", "op", "tokens")
_RNG = np.random.default_rng(5)
X = _RNG.normal(size=(24, 4))
Y = np.tanh(X[:, :2]) + X[:, 2:]
DEVICES = [f"/cpu:{i}" for i in range(3)]


def first(x: Any, y: Any) -> Any:
    """A layer whose weights all parts share; targets go through."""
    return fs.layers.dense(x, 8, fs.tanh, name="in"), y


def middle(h: Any, y: Any) -> Any:
    """A loop and a branch, as a stage may hold."""
    w = fs.get_variable("w", [8, 8], fs.float64, fs.ones_initializer())
    _, h = fs.while_loop(
        lambda i, h: i < 2, lambda i, h: (i + 1, fs.tanh(fs.matmul(h, w) / 8.0)), (0, h)
    )
    return fs.cond(fs.reduce_sum(w) > 0.0, lambda: h * 2.0, lambda: h / 2.0), y


def last(h: Any, y: Any) -> Any:
    """Predictions [part, 2], and the mean error."""
    out = fs.layers.dense(h, 2, name="out")
    return {"out": out, "loss": fs.reduce_mean(fs.square(out - y))}


STAGES = [first, middle, last]


@functools.cache
def trained(microbatches: int, is_placed: bool, mode: Any) -> tuple[Any, ...]:
    """Losses, predictions and variables of three steps."""
    with fs.Graph().as_default():
        fs.set_random_seed(3)
        x, y = (fs.placeholder(fs.float64, [None, v.shape[1]]) for v in (X, Y))
        found = fs.train.pipeline(STAGES, (x, y), microbatches, DEVICES if is_placed else None)
        optimizer = fs.train.MomentumOptimizer(0.1, 0.9)
        train = optimizer.minimize(found["loss"], colocate_gradients_with_ops=True)
        config = fs.ConfigProto(mode=mode, device_count={"CPU": 3})
        feeds = {x: X, y: Y}
        variables = fs.trainable_variables()
        assert [v.op.name for v in variables] == [
            "pipeline/stage_0/in/kernel", "pipeline/stage_0/in/bias", "pipeline/stage_1/w",
            "pipeline/stage_2/out/kernel", "pipeline/stage_2/out/bias",
        ]  # fmt: skip
        with fs.Session(config=config) as sess:
            sess.run(fs.global_variables_initializer())
            for v in variables:
                v.load(np.random.default_rng(v.shape.num_elements()).normal(size=v.shape), sess)
            losses = [sess.run([found["loss"], train], feeds)[0] for _ in range(3)]
            return losses, sess.run(found["out"], feeds), sess.run(variables)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("microbatches", [3, 24])
def test_parts_train_as_the_whole_batch_does(microbatches: int, mode: Any) -> None:
    """Loss, predictions and variables after three steps, the stages on three devices."""
    expected = trained(1, False, "op")
    found = trained(microbatches, True, mode)
    for a, b in zip(fs.nest.flatten(expected), fs.nest.flatten(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


def test_stages_have_their_devices_on_the_way_back_too(graph: Any) -> None:
    x = fs.placeholder(fs.float64, [4, 4])
    stages = [lambda x: fs.layers.dense(x, 4, name="a"), lambda x: fs.layers.dense(x, 4, name="b")]
    y = fs.train.pipeline(stages, x, 2, DEVICES[:2])
    optimizer = fs.train.GradientDescentOptimizer(0.1)
    optimizer.minimize(fs.reduce_sum(y), colocate_gradients_with_ops=True)
    products = [op for op in graph.get_operations() if op.type == "MatMul"]
    assert len(products) == 4 + 8  # two gradients of each product
    for op in products:
        assert op.device.lower().endswith("cpu:0" if "stage_0" in op.name else "cpu:1"), op.name


def test_wrong_arguments_are_told(graph: Any) -> None:
    x = fs.placeholder(fs.float64, [6, 4])
    stages = [lambda x: x + 1.0]
    for wrong, text in (
        (lambda: fs.train.pipeline([], x, 2), "a list of functions"),
        (lambda: fs.train.pipeline(stages, x, 0), "at least 1, got 0"),
        (lambda: fs.train.pipeline(stages, x, True), "at least 1, got True"),
        (lambda: fs.train.pipeline(stages, x, 2, ["/cpu:0"] * 2), "each of 1 stages"),
        (lambda: fs.train.pipeline(stages, x, 4), r"\[6,4\]"),
        (lambda: fs.train.pipeline(stages, (), 4), "inputs to split"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            wrong()
    calls: list[int] = []

    def grows(x: Any) -> Any:
        calls.append(0)
        return x * fs.get_variable(f"v{len(calls)}", [], fs.float64)

    with pytest.raises(InvalidArgumentError, match="v2"):
        fs.train.pipeline([grows], x, 2)
