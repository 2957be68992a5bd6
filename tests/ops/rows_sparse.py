# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""Rows of the ops' table: sparse tensors. Their places are constants, their values inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import C, F, In, Table, vec

import flowscope as fs
from flowscope.ops.sparse.arithmetic import sparse_dense_cwise_add

ROWS = Table()
row = ROWS.row

_AT = np.array([[0, 1], [1, 0], [1, 2], [2, 2]], "i8")
_OTHER = np.array([[0, 0], [1, 2], [2, 0]], "i8")
_SHAPE = (4, 3)
_MIXED = _AT[[2, 0, 3, 1]]
_V, _W = In((4,)), In((3,))
_CUBE = np.array([[0, 0, 1], [0, 1, 0], [1, 1, 1]], "i8")


def sp(values: Any, at: Any = _AT, shape: Any = _SHAPE) -> Any:
    return fs.SparseTensor(at, values, shape)


def de(values: Any, at: Any = _AT, shape: Any = _SHAPE) -> Any:
    out = np.zeros(shape, values.dtype)
    np.add.at(out, tuple(at.T), values)
    return out


def parts(x: Any) -> Any:
    """The coordinates, values and shape of a dense array's elements that are not zero."""
    at = np.argwhere(x)
    return [at, x[tuple(at.T)], np.array(x.shape, "i8")]


def three(x: Any) -> Any:
    return [x.indices, x.values, x.dense_shape]


def sparse(name: str, call: Any, reference: Any, *inputs: In, **options: Any) -> None:
    """A row whose call gives a sparse tensor, and whose reference gives it dense."""
    row(name, lambda *xs: three(call(*xs)), lambda *xs: parts(reference(*xs)), *inputs, dynamic=True, **options)


# -- forms ----------------------------------------------------------------------------------------

row("sparse_dense", lambda v: fs.sparse_tensor_to_dense(sp(v)), de, _V, dtypes=(*F, *C, "int32"))
row("sparse_dense_default", lambda v: fs.sparse_tensor_to_dense(sp(v), 7), lambda v: np.where(de(np.ones(4)) == 0, v.dtype.type(7), de(v)), _V)
row("sparse_to_dense", lambda v, d: fs.sparse_to_dense([1, 3], [5], v, d), lambda v, d: np.array([d, v[0], d, v[1], d], v.dtype), In((2,)), In(()))
row("sparse_to_dense_one", lambda v: fs.sparse_to_dense([[0, 1], [1, 0]], [2, 2], v), lambda v: np.array([[0, v], [v, 0]], v.dtype), In(()))
row("sparse_to_dense_scalar", lambda v: fs.sparse_to_dense(2, [3], v, 1), lambda v: np.array([1, 1, v], v.dtype), In(()), dtypes=(*F, "int32"))
row("sparse_to_dense_repeated", lambda v: fs.sparse_to_dense([2, 2], [3], v, validate_indices=False)[:2], lambda v: np.zeros(2, v.dtype), In((2,)), order=0)
row("sparse_to_dense_fed", lambda i, s, v: fs.sparse_to_dense(i, s, v), lambda i, s, v: np.array([0, v[0], v[1]], v.dtype), vec(1, 2), vec(3), In((2,)), dynamic=True)
sparse("sparse_from_dense", fs.sparse.from_dense, lambda x: x, In(value=[[0, 2, 0], [1, 0, 3]]), order=0, rank=True)
row("sparse_indicator", lambda v: fs.sparse_to_indicator(sp(v), 5), lambda v: np.stack([np.isin(np.arange(5), v[_AT[:, 0] == i]) for i in range(4)]), vec(3, 0, 4, 0), order=0)
sparse("sparse_merge", lambda i, v: fs.sparse_merge(sp(i), sp(v), 5), lambda i, v: de(v, np.stack([_AT[:, 0], i], 1), (4, 5)), vec(3, 4, 0, 0), _V)

# -- order, shape, parts --------------------------------------------------------------------------

sparse("sparse_reorder", lambda v: fs.sparse_reorder(sp(v, _MIXED)), lambda v: de(v, _MIXED), _V, dtypes=(*F, *C, "int32"))
sparse("sparse_reorder_huge", lambda v: fs.sparse_reshape(fs.SparseTensor(fs.sparse_reorder(sp(v, _MIXED, (2**40, 2**40))).indices, v, _SHAPE), [-1]),
       lambda v: de(v).reshape(-1), _V)
