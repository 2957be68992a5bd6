"""What is done with NaN where elements are compared: one order, in which it is the largest.

Extremes are NaN where an element is; what sorts puts NaN behind everything, the falling order in
front. TensorFlow promises nothing here: which element its sorts and extremes choose hangs on where
NaN stands, on the dtype and on the size. Where it has a rule (`in_top_k`, the morphological
operations, `unique`, comparisons, casts), the rule is the same here, and the numbers are its.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowscope as fs

NAN = float("nan")
FLOATS = ["float16", "float32", "float64", "bfloat16"]
X = [
    [1, NAN, 3, NAN, 2],
    [NAN, NAN, NAN, NAN, NAN],
    [5, 4, NAN, 4, 5],
    [-np.inf, 2, np.inf, 0, NAN],
]
IDS = np.int32([0, 0, 1, 1])
IMAGE = (1, 4, 5, 1)


def array(values: Any, dtype: str) -> Any:
    return np.array(values, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def places_of(row: Any, falling: bool) -> list[int]:
    """The order of a row by Python's own sort, which keeps the order of equal ones."""
    keys = [np.inf if np.isnan(v) else np.arctan(float(v)) for v in row]
    return sorted(range(len(keys)), key=lambda i: -keys[i] if falling else keys[i])


#: Name, call, what it gives for X, or for the vector `1 NaN NaN 1 NaN`.
ROWS: list[tuple[str, Any, Any, Any]] = []


def row(name: str, call: Any, want: Any, given: Any = X) -> None:
    ROWS.append((name, call, given, want))


N3 = [NAN, NAN, NAN]
row("reduce_max", lambda x: fs.reduce_max(x, 1), [NAN] * 4)
row("reduce_min", lambda x: fs.reduce_min(x, 1), [NAN] * 4)
row("reduce_max_columns", lambda x: fs.reduce_max(x, 0), [NAN] * 5)
row("argmax", lambda x: fs.argmax(x, 1), [1, 0, 2, 4])
row("argmin", lambda x: fs.argmin(x, 1), [1, 0, 2, 4])
row("argmax_columns", fs.argmax, [1, 0, 1, 0, 1])
for _falling, _way in ((False, "ASCENDING"), (True, "DESCENDING")):
    _order = [places_of(r, _falling) for r in X]
    row(f"argsort_{_way}", lambda x, w=_way: fs.argsort(x, direction=w), _order)
    _sorted = [[r[i] for i in places] for r, places in zip(X, _order)]
    row(f"sort_{_way}", lambda x, w=_way: fs.sort(x, direction=w), _sorted)
for _k in (1, 2, 3, 5):
    _order = [places_of(r, True)[:_k] for r in X]
    row(f"top_k_{_k}", lambda x, k=_k: fs.nn.top_k(x, k)[1], _order)
    _sorted = [[r[i] for i in places] for r, places in zip(X, _order)]
    row(f"top_k_values_{_k}", lambda x, k=_k: fs.nn.top_k(x, k)[0], _sorted)
row("top_k_gradient", lambda x: fs.gradients(fs.nn.top_k(x, 2)[0], x)[0],
    [[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 1, 0, 1]])  # fmt: skip
row("in_top_k", lambda x: fs.nn.in_top_k(fs.cast(x, "float32"), [2, 0, 0, 1], 5), [False] * 4)
row(
    "searchsorted",
    lambda x: fs.searchsorted(x, fs.cast([0.0, 2.0, NAN, 9.0], x.dtype)),
    [0, 1, 3, 3],
    [1, 2, 3, NAN],
)
row(
    "searchsorted_right",
    lambda x: fs.searchsorted(x, fs.cast([0.0, 2.0, NAN, 9.0], x.dtype), "right"),
    [0, 2, 4, 3],
    [1, 2, 3, NAN],
)
_V = [1, NAN, NAN, 1, NAN]
row("unique", lambda x: fs.unique(x)[0], [1, NAN, NAN, NAN], _V)
row("unique_places", lambda x: fs.unique(x)[1], [0, 1, 2, 0, 3], _V)
row("unique_counts", lambda x: fs.unique_with_counts(x)[2], [2, 1, 1, 1], _V)
row("setdiff1d", lambda x: fs.setdiff1d(x, fs.cast([1.0, NAN], x.dtype))[0], N3, _V)
row("maximum", lambda x: fs.maximum(x, x[::-1]), [NAN, NAN, NAN, NAN, NAN], _V)
row("minimum", lambda x: fs.minimum(x[:2], x[1::-1]), [NAN, NAN], _V)
row(
    "clip",
    lambda x: fs.clip_by_value(x, fs.cast(2, x.dtype), fs.cast(3, x.dtype)),
    [2, NAN, NAN, 2, NAN],
    _V,
)
row("equal", lambda x: fs.equal(x, x), [True, False, False, True, False], _V)
row(
    "less",
    lambda x: fs.less(x, fs.cast(2, x.dtype)) | (x >= fs.cast(2, x.dtype)),
    [True, False, False, True, False],
    _V,
)
for _f in (fs.segment_max, fs.segment_min):
    row(_f.__name__, lambda x, f=_f: f(x, [0, 0, 1, 1, 2]), N3, _V)
