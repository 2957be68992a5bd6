"""Random ops: what they draw, and that the draws follow from graph seed, op seed and run alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import evaluate

import flowscope as fs
from flowscope.graph.op import all_ops

SHAPE = [200, 50]
N = 10_000


def draw(make: Any, seed: int | None = 11) -> Any:
    with fs.Graph().as_default() as g:
        if seed is not None:
            fs.set_random_seed(seed)
        t = make()
        oracle = evaluate([t], {})[0]  # checks dtype and shape
        with fs.Session(graph=g) as session:
            value = session.run(t)
    assert value.shape == oracle.shape
    assert value.dtype == oracle.dtype
    return value


FLOATS = ("float16", "float32", "float64")


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype: str) -> None:
    x = draw(lambda: fs.random_uniform(SHAPE, -1, 3, dtype)).astype("f8")
    assert -1 <= x.min() < -0.9
    assert 2.9 < x.max() <= 3
    assert abs(x.mean() - 1) < 4 * 4 / np.sqrt(12 * N)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_uniform_integers(dtype: str) -> None:
    x = draw(lambda: fs.random_uniform(SHAPE, -2, 3, dtype))
    assert sorted(set(x.reshape(-1).tolist())) == [-2, -1, 0, 1, 2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype: str) -> None:
    x = draw(lambda: fs.random_normal(SHAPE, 2.0, 3.0, dtype)).astype("f8")
    assert abs(x.mean() - 2) < 4 * 3 / np.sqrt(N)
    assert abs(x.std() - 3) < 4 * 3 / np.sqrt(2 * N)


@pytest.mark.parametrize("dtype", FLOATS)
def test_truncated_normal(dtype: str) -> None:
    x = draw(lambda: fs.truncated_normal(SHAPE, 1.0, 0.5, dtype)).astype("f8")
    assert abs(x - 1).max() <= 1.002
    assert abs(x.std() / 0.5 - 0.8796) < 0.03


def test_scalars_are_scalars() -> None:
    for make in (fs.random_uniform, fs.random_normal, fs.truncated_normal):
        assert isinstance(draw(lambda m=make: m([])), np.float32)


def test_shuffle() -> None:
    x = np.arange(40).reshape(20, 2)
    y = draw(lambda: fs.random_shuffle(x))
    assert (y != x).any()
    assert sorted(y.tolist()) == x.tolist()


def test_multinomial() -> None:
    x = draw(lambda: fs.multinomial(np.log([[0.2, 0.8], [1.0, 1e-30]]), N))
    assert x.dtype == np.int64
    assert abs(x[0].mean() - 0.8) < 4 * 0.4 / np.sqrt(N)
    assert not x[1].any()


def test_dropout() -> None:
    x = draw(lambda: fs.nn.dropout(fs.ones(SHAPE), 0.25))
    assert set(x.reshape(-1).tolist()) == {0.0, 4.0}
    assert abs(x.mean() - 1) < 4 * np.sqrt(3 / N)
    y = draw(lambda: fs.nn.dropout(fs.ones([40, 50]), rate=0.5, noise_shape=[40, 1]))
    assert (y == y[:, :1]).all()
    assert draw(lambda: fs.nn.dropout(fs.ones([3]), 1.0)).tolist() == [1, 1, 1]


def test_dropout_gradient_uses_the_same_mask() -> None:
    def make() -> Any:
        x = fs.ones(SHAPE)
        y = fs.nn.dropout(x, 0.5)
        return y - fs.gradients(y, x)[0]

    assert not draw(make).any()


def test_same_seeds_same_numbers() -> None:
    first = draw(lambda: fs.random_uniform([5]))
    assert (first == draw(lambda: fs.random_uniform([5]))).all()
    assert (first != draw(lambda: fs.random_uniform([5]), seed=12)).any()
    assert (first != draw(lambda: fs.random_uniform([5], seed=3))).any()
    assert (first != draw(lambda: fs.random_uniform([5], name="other"))).any()


def test_two_ops_draw_different_numbers() -> None:
    assert draw(lambda: fs.random_uniform([5]) - fs.random_uniform([5])).all()


def test_two_runs_draw_different_numbers() -> None:
    with fs.Graph().as_default() as g, fs.Session(graph=g) as session:
        x = fs.random_uniform([5])
        assert (session.run(x) != session.run(x)).any()


def test_seeds_survive_other_ops() -> None:
    """An op's seed follows from its name, so what is built before it does not matter."""

    def make() -> Any:
        fs.constant(1)
        fs.random_normal([2])
        return fs.random_uniform([5])

    assert (draw(make) == draw(lambda: fs.random_uniform([5]))).all()


def test_errors() -> None:
    with pytest.raises(TypeError, match="expected a floating-point dtype, got bool"):
        fs.random_normal([2], dtype="bool")
    with pytest.raises(ValueError, match="expected a maxval for integers, got none"):
        fs.random_uniform([2], dtype="int32")
    with pytest.raises(ValueError, match="expected one of keep_prob and rate, got both or none"):
        fs.nn.dropout([1.0])
    with pytest.raises(ValueError, match=r"expected a keep_prob in \(0, 1\], got 2"):
        fs.nn.dropout([1.0], 2.0)
    with fs.Session() as session, pytest.raises(ValueError, match="above minval, got 1 and 2"):
        session.run(fs.random_uniform([2], 2, 1, "int32"))


def test_every_random_op_is_here() -> None:
    ours = {n for n, c in all_ops().items() if c.__module__ == "flowscope.ops.random"}
    assert ours == {
        "Multinomial",
        "RandomNormal",
        "RandomShuffle",
        "RandomUniform",
        "RandomUniformInt",
        "TruncatedNormal",
    }