sparse("sparse_reshape", lambda v: fs.sparse_reshape(sp(v), [2, -1]), lambda v: de(v).reshape(2, 6), _V)
sparse("sparse_reshape_rank", lambda v: fs.sparse_reshape(sp(v), [2, 2, 3]), lambda v: de(v).reshape(2, 2, 3), _V)
row("sparse_reshape_scalar", lambda v: three(fs.sparse_reshape(fs.SparseTensor([[0, 0]], v, [1, 1]), fs.constant([], "int64"))), lambda v: [np.zeros((1, 0), "i8"), v, np.zeros(0, "i8")], In((1,)))
row("sparse_reshape_empty", lambda v: three(fs.sparse_reshape(fs.SparseTensor(np.zeros((0, 2), "i8"), v, [0, 3]), [3, 0])), lambda v: [np.zeros((0, 2), "i8"), v, np.array([3, 0])], In((0,)))
sparse("sparse_transpose", lambda v: fs.sparse_transpose(sp(v)), lambda v: de(v).T, _V)
sparse("sparse_transpose_perm", lambda v: fs.sparse_transpose(sp(v, _CUBE, (2, 2, 2)), [1, 2, 0]), lambda v: de(v, _CUBE, (2, 2, 2)).transpose(1, 2, 0), _W)
sparse("sparse_expand_dims", lambda v: fs.sparse.expand_dims(sp(v), 1), lambda v: de(v)[:, None], _V)
sparse("sparse_expand_dims_last", lambda v: fs.sparse.expand_dims(sp(v)), lambda v: de(v)[..., None], _V)
sparse("sparse_reset_shape", lambda v: fs.sparse_reset_shape(sp(v)), lambda v: de(v)[:3], _V)
row("sparse_reset_shape_empty", lambda v: three(fs.sparse_reset_shape(fs.SparseTensor(np.zeros((0, 2), "i8"), v, [2, 3])))[2], lambda v: np.zeros(2, "i8"), In((0,)), order=0, dynamic=True)
sparse("sparse_reset_shape_larger", lambda v: fs.sparse_reset_shape(sp(v), [5, 4]), lambda v: np.pad(de(v), [[0, 1], [0, 1]]), _V)
sparse("sparse_retain", lambda v: fs.sparse_retain(sp(v), [True, False, True, False]), lambda v: de(v[[0, 2]], _AT[[0, 2]]), _V)
sparse("sparse_slice", lambda v: fs.sparse_slice(sp(v), [1, 1], [2, 5]), lambda v: de(v)[1:3, 1:], _V)
sparse("sparse_slice_none", lambda v: fs.sparse_slice(sp(v), [3, 0], [1, 3]), lambda v: de(v)[3:], _V)
for _i in range(3):
    sparse(f"sparse_split_{_i}", lambda v, i=_i: fs.sparse_split(sp_input=sp(v), num_split=3, axis=0)[i], lambda v, i=_i: np.array_split(de(v), 3)[i], _V)
sparse("sparse_split_last", lambda v: fs.sparse_split(sp_input=sp(v), num_split=2, axis=-1)[1], lambda v: de(v)[:, 2:], _V)
sparse("sparse_concat", lambda v, w: fs.sparse_concat(0, [sp(v), sp(w, _OTHER)]), lambda v, w: np.concatenate([de(v), de(w, _OTHER)]), _V, _W)
sparse("sparse_concat_last", lambda v, w: fs.sparse_concat(-1, [sp(v), sp(w, _OTHER)]), lambda v, w: np.concatenate([de(v), de(w, _OTHER)], 1), _V, _W)
sparse("sparse_concat_expand", lambda v, w: fs.sparse_concat(1, [sp(v), sp(w, _OTHER, (3, 3))], expand_nonconcat_dim=True),
       lambda v, w: np.concatenate([de(v), de(w, _OTHER)], 1), _V, _W)
row("sparse_concat_fed", lambda v, s: fs.sparse_concat(0, [sp(v), sp(v, _AT, s)]).dense_shape, lambda v, s: np.array([9, 3]), _V, vec(5, 3, dtype="int64"), order=0, dynamic=True)
row("sparse_fill_empty_rows", lambda v: (lambda x, e: [*three(x), e])(*fs.sparse_fill_empty_rows(sp(v, _MIXED), 9)),
    lambda v: [np.array([[0, 1], [1, 2], [1, 0], [2, 2], [3, 0]]), np.array([v[1], v[0], v[3], v[2], 9], v.dtype), np.array([4, 3]), np.array([False, False, False, True])], _V, dynamic=True)