for _f in (fs.unsorted_segment_max, fs.unsorted_segment_min):
    row(_f.__name__, lambda x, f=_f: f(x, [0, 0, 1, 1, 2], 3), N3, _V)
row("tensor_scatter_max", lambda x: fs.tensor_scatter_nd_max(x[:3], [[0], [1], [2]], x[2:]), N3, _V)
row("tensor_scatter_min", lambda x: fs.tensor_scatter_nd_min(x[:3], [[0], [1], [2]], x[2:]), N3, _V)
row("sparse_reduce_max", lambda x: fs.sparse.reduce_max(fs.sparse.from_dense(x), 1), [NAN] * 4)
row(
    "sparse_maximum",
    lambda x: fs.sparse.maximum(fs.sparse.from_dense(x), fs.sparse.from_dense(x[::-1])).values,
    [NAN] * 5,
    _V,
)
row(
    "cumulative_logsumexp", lambda x: fs.math.cumulative_logsumexp(x[3::-1]), [1, NAN, NAN, NAN], _V
)
row("reduce_logsumexp", fs.reduce_logsumexp, NAN, _V)
row("softmax", fs.nn.softmax, [NAN] * 5, _V)
row("log_softmax", fs.nn.log_softmax, [NAN] * 5, _V)
row("relu", fs.nn.relu, _V, _V)
row("relu6", fs.nn.relu6, _V, _V)
row("leaky_relu", fs.nn.leaky_relu, _V, _V)
row("sign", fs.sign, _V, _V)
P = [[1, NAN, 3, 2, 2], [0, 0, 0, NAN, 0], [5, 4, 0, 4, 5], [-np.inf, 2, np.inf, 0, NAN]]


def pooled(x: Any) -> Any:
    return fs.nn.max_pool(fs.reshape(x, IMAGE), [1, 2, 2, 1], [1, 2, 3, 1], "VALID")


def per_window(x: Any) -> Any:
    g = fs.gradients(pooled(x), x)[0]
    return [[fs.reduce_sum(g[i : i + 2, j : j + 2]) for j in (0, 3)] for i in (0, 2)]


row("max_pool", lambda x: pooled(x)[0, :, :, 0], [[NAN, NAN], [5, NAN]], P)
row("max_pool_gradient", per_window, [[1, 1], [1, 1]], P)
row("cast_bool", lambda x: fs.cast(x, "bool"), [True] * 5, _V)
row("count_nonzero", fs.count_nonzero, 5, _V)
row("where", fs.where, [[0], [1], [2], [3], [4]], _V)
row(
    "histogram",
    lambda x: fs.histogram_fixed_width(fs.cast(x, "float32"), [0.0, 2.0], 2),
    [3, 2],
    _V,
)


def dilated(x: Any) -> Any:
    image, nothing = fs.reshape(fs.cast(x, "float32"), IMAGE), fs.zeros([2, 2, 1])
    y = fs.nn.dilation2d(image, filter=nothing, strides=[1] * 4, rates=[1] * 4, padding="VALID")
    return y[0, :2, :, 0]


#: The numbers of TensorFlow 2.21: comparisons with NaN are false, so it is passed over.
row("dilation2d", dilated, [[1, 3, 3, 2], [5, 4, 4, 5]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("call", "given", "want"), [pytest.param(*r[1:], id=r[0]) for r in ROWS])
def test_what_comes_of_nan(sess: Any, call: Any, given: Any, want: Any, dtype: str) -> None:
    x = fs.placeholder(dtype, np.shape(given))
    np.testing.assert_array_equal(np.float64(sess.run(call(x), {x: array(given, dtype)})), want)
