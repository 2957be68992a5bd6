# ruff: noqa: E501
# fmt: off
"""Rows of what works with places: gathers, scatters, sorts, sets, and axes given as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import B, C, F, I, In, Table, vec

import flowscope as fs

ROWS = Table()
row = ROWS.row

# -- gathers and scatters -------------------------------------------------------------------------


def each(x: Any, i: Any, axis: int, batch: int) -> Any:
    """np.take for each element of the batch."""
    if not batch:
        return np.take(x, i, axis)
    return np.stack([each(a, b, axis - 1 if axis > 0 else axis, batch - 1) for a, b in zip(x, i)])


_BI = In(value=[[1, 0, 2], [2, 2, 0]], dtype="int32")
row("batch_gather", fs.batch_gather, lambda x, i: each(x, i, 1, 1), In((2, 3, 2)), _BI, dtypes=(*F, "int32", "bool"), rank=True)
row("gather_batch_dims", lambda x, i: fs.gather(x, i, batch_dims=1), lambda x, i: each(x, i, 1, 1), In((2, 3)), _BI)
row("gather_batch_axis", lambda x, i: fs.gather(x, i, axis=-1, batch_dims=1), lambda x, i: each(x, i, -1, 1), In((2, 2, 3)), _BI)
row("gather_batch_two", lambda x, i: fs.gather(x, i, axis=2, batch_dims=2), lambda x, i: each(x, i, 2, 2), In((2, 1, 3, 2)), In(value=[[[0, 2]], [[1, 1]]], dtype="int64"))
row("gather_batch_rank", lambda x, i: fs.gather(x, i, batch_dims=1), lambda x, i: each(x, i, 1, 1), In((2, 3)), In(value=[1, 2], dtype="int32"))
row("gather_many", fs.gather, lambda x, i: x[i], In((40, 3)), In((2000,), 0, 39, dtype="int32"), dtypes=F, order=0)
row("gather_axis_fed", lambda x, i, a: fs.gather(x, i, axis=a), lambda x, i, a: x[:, i], In(), In(value=[[2, 0]], dtype="int32"), In(value=-1, dtype="int32"), dynamic=True)
row("gather_nd_batch", lambda x, i: fs.gather_nd(x, i, batch_dims=1), lambda x, i: np.stack([x[b][tuple(i[b, :, k] for k in range(2))] for b in range(2)]),
    In((2, 3, 4)), In(value=[[[0, 1], [2, 3]], [[1, 1], [0, 0]]], dtype="int64"), rank=True)
row("gather_nd_batch_two", lambda x, i: fs.gather_nd(x, i, batch_dims=2), lambda x, i: np.take_along_axis(x, i, 2)[..., 0],
    In((2, 3, 4)), In(value=[[[0], [1], [3]], [[2], [2], [0]]], dtype="int32"), rank=True)
_AT = In(value=[[0], [3], [2]], dtype="int32")


def changed(how: str) -> Any:
    def reference(x: Any, i: Any, u: Any) -> Any:
        out = x.copy()
        for at, change in zip(i.reshape(-1, i.shape[-1]), u.reshape(-1, *u.shape[i.ndim - 1:])):
            old = out[tuple(at)]
            out[tuple(at)] = {"update": lambda o, c: c, "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}[how](old, change)
        return out

    return reference


for _how in ("update", "add", "sub", "min", "max"):
    _f = getattr(fs, f"tensor_scatter_nd_{_how}")
    _order = 1 if _how in ("min", "max") else 2
    row(f"tensor_scatter_{_how}", _f, changed(_how), In((4, 2)), _AT, In((3, 2)), dtypes=(*F, *I), order=_order)
    row(f"tensor_scatter_{_how}_elements", _f, changed(_how), In((2, 3)), In(value=[[[0, 1]], [[1, 2]]], dtype="int64"), In((2, 1)), order=_order)
    row(f"tensor_scatter_{_how}_again", _f, changed(_how), In((3,)), In(value=[[1], [1], [0]], dtype="int32"), In((3,)), order=0 if _how == "update" else 1)
    row(f"tensor_scatter_{_how}_none", _f, lambda x, i, u: x, In((3,)), In((0, 1), dtype="int32"), In((0,)), order=_order)
    row(f"tensor_scatter_{_how}_many", _f, changed(_how), In((50, 3)), In((2000, 1), 0, 49, dtype="int32"), In((2000, 3)), order=0, rtol=1e-3)
row("tensor_scatter_max_ties", fs.tensor_scatter_nd_max, changed("max"), In(value=[1, 2, 3]), In(value=[[0], [2]], dtype="int32"), In(value=[1, 4]), order=0)
row("tensor_scatter_bool", fs.tensor_scatter_nd_update, changed("update"), In((4,)), _AT, In((3,)), dtypes=(*B, *C), order=0)
row("scatter_nd_slices", lambda i, u: fs.scatter_nd(i, u, [3, 2]), lambda i, u: np.stack([u[1], 0 * u[0], u[0] + u[2]]), In(value=[[2], [0], [2]], dtype="int32"), In((3, 2)), dtypes=(*F, "int32"))
row("scatter_nd_many", lambda i, u: fs.scatter_nd(i, u, [7, 6]), lambda i, u: changed("add")(np.zeros((7, 6), u.dtype), i, u),
    In((5000, 2), 0, 5, dtype="int32"), In((5000,)), order=0, rtol=1e-3)

# -- sorting --------------------------------------------------------------------------------------

for _axis, _down in ((-1, False), (0, True), (1, False), (-1, True)):
    _o = {"axis": _axis, "direction": "DESCENDING" if _down else "ASCENDING"}
    row(f"sort_{_axis}_{_down}", lambda x, o=_o: fs.sort(x, **o),
        lambda x, a=_axis, d=_down: np.flip(np.sort(x, a), a) if d else np.sort(x, a), In((3, 4)), dtypes=(*F, "float16", *I))
    row(f"argsort_{_axis}_{_down}", lambda x, o=_o: fs.argsort(x, **o),
        lambda x, a=_axis, d=_down: np.argsort(-x.astype("f8") if d else x, a, kind="stable").astype("i4"), In((3, 4), -1, 1), dtypes=(*F, *I), order=0)
row("sort_none", fs.sort, lambda x: x, In((2, 0)))
row("sort_axis_fed", lambda x, a: fs.sort(x, axis=a), lambda x, a: np.sort(x, 0), In((3, 2)), In(value=0, dtype="int32"), dynamic=True)
row("searchsorted", fs.searchsorted, lambda a, v: np.searchsorted(a, v).astype("i4"), In(value=[1, 3, 5]), In(value=[0, 1, 5, 9, 3]), dtypes=(*F, "int32", "int64"), order=0)
row("searchsorted_right", lambda a, v: fs.searchsorted(a, v, "right", "int64"), lambda a, v: np.array([[1, 2], [2, 3]]),
    In(value=[[1, 3, 5], [2, 4, 6]]), In(value=[[1, 4], [4, 7]]), order=0)
row("searchsorted_none", fs.searchsorted, lambda a, v: np.zeros((2, 0), "i4"), In((2, 3)), In((2, 0)), order=0)

# -- sets -----------------------------------------------------------------------------------------

row("unique", fs.unique, lambda x: [np.array([3, 1, 2], x.dtype), np.array([0, 1, 0, 2], "i4")], In(value=[3, 1, 3, 2]), dtypes=(*F, *I), order=0, dynamic=True)
row("unique_wide", fs.unique, lambda x: [np.array([-2**62, 5, 2**62]), np.array([0, 1, 2, 1], "i4")], In(value=[-2**62, 5, 2**62, 5], dtype="int64"), order=0, dynamic=True)
row("unique_edges", fs.unique, lambda x: [x[:2], np.array([0, 1, 0], "i4")], In(value=[-128, 127, -128], dtype="int8"), order=0, dynamic=True)
row("unique_unsigned", fs.unique, lambda x: [x[:2], np.array([0, 1, 0], "i4")], In(value=[2**64 - 1, 2**64 - 9, 2**64 - 1], dtype="uint64"), order=0, dynamic=True)
row("unique_nan", lambda x: fs.unique(x, "int64"), lambda x: [x, np.array([0, 1])], In(value=[np.nan, np.nan]), order=0, dynamic=True)
row("unique_none", fs.unique, lambda x: [x, np.zeros(0, "i4")], In((0,)), order=0, dynamic=True)
row("unique_with_counts", fs.unique_with_counts, lambda x: [np.array([3, 1, 2], x.dtype), np.array([0, 1, 0, 2, 0], "i4"), np.array([3, 1, 1], "i4")],
    In(value=[3, 1, 3, 2, 3]), dtypes=(*F, "int32"), order=0, dynamic=True)
row("unique_strings", lambda x: fs.unique_with_counts(x)[1:], lambda x: [np.array([0, 1, 0], "i4"), np.array([2, 1], "i4")],
    In(value=[b"b", b"a", b"b"], dtype="object"), order=0, dynamic=True)
row("setdiff1d", fs.setdiff1d, lambda x, y: [np.array([1, 2, 2], x.dtype), np.array([0, 1, 3], "i4")], In(value=[1, 2, 3, 2]), In(value=[3, 7]),
    dtypes=(*F, "int32", "int64"), order=0, dynamic=True)
row("setdiff1d_strings", lambda x, y: fs.listdiff(x, y, "int64")[1], lambda x, y: np.array([1]), In(value=[b"a", b"b"], dtype="object"), In(value=[b"a"], dtype="object"), order=0, dynamic=True)

# -- axes as tensors ------------------------------------------------------------------------------

_A = In(value=-2, dtype="int32")
_AA = vec(2, 0)
_X = In((2, 3, 2))
for _name, _np in (("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min), ("logsumexp", lambda x, axis, keepdims=False: np.log(np.sum(np.exp(x), axis, keepdims=keepdims)))):
    _f = getattr(fs, f"reduce_{_name}")
    _order = 1 if _name in ("max", "min", "prod") else 2
    row(f"{_name}_axis_fed", lambda x, a, f=_f: f(x, a), lambda x, a, n=_np: n(x, axis=1), _X, _A, dynamic=True, order=_order)
    row(f"{_name}_axes_fed", lambda x, a, f=_f: f(x, a, keepdims=True), lambda x, a, n=_np: n(x, axis=(0, 2), keepdims=True), _X, _AA, dynamic=True, order=_order)
row("all_axes_fed", fs.reduce_all, lambda x, a: x.all((0, 2)), _X, _AA, dtypes=B, order=0, dynamic=True)
row("any_axis_fed", fs.reduce_any, lambda x, a: x.any(1), _X, _A, dtypes=B, order=0, dynamic=True)
row("sum_axes_none", fs.reduce_sum, lambda x, a: x, _X, In((0,), dtype="int32"), dynamic=True)
row("sum_axes_packed", lambda x, a: fs.reduce_sum(x, [a, 0]), lambda x, a: x.sum((0, 1)), _X, _A, dynamic=True)
row("sum_axis_known", lambda x: fs.reduce_sum(x, [fs.constant(1), 0]), lambda x: x.sum((0, 1)), _X)
row("sum_axis_size", lambda x, a: fs.reduce_sum(x, a), lambda x, a: x.sum(1), In((0, 3)), In(value=1, dtype="int64"), dynamic=True)
row("variance_axis_fed", lambda x, a: fs.math.reduce_variance(x, a), lambda x, a: x.var(1), _X, _A, dynamic=True)
row("transpose_fed", fs.transpose, lambda x, p: x.transpose(2, 0, 1), _X, vec(2, 0, 1), dtypes=(*F, "int32"), dynamic=True)
row("concat_fed", lambda x, y, a: fs.concat([x, y], a), lambda x, y, a: np.concatenate([x, y], 1), _X, In((2, 1, 2)), _A, dynamic=True)
row("split_axis_fed", lambda x, a: fs.split(x, 3, a), lambda x, a: np.split(x, 3, 1), _X, _A, dynamic=True)
row("split_lengths_fed", lambda x, n: fs.split(x, n, 1), lambda x, n: np.split(x, [1, 3], 1), In((2, 4)), vec(1, 2, -1), dynamic=True, static=True)
row("split_both_fed", lambda x, n, a: fs.split(x, n, a, num=2), lambda x, n, a: np.split(x, [2], 1), _X, vec(2, 1), _A, dynamic=True)
row("reverse_fed", fs.reverse, lambda x, a: x[::-1, :, ::-1], _X, _AA, dynamic=True)
row("reverse_known", lambda x: fs.reverse_v2(x, fs.constant([1])), lambda x: x[:, ::-1], _X)
row("argmax_fed", fs.argmax, lambda x, a: x.argmax(1), _X, _A, order=0, dynamic=True)
row("argmin_fed", lambda x, a: fs.argmin(x, a, output_type="int32"), lambda x, a: x.argmin(1).astype("i4"), _X, _A, order=0, dynamic=True)
row("cumsum_fed", lambda x, a: fs.cumsum(x, a, True), lambda x, a: x.cumsum(1) - x, _X, _A, dynamic=True)
row("cumprod_fed", fs.cumprod, lambda x, a: x.cumprod(1), In((2, 3, 2), 0.5, 2), _A, dynamic=True)
row("expand_dims_fed", fs.expand_dims, lambda x, a: x[:, None], In(), _A, dynamic=True)
for _ex, _re in ((False, False), (True, False), (False, True), (True, True)):
    def _lse(x: Any, ex: bool = _ex, re: bool = _re) -> Any:
        y = x[:, ::-1] if re else x
        y = np.logaddexp.accumulate(y, 1)
        y = np.concatenate([np.full((len(x), 1), -np.inf, x.dtype), y[:, :-1]], 1) if ex else y
        return y[:, ::-1] if re else y
    row(f"cumulative_logsumexp_{_ex:d}{_re:d}", lambda x, ex=_ex, re=_re: fs.math.cumulative_logsumexp(x, 1, ex, re), _lse, In((2, 4)), order=0 if _ex else 2)
row("cumulative_logsumexp_exclusive", lambda x: fs.exp(fs.math.cumulative_logsumexp(x, 0, True)), lambda x: np.exp(x).cumsum(0) - np.exp(x), In((4,)), order=1)
row("cumulative_logsumexp_far", fs.math.cumulative_logsumexp, lambda x: np.array([-1000, 1000], x.dtype), In(value=[-1000, 1000]), order=0)