row("sparse_mask", lambda v: (lambda s: [s.values, s.indices])(fs.sparse_mask(fs.IndexedSlices(v, fs.constant([3, 1, 5])), [1, 9])),
    lambda v: [v[[0, 2]], np.array([3, 5], "i4")], In((3, 2)), dynamic=True)

# -- arithmetic -----------------------------------------------------------------------------------

_B = In((3, 2))
row("sparse_matmul", lambda v, b: fs.sparse_tensor_dense_matmul(sp(v), b), lambda v, b: de(v) @ b, _V, _B, dtypes=(*F, *C, "int32"))
row("sparse_matmul_a", lambda v, b: fs.sparse_tensor_dense_matmul(sp(v), b, adjoint_a=True), lambda v, b: np.conj(de(v).T) @ b, _V, In((4, 2)), dtypes=(*F, *C))
row("sparse_matmul_b", lambda v, b: fs.sparse_tensor_dense_matmul(sp(v), b, adjoint_b=True), lambda v, b: de(v) @ np.conj(b.T), _V, In((2, 3)), dtypes=(*F, *C))
row("sparse_matmul_ab", lambda v, b: fs.sparse_tensor_dense_matmul(sp(v), b, True, True), lambda v, b: np.conj(de(v).T) @ np.conj(b.T), _V, In((2, 4)), dtypes=(*F, *C))
row("sparse_matmul_right", lambda v, b: fs.sparse_tensor_dense_matmul(b, sp(v)), lambda v, b: b @ de(v), _V, In((2, 4)), dtypes=(*F, *C))
_MANY = np.stack([np.arange(100) % 7, np.arange(100) * 3 % 11], 1)
row("sparse_matmul_large", lambda v, b: fs.sparse_tensor_dense_matmul(sp(v, _MANY, (7, 11)), b), lambda v, b: de(v, _MANY, (7, 11)) @ b, In((100,)), In((11, 60)), dtypes=("int32", *F), order=0)
row("sparse_matmul_fed", lambda v, i, s, b: fs.sparse_tensor_dense_matmul(fs.SparseTensor(i, v, s), b), lambda v, i, s, b: de(v) @ b, _V, In(value=_AT, dtype="int64"), vec(*_SHAPE, dtype="int64"), _B, dynamic=True)
sparse("sparse_add", lambda v, w: fs.sparse_add(sp(v), sp(w, _OTHER)), lambda v, w: de(v) + de(w, _OTHER), _V, _W, dtypes=(*F, *C))
sparse("sparse_add_threshold", lambda v: fs.sparse_add(sp(v), sp(v[1:], _AT[1:]), threshold=1.0), lambda v: np.where((np.abs(2 * de(v)) >= 1) | (np.arange(3) == 1) & (np.arange(4) == 0)[:, None], de(v) + de(v[1:], _AT[1:]), 0),
       In(value=[0.25, 0.25, -3, 0.75]), order=1)
row("sparse_add_dense", lambda v, x: fs.sparse_add(sp(v), x), lambda v, x: de(v) + x, _V, In(_SHAPE), dtypes=(*F, "int32"))
row("sparse_add_to_dense", lambda v, x: fs.sparse_add(x, sp(v)), lambda v, x: de(v) + x, _V, In(_SHAPE))
row("sparse_maximum", lambda v, w: fs.sparse_tensor_to_dense(fs.sparse_maximum(sp(v), sp(w, _OTHER))), lambda v, w: np.maximum(de(v), de(w, _OTHER)), _V, _W, order=1)
row("sparse_minimum", lambda v, w: fs.sparse_tensor_to_dense(fs.sparse_minimum(sp(v), sp(w, _OTHER))), lambda v, w: np.minimum(de(v), de(w, _OTHER)), _V, _W, order=1)
for _name, _dense in (("row", (3,)), ("column", (4, 1)), ("whole", (4, 3)), ("scalar", ())):
    _picked = In(_dense, 0.5, 2)
    row(f"sparse_times_{_name}", lambda v, x: fs.sparse_tensor_to_dense(sp(v) * x), lambda v, x: de(v) * x, _V, _picked, dtypes=(*F, "int32"), rank=_name == "scalar")
    row(f"sparse_over_{_name}", lambda v, x: fs.sparse_tensor_to_dense(sp(v) / x), lambda v, x: de(v) / x, _V, _picked, rank=_name == "scalar")
    row(f"sparse_plus_{_name}", lambda v, x: sparse_dense_cwise_add(sp(v), x).values, lambda v, x: v + np.broadcast_to(x, _SHAPE)[tuple(_AT.T)], _V, _picked, rank=_name == "scalar")
