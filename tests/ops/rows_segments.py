# ruff: noqa: E501
# fmt: off
"""Rows of segment reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import C, F, In, Table, vec

import flowscope as fs

ROWS = Table()
row = ROWS.row

_UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def folded(x: Any, ids: Any, n: int, kind: str, empty: Any) -> Any:
    """What the op must give, row by row."""
    rows = x.reshape(ids.size, *x.shape[ids.ndim:])
    out = np.full((n, *rows.shape[1:]), empty, x.dtype)
    for i in range(n):
        mine = rows[ids.reshape(-1) == i]
        if len(mine):
            out[i] = mine.mean(0, x.dtype) if kind == "mean" else _UFUNCS[kind].reduce(mine, 0, x.dtype)
    return out


def lowest(x: Any) -> Any:
    return np.finfo(x.dtype).min if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def highest(x: Any) -> Any:
    return np.finfo(x.dtype).max if x.dtype.kind == "f" else np.iinfo(x.dtype).max


_ANY = vec(2, -1, 0, 2, 0)
_RISING = vec(0, 0, 2, 2, 2)
_X = In((5, 2), 0.5, 2)
for _kind, _empty in (("sum", 0), ("prod", 1), ("max", lowest), ("min", highest)):
    def _e(x: Any, e: Any = _empty) -> Any:
        return e(x) if callable(e) else e
    _types = (*F, "float16", "int32", "int64", "int8", *(C if _kind == "sum" else ()))
    _order = {"sum": 2, "prod": 2}.get(_kind, 0)
    _f = getattr(fs, f"unsorted_segment_{_kind}")
    row(f"unsorted_segment_{_kind}", lambda x, i, f=_f: f(x, i, 4),
        lambda x, i, k=_kind, e=_e: folded(x, i, 4, k, e(x)), _X, _ANY, dtypes=_types, order=_order)
    row(f"unsorted_segment_{_kind}_matrix", lambda x, i, f=_f: f(x, i, 3),
        lambda x, i, k=_kind, e=_e: folded(x, i, 3, k, e(x)), In((2, 2, 2)), In(value=[[0, 1], [1, 0]], dtype="int64"), order=_order)
    row(f"unsorted_segment_{_kind}_vector", lambda x, i, n, f=_f: f(x, i, n),
        lambda x, i, n, k=_kind, e=_e: folded(x, i, 4, k, e(x)), In((5,)), _ANY, In(value=4, dtype="int32"), order=_order, dynamic=True)
    row(f"unsorted_segment_{_kind}_ties", lambda x, i, f=_f: f(x, i, 2),
        lambda x, i, k=_kind, e=_e: folded(x, i, 2, k, e(x)), In(value=[[1, 0], [1, 2], [0, 0]]), vec(0, 0, 0), order=0)
    if not _order:  # the extremes of nothing are too large for differences
        row(f"unsorted_segment_{_kind}_grad", lambda x, i, f=_f: f(x, i, 3),
            lambda x, i, k=_kind: folded(x, i, 3, k, 0), In((6, 2)), vec(2, -1, 0, 2, 1, 1), order=1)
    for _shape, _n in (((5000, 2), 100), ((600, 16), 50), ((500, 16), 3)):
        row(f"unsorted_segment_{_kind}_{_shape[1]}_{_n}", lambda x, i, f=_f, n=_n: f(x, i, n),
            lambda x, i, k=_kind, n=_n, e=_e: folded(x, i, n, k, e(x)),
            In(_shape, 0.9, 1.1), In(_shape[:1], -1, _n - 2, dtype="int32"), dtypes=(*F, "int32"), order=0, rtol=1e-4)
    _g = getattr(fs, f"segment_{_kind}")
    row(f"segment_{_kind}", _g, lambda x, i, k=_kind: folded(x, i, 3, k, int(k == "prod")), _X, _RISING,
        dtypes=_types, order=_order or 1, dynamic=True)
    row(f"segment_{_kind}_none", _g, lambda x, i: np.zeros((0, 2), x.dtype), In((0, 2)), In((0,), dtype="int32"), order=0, dynamic=True)
row("unsorted_segment_prod_zeros", lambda x, i: fs.unsorted_segment_prod(x, i, 3), lambda x, i: folded(x, i, 3, "prod", 1),
    In(value=[0, 2, 0, 0, 3, 5, 7]), vec(0, 0, 1, 1, 1, 2, -1), order=1)
row("segment_ids_known", lambda x: fs.segment_sum(x, [0, 0, 2]), lambda x: np.stack([x[0] + x[1], 0 * x[0], x[2]]), In((3, 2)))
row("segment_mean", fs.segment_mean, lambda x, i: folded(x, i, 3, "mean", 0), _X, _RISING, dtypes=(*F, *C), dynamic=True)
row("unsorted_segment_mean", lambda x, i: fs.unsorted_segment_mean(x, i, 4), lambda x, i: folded(x, i, 4, "mean", 0), _X, _ANY)
row("unsorted_segment_sqrt_n", lambda x, i: fs.unsorted_segment_sqrt_n(x, i, 4),
    lambda x, i: (folded(x, i, 4, "sum", 0) / np.sqrt([[2], [1], [2], [1]])).astype(x.dtype), _X, _ANY)

_PICK = vec(3, 0, 0, 1)
_INTO = vec(0, 0, 2, 2)
_N = {"sum": [[1], [1], [1]], "mean": [[2], [1], [2]], "sqrt_n": np.sqrt([[2], [1], [2]])}
for _kind in ("sum", "mean", "sqrt_n"):
    _h = getattr(fs, f"sparse_segment_{_kind}")
    row(f"sparse_segment_{_kind}", _h, lambda x, p, i, k=_kind: (folded(x[p], i, 3, "sum", 0) / _N[k]).astype(x.dtype),
        In((4, 2)), _PICK, _INTO, dynamic=True)
    row(f"sparse_segment_{_kind}_num", lambda x, p, i, h=_h: h(x, p, i, num_segments=4),
        lambda x, p, i, k=_kind: (folded(x[p], i, 4, "sum", 0) / [*_N[k], [1]]).astype(x.dtype), In((4, 2)), _PICK, _INTO)
