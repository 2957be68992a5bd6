# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""Rows of the ops' table: losses, their weights and reductions, confusion matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table, vec

import flowscope as fs
from flowscope.ops.objectives import weights as weights_

ROWS = Table()
row = ROWS.row

L = fs.losses
_X = In((2, 3))
_P = In((2, 3), 0.1, 0.9)
_COLUMN = In(value=[[2.0], [0.0]])
_ROW = In(value=[[1.0, 0.0, 3.0]])


def mean(x: Any) -> Any:
    return x.mean(dtype=x.dtype)


def _ce(z: Any, x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return -(z * np.log(e / e.sum(-1, keepdims=True))).sum(-1)


for _reduction, _ref in {
    "none": lambda l, w: l * w,
    "weighted_sum": lambda l, w: (l * w).sum(),
    "weighted_mean": lambda l, w: (l * w).sum() / np.broadcast_to(w, l.shape).sum(),
    "weighted_sum_over_batch_size": lambda l, w: (l * w).sum() / l.size,
    "weighted_sum_by_nonzero_weights": lambda l, w: (l * w).sum() / (np.broadcast_to(w, l.shape) != 0).sum(),
}.items():
    for _name, _w in (("column", _COLUMN), ("row", _ROW), ("all", In((2, 3), 0.5)), ("scalar", In((), 0.5))):
        row(f"weighted_{_reduction}_{_name}", lambda l, w, r=_reduction: L.compute_weighted_loss(l, w, reduction=r), lambda l, w, f=_ref: np.asarray(f(l, w), l.dtype), _X, _w,
            order=0 if _reduction.endswith("nonzero_weights") and _name in ("column", "row") else 2)  # it jumps at 0
row("weighted_none", L.compute_weighted_loss, mean, _X, dtypes=("float16", "float32", "float64"))
row("weighted_zero", lambda l: L.compute_weighted_loss(l, 0.0), lambda l: l.dtype.type(0), _X, order=1)
row("broadcast_weights", lambda w, x: weights_.broadcast_weights(w, x), lambda w, x: np.broadcast_to(w, x.shape), In((1, 3)), _X, order=1)
row("absolute_difference", L.absolute_difference, lambda y, p: mean(np.abs(p - y)), _X, _X, order=1)
row("absolute_difference_int", lambda y, p: L.absolute_difference(y, p), lambda y, p: mean(np.abs(p - y.astype(p.dtype))), vec(1, 0), In((2,)), order=1)
row("cosine_distance", lambda y, p: L.cosine_distance(y, p, 1), lambda y, p: mean(1 - (y * p).sum(1)), _X, _X)
row("cosine_distance_weights", lambda y, p, w: L.cosine_distance(y, p, weights=w, dim=-1), lambda y, p, w: (2 * (1 - (y * p).sum(1)))[0], _X, _X, _COLUMN, order=0)
row("hinge_loss", L.hinge_loss, lambda y, x: mean(np.maximum(0, 1 - (2 * y - 1) * x)), In(value=[[0.0, 1, 1], [1, 0, 0]]), _X, order=1)
row("huber_loss", lambda y, p: L.huber_loss(y, p, delta=0.75), lambda y, p: mean(np.where(np.abs(p - y) < 0.75, (p - y) ** 2 / 2, 0.75 * (np.abs(p - y) - 0.375))), _X, _X, order=1)
row("log_loss", L.log_loss, lambda y, p: mean(-y * np.log(p + 1e-7) - (1 - y) * np.log(1 - p + 1e-7)), _P, _P)
row("mean_squared_error", L.mean_squared_error, lambda y, p: mean((y - p) ** 2), _X, _X)
row("mean_pairwise_squared_error", L.mean_pairwise_squared_error, lambda y, p: np.asarray(sum(((e[:, None] - e[None]) ** 2).sum() / 6 for e in p - y), p.dtype), _X, _X)
row("mean_pairwise_squared_error_weights", L.mean_pairwise_squared_error, lambda y, p, w: np.asarray(2 * (((p - y)[0, :, None] - (p - y)[0][None]) ** 2).sum() / 6, p.dtype), _X, _X, _COLUMN, order=0)
row("mean_pairwise_squared_error_none", lambda y, p: L.mean_pairwise_squared_error(y, p, 0.0), lambda y, p: p.dtype.type(0), _X, _X, order=1)
row("sigmoid_cross_entropy", L.sigmoid_cross_entropy, lambda z, x: mean(np.log1p(np.exp(x)) - x * z), _P, _X)
row("sigmoid_cross_entropy_smooth", lambda z, x: L.sigmoid_cross_entropy(z, x, label_smoothing=0.2), lambda z, x: mean(np.log1p(np.exp(x)) - x * (0.8 * z + 0.1)), _P, _X)
row("softmax_cross_entropy", lambda z, x: L.softmax_cross_entropy(fs.stop_gradient(z), x), lambda z, x: mean(_ce(z, x)), In((2, 3), 0.1, 0.9), _X, rank=True, order=0)
row("softmax_cross_entropy_smooth", lambda x: L.softmax_cross_entropy([[0, 1, 0], [1, 0, 0]], x, label_smoothing=0.3), lambda x: mean(_ce(np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]]), x)).astype(x.dtype), _X, rank=True)
row("softmax_cross_entropy_fed", lambda z, x: L.softmax_cross_entropy(z, x, label_smoothing=0.3), lambda z, x: mean(_ce(z * x.dtype.type(0.7) + x.dtype.type(0.1), x)), In(value=[[0, 1, 0], [1, 0, 0]]), _X, rank=True, order=0)
row("sparse_softmax_cross_entropy", L.sparse_softmax_cross_entropy, lambda i, x: mean(_ce(np.eye(3, dtype=x.dtype)[i], x)), vec(2, 0), _X)
row("sparse_softmax_cross_entropy_column", L.sparse_softmax_cross_entropy, lambda i, x, w: 2 * _ce(np.eye(3, dtype=x.dtype)[i[:, 0]], x)[0], In(value=[[2], [0]], dtype="int32"), _X, _COLUMN, rank=True, order=0)

row("confusion_matrix", lambda y, p: fs.confusion_matrix(y, p, 4), lambda y, p: np.array([[0, 1, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], "i4"), vec(0, 1, 2, 1), vec(1, 1, 0, 1), order=0)
row("confusion_matrix_open", lambda y, p: fs.confusion_matrix(y, p, dtype="int64"), lambda y, p: np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0]]), vec(0, 2), vec(2, 1), order=0, dynamic=True)
row("confusion_matrix_weights", lambda y, p, w: fs.confusion_matrix(y, p, 2, w.dtype, weights=w), lambda y, p, w: np.array([[w[0], 0], [w[2], w[1]]], w.dtype), vec(0, 1, 1), vec(0, 1, 0), In((3,)))