row("dense_times_sparse", lambda v, x: (x * -sp(v)).values, lambda v, x: -v * x[_AT[:, 1]], _V, _W)
for _axis in (None, 0, -1, [0, 1], [1]):
    for _keep in (False, True):
        _a = tuple(_axis) if isinstance(_axis, list) else _axis
        row(f"sparse_sum_{_axis}_{_keep:d}", lambda v, a=_axis, k=_keep: fs.sparse_reduce_sum(sp(v), a, k), lambda v, a=_a, k=_keep: de(v).sum(a, keepdims=k, dtype=v.dtype), _V, dtypes=(*F, "int32"))
        row(f"sparse_max_{_axis}_{_keep:d}", lambda v, a=_axis, k=_keep: fs.sparse_reduce_max(sp(v), a, k),
            lambda v, a=_a, k=_keep: np.where(np.isinf(m := np.max(np.where(de(np.ones(4)) > 0, de(v), -np.inf), a, keepdims=k)), 0, m).astype(v.dtype), _V, order=1)
sparse("sparse_sum_sparse", lambda v: fs.sparse_reduce_sum_sparse(sp(v), 1), lambda v: de(v).sum(1), _V)
sparse("sparse_sum_sparse_keep", lambda v: fs.sparse_reduce_sum_sparse(sp(v), 1, keepdims=True), lambda v: de(v).sum(1, keepdims=True), _V)
sparse("sparse_max_sparse", lambda v: fs.sparse_reduce_max_sparse(sp(v), 0), lambda v: np.where(np.any(de(np.ones(4)) > 0, 0), np.max(np.where(de(np.ones(4)) > 0, de(v), -9), 0), 0).astype(v.dtype), _V, order=1)


def _softmax(v: Any) -> Any:
    e = np.where(de(np.ones(4)) > 0, np.exp(de(v)), 0).astype(v.dtype)
    return np.divide(e, e.sum(1, keepdims=True), where=e > 0, out=np.zeros_like(e))


sparse("sparse_softmax", lambda v: fs.sparse_softmax(sp(v)), _softmax, _V)

# -- embeddings -----------------------------------------------------------------------------------

_IDS = np.array([2, 0, 2, 4])


def _looked_up(table: Any, weights: Any, how: str) -> Any:
    out = np.zeros((3, *table.shape[1:]), table.dtype)
    for i in range(3):
        at = _AT[:, 0] == i
        w = weights[at]
        total = np.tensordot(w, table[_IDS[at]], 1)
        out[i] = total / {"sum": 1, "mean": w.sum(), "sqrtn": np.sqrt((w * w).sum())}[how]
    return out


for _how in ("sum", "mean", "sqrtn"):
    row(f"embedding_sparse_{_how}", lambda t, h=_how: fs.nn.embedding_lookup_sparse(t, sp(_IDS), None, combiner=h), lambda t, h=_how: _looked_up(t, np.ones(4, t.dtype), h), In((5, 2)), dynamic=True, rank=True)
    row(f"embedding_sparse_weights_{_how}", lambda t, w, h=_how: fs.nn.embedding_lookup_sparse(t, sp(_IDS), sp(w), combiner=h), lambda t, w, h=_how: _looked_up(t, w, h), In((5, 2)), In((4,), 0.5, 2), dynamic=True, rank=True)
row("embedding_sparse_parts", lambda a, b: fs.nn.embedding_lookup_sparse([a, b], sp(_IDS), None, combiner="sum"),
    lambda a, b: _looked_up(np.stack([a[0], b[0], a[1], b[1], a[2]]), np.ones(4, a.dtype), "sum"), In((3, 2)), In((2, 2)), dynamic=True, rank=True)
row("embedding_sparse_deep", lambda t: fs.nn.embedding_lookup_sparse(t, sp(_IDS), None), lambda t: _looked_up(t, np.ones(4, t.dtype), "mean"), In((5, 2, 2)), dynamic=True, rank=True)
_SAFE = np.array([2, -1, 3, 1])
row("embedding_safe", lambda t: fs.nn.safe_embedding_lookup_sparse(t, sp(_SAFE)), lambda t: np.stack([t[2], t[3], t[1], 0 * t[0]]), In((5, 2)), dynamic=True, rank=True)
row("embedding_safe_default", lambda t, w: fs.nn.safe_embedding_lookup_sparse(t, sp(_SAFE), sp(w), default_id=4), lambda t, w: np.stack([t[2], t[4], t[1], t[4]]),
    In((5, 2)), In(value=[2, 1, -1, 3]), dynamic=True, rank=True, order=1)
