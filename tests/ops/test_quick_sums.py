"""Sums and maxima of large arrays, which go other ways than small ones."""

import numpy as np
import pytest

import flowscope as fs

CASES = [
    ((1000, 5), 1),
    ((300, 33), -1),
    ((300, 33), 1),
    ((2, 5000), 1),
    ((1003, 7), 0),
    ((1, 5000), 0),
    ((20, 30, 10), (1, 2)),
    ((20, 30, 10), (0, 1)),
    ((20, 30, 10), 1),
    ((20, 30, 10), (0, 2)),
    ((20, 30, 10), None),
]


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_of_large_arrays(graph, sess, shape, axis, dtype, keepdims):
    x = np.random.default_rng(0).uniform(-2, 9, shape).astype(dtype)
    given = fs.constant(x)
    functions = (fs.reduce_sum, fs.reduce_mean, fs.reduce_max, fs.reduce_min)
    got = sess.run([f(given, axis, keepdims) for f in functions[:1] + functions[2:]])
    wide = x.astype("f8")
    wanted = [wide.sum(axis, keepdims=keepdims), *[
        getattr(x, n)(axis, keepdims=keepdims) for n in ("max", "min")
    ]]  # fmt: skip
    tolerance = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12, "int32": 0}[dtype]
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == dtype
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * 10)
    if dtype != "int32":
        mean = sess.run(fs.reduce_mean(given, axis, keepdims))
        np.testing.assert_allclose(mean, wide.mean(axis, keepdims=keepdims), rtol=tolerance * 4)


@pytest.mark.parametrize("columns", [5, 33, 100])
def test_a_maximum_hands_on_nan_and_infinity(graph, sess, columns):
    x = np.random.default_rng(0).standard_normal((1000, columns)).astype("f4")
    x[3, 2], x[7, 1], x[9, 4], x[11] = np.nan, np.inf, -np.inf, -np.inf
    got = sess.run([fs.reduce_max(fs.constant(x), 1), fs.reduce_min(fs.constant(x), 1)])
    np.testing.assert_array_equal(got, [x.max(1), x.min(1)])


def test_a_sum_over_many_rows_is_exact(graph, sess):
    x = np.full((1_000_000, 3), 0.1, "f4")
    total = sess.run(fs.reduce_sum(fs.constant(x), 0))
    np.testing.assert_allclose(total, 1e5, rtol=1e-5)
