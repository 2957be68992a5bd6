"""Pools large enough for oneDNN, where it is installed: NumPy says the same."""

import numpy as np
import pytest
from onednn_sides import both

import flowscope as fs
from flowscope.ops.kernels import onednn_pools

CASES = [
    # images, window, stride, padding, data_format
    ((8, 28, 27, 16), 2, 2, "SAME", "NHWC"),
    ((8, 28, 27, 16), 3, 2, "SAME", "NHWC"),
    ((8, 28, 27, 16), (3, 2), 1, "VALID", "NHWC"),
    ((8, 16, 27, 28), 3, 2, "SAME", "NCHW"),
    ((2, 100, 100, 3), 5, 3, "SAME", "NHWC"),
]


@pytest.mark.parametrize("pool", [fs.nn.max_pool, fs.nn.avg_pool], ids=["max", "avg"])
@pytest.mark.parametrize(("shape", "window", "stride", "padding", "form"), CASES)
def test_pool_and_gradients(monkeypatch, pool, shape, window, stride, padding, form):
    def results(x):
        y = pool(x, window, stride, padding, data_format=form)
        g = fs.gradients(fs.square(y), x)[0]
        return [y, g, fs.gradients(fs.square(g), x)[0]]

    x = np.random.default_rng(0).integers(0, 9, shape).astype("f4")  # with ties
    for a, b in zip(*both(monkeypatch, results, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_maximum_of_what_is_not_finite_is_not_lost(monkeypatch, bad):
    x = np.full((8, 28, 28, 16), bad, "f4")
    first, second = both(monkeypatch, lambda x: fs.nn.max_pool(x, 3, 2, "SAME"), x)
    np.testing.assert_array_equal(first, second)


def test_they_run_where_the_library_is_installed():
    axes = tuple(onednn_pools.Axis(n, 1, 1, 1, 0, n) for n in (8, 28))
    x = np.ones((8, 28, 28, 16), "f4")
    all_axes = (axes[0], *[onednn_pools.Axis(28, 2, 2, 1, 0, 14)] * 2, axes[0].__class__(
        16, 1, 1, 1, 0, 16))  # fmt: skip
    y = onednn_pools.pooled("mean", x, all_axes)
    if onednn_pools.library() is None:
        assert y is None
    else:
        assert y.shape == (8, 14, 14, 16)
        assert (y == 1).all()
