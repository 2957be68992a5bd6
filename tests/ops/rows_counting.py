# ruff: noqa: E501
# fmt: off
"""Rows of counts and histograms."""

from __future__ import annotations

import numpy as np
from row_tools import F, In, Table, vec

import flowscope as fs

ROWS = Table()
row = ROWS.row

_N = vec(1, 1, 3)
row("bincount", fs.bincount, lambda n: np.array([0, 2, 0, 1], "i4"), _N, order=0, dynamic=True)
row("bincount_min", lambda n: fs.bincount(n, minlength=6, dtype="int64"), lambda n: np.array([0, 2, 0, 1, 0, 0]), _N, order=0, dynamic=True)
row("bincount_max", lambda n: fs.bincount(n, maxlength=2), lambda n: np.array([0, 2], "i4"), _N, order=0, dynamic=True)
row("bincount_both", lambda n: fs.bincount(n, minlength=5, maxlength=5, dtype="float32"), lambda n: np.array([0, 2, 0, 1, 0], "f4"), _N, order=0)
row("bincount_none", fs.bincount, lambda n: np.zeros(0, "i4"), In((0,), dtype="int32"), order=0, dynamic=True)
row("bincount_matrix", fs.bincount, lambda n: np.array([0, 1, 3], "i4"), In(value=[[1, 2], [2, 2]], dtype="int64"), order=0, dynamic=True)
row("bincount_weights", fs.bincount, lambda n, w: np.array([0, w[0] + w[1], 0, w[2]], w.dtype), _N, In((3,)), dtypes=(*F, "int32"), order=0, dynamic=True)
row("bincount_weights_max", lambda n, w: fs.bincount(n, w, maxlength=3), lambda n, w: np.array([0, w[0] + w[1], 0], w.dtype), _N, In((3,)), order=0, dynamic=True)
_V = In(value=[[-1, 0, 1.5], [2, 5, 15]])
row("histogram", lambda x: fs.histogram_fixed_width(x, [0, 5], 5), lambda x: np.array([2, 1, 1, 0, 2], "i4"), _V, dtypes=(*F, "float16"), order=0)
row("histogram_int", lambda x: fs.histogram_fixed_width(x, [0, 5], 5, "int64"), lambda x: np.array([1, 1, 0, 0, 1]), In(value=[0, 1, 9], dtype="int32"), order=0)
row("histogram_fed", lambda x, r: fs.histogram_fixed_width(x, r), lambda x, r: np.bincount([0, 20], minlength=100).astype("i4"),
    In(value=[0, 1]), In(value=[0, 5]), order=0)
row("histogram_bins", lambda x: fs.histogram_fixed_width_bins(x, [0, 5], 5), lambda x: np.array([[0, 0, 1], [2, 4, 4]], "i4"), _V, order=0)
row("unravel_index", fs.unravel_index, lambda i, d: np.array([[1, 1], [2, 0]], "i4"), vec(5, 3), vec(2, 3), order=0)
row("unravel_index_one", fs.unravel_index, lambda i, d: np.array([1, 2]), In(value=5, dtype="int64"), vec(2, 3, dtype="int64"), order=0)
