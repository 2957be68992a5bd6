"""Random ops: what they draw, and that the draws follow from graph seed, op seed and run alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import evaluate
from scipy import special

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


def test_categorical() -> None:
    x = draw(lambda: fs.random.categorical(np.log([[0.2, 0.8]]), N, "int32"))
    assert x.shape == (1, N)
    assert x.dtype == np.int32
    assert abs(x.mean() - 0.8) < 4 * 0.4 / np.sqrt(N)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gamma(dtype: str) -> None:
    x = draw(lambda: fs.random_gamma([N // 2], [3.0, 0.5], [[2.0]], dtype)).astype("f8")
    assert x.shape == (N // 2, 1, 2)
    assert (x > 0).all()
    assert abs(x[:, 0, 0].mean() - 1.5) < 4 * np.sqrt(3 / 4 / (N // 2))
    assert abs(x[:, 0, 1].var() - 0.125) < 0.05


def test_gamma_gradients_follow_the_quantiles() -> None:
    """The same quantile of a neighbouring distribution lies where the gradient says."""

    def make() -> Any:
        a, b = fs.constant([0.3, 2.0, 20.0], "float64"), fs.constant(2.0, "float64")
        y = fs.random_gamma([4], a, b, "float64")
        (ga,) = fs.gradients(y[0], a)
        (gb,) = fs.gradients(y, b)
        total = fs.reduce_sum(y)
        return fs.concat([y[0], ga, [gb, total]], 0)

    found = draw(make)
    y, slope, gb, total = found[:3] * 2, found[3:6] * 2, found[6], found[7]
    a = np.array([0.3, 2.0, 20.0])
    moved = special.gammaincinv(a + 1e-6, special.gammainc(a, y))
    np.testing.assert_allclose(slope, (moved - y) / 1e-6, rtol=1e-4)
    np.testing.assert_allclose(gb, -total / 2, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_poisson(dtype: str) -> None:
    x = draw(lambda: fs.random_poisson([4.0, 0.0], [N], dtype))
    assert x.shape == (N, 2)
    assert x.dtype == dtype
    assert not x[:, 1].any()
    assert abs(x[:, 0].mean() - 4) < 4 * 2 / np.sqrt(N)
    assert draw(lambda: fs.random.poisson(3.0, [2, 2])).shape == (2, 2)


def test_crop() -> None:
    x = np.arange(60).reshape(6, 10)
    places = set()
    with fs.Graph().as_default() as g, fs.Session(graph=g) as session:
        y = fs.random_crop(x, [2, 10], seed=3)
        assert y.shape.as_list() == [2, 10]
        for _ in range(40):
            got = session.run(y)
            places.add(got[0, 0])
            np.testing.assert_array_equal(got, x[got[0, 0] // 10 :][:2])
        assert places == {0, 10, 20, 30, 40}
        with pytest.raises(ValueError, match="a block that fits"):
            fs.random_crop(x, [7, 1])
        sizes = fs.placeholder(fs.int32, [2])
        with pytest.raises(ValueError, match="a block that fits"):
            session.run(fs.random_crop(x, sizes), {sizes: [1, 11]})


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
    with fs.Session() as session, pytest.raises(ValueError, match="parameters above 0, got -1"):
        session.run(fs.random_gamma([2], -1.0))
    with fs.Session() as session, pytest.raises(ValueError, match="rates from 0 on, got -1"):
        session.run(fs.random_poisson(-1.0, [2]))
    with pytest.raises(TypeError, match="real numbers, got bool"):
        fs.random_poisson(1.0, [2], "bool")
    with pytest.raises(ValueError, match="number of samples known"):
        fs.random.categorical([[1.0]], fs.placeholder(fs.int32, []))


def test_every_random_op_is_here() -> None:
    modules = [
        f"flowscope.ops.random.{m}" for m in ("normal_and_uniform", "distributions", "shuffling")
    ]
    ours = {n for n, c in all_ops().items() if c.__module__ in modules}
    assert ours == {
        "Multinomial",
        "RandomGamma",
        "RandomGammaGrad",
        "RandomNormal",
        "RandomPoisson",
        "RandomShuffle",
        "RandomUniform",
        "RandomUniformInt",
        "TruncatedNormal",
    }
