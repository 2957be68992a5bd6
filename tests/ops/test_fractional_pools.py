"""Fractional pools: their windows, values by those windows, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError

X = np.random.default_rng(2).normal(size=(2, 11, 8, 3))
RATIO = [1, 1.5, 1.3, 1]


def regions(x: Any, rows: Any, columns: Any, overlapping: bool, function: Any) -> Any:
    down, across = (
        [slice(a, b + overlapping) for a, b in zip(s[:-1], s[1:])] for s in (rows, columns)
    )
    return np.stack([np.stack([function(x[:, i, j], (1, 2)) for j in across], 1) for i in down], 1)


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize(
    ("pool", "function"), [("fractional_max_pool", np.max), ("fractional_avg_pool", np.mean)]
)
def test_values(
    graph: Any, sess: Any, pool: str, function: Any, pseudo_random: bool, overlapping: bool
) -> None:
    x = fs.placeholder(fs.float64, [None, 11, 8, 3])
    found = getattr(fs.nn, pool)(x, RATIO, pseudo_random, overlapping)
    assert found.output.shape.as_list() == [None, 7, 6, 3]
    y, rows, columns = sess.run(found, {x: X})
    assert y.shape == (2, 7, 6, 3)
    for sequence, n in ((rows, 11), (columns, 8)):
        assert (sequence[0], sequence[-1]) == (0, n)
        assert set(np.diff(sequence)) <= {1, 2}
    np.testing.assert_allclose(y, regions(X, rows, columns, overlapping, function), rtol=1e-12)


def test_the_windows_change_from_run_to_run_and_a_seed_repeats_them(graph: Any) -> None:
    pools = [fs.nn.fractional_max_pool(X, RATIO, seed=s) for s in (5, 5, 0)]
    fixed = fs.nn.fractional_max_pool(X, RATIO, deterministic=True)
    runs = []
    for _ in range(2):
        with fs.Session() as session:
            runs.append(
                [session.run([p.row_pooling_sequence for p in [*pools, fixed]]) for _ in "abc"]
            )
    for a, b in zip(*runs):
        for i in (0, 1, 3):
            np.testing.assert_array_equal(a[i], b[i])
    drawn = {tuple(r[0]) for r in runs[0]}
    assert len(drawn) > 1


@pytest.mark.parametrize("pool", ["fractional_max_pool", "fractional_avg_pool"])
def test_gradient(graph: Any, pool: str) -> None:
    x = fs.constant(X)
    found = getattr(fs.nn, pool)(x, RATIO, overlapping=True)
    weights = np.random.default_rng(3).normal(size=(2, 7, 6, 3))
    (g,) = fs.gradients(fs.reduce_sum(found.output * weights), x)
    with fs.Session() as session:
        slope, rows, columns = session.run([g, *found[1:]])
    function = np.max if "max" in pool else np.mean
    moved = np.random.default_rng(4).normal(size=X.shape)
    ends = [
        (regions(X + s * 1e-6 * moved, rows, columns, True, function) * weights).sum()
        for s in (1, -1)
    ]
    np.testing.assert_allclose((slope * moved).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("ratio", "message"),
    [([1, 0.5, 1, 1], "at least"), ([2, 2, 2, 1], "batch"), ([1, 2, 2], "four numbers")],
)
def test_errors(graph: Any, ratio: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        fs.nn.fractional_max_pool(X, ratio)
