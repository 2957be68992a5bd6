# ruff: noqa: E501
# fmt: off
"""Pools: each window worked out by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table
from rows_convolution import margins

import flowscope as fs
from flowscope.ops.core.build import apply
from flowscope.ops.nn import pooling_ops as pooling

ROWS = Table()
row = ROWS.row


def windows(x: Any, size: Any, strides: Any, padding: Any, rates: Any = None) -> Any:
    """The windows' elements, those in margins NaN: [n, *outs, elements, c]."""
    d = x.ndim - 2
    size, strides = ([v] * d if isinstance(v, int) else list(v) for v in (size, strides))
    rates = rates or [1] * d
    pads = margins(padding, x.shape[1:-1], size, strides, rates)
    x = np.pad(x.astype(np.float64), [(0, 0), *pads, (0, 0)], constant_values=np.nan)
    extents = [(w - 1) * r + 1 for w, r in zip(size, rates)]
    outs = [(n - e) // s + 1 for n, e, s in zip(x.shape[1:-1], extents, strides)]
    out = np.zeros((len(x), *outs, int(np.prod(size)), x.shape[-1]))
    for at in np.ndindex(*outs):
        part = tuple(slice(a * s, a * s + e, r) for a, s, e, r in zip(at, strides, extents, rates))
        out[(slice(None), *at)] = x[(slice(None), *part)].reshape(len(x), -1, x.shape[-1])
    return out


def top(x: Any, *args: Any) -> Any:
    return np.nanmax(windows(x, *args), -2).astype(x.dtype)


def mean(x: Any, *args: Any) -> Any:
    return np.nanmean(windows(x, *args), -2).astype(x.dtype)


def places(x: Any, *args: Any) -> Any:
    """The numbers, within the image, of the windows' first maxima."""
    numbers = np.broadcast_to(np.arange(x[0].size).reshape(1, *x.shape[1:]), x.shape)
    values, at = windows(x, *args), windows(numbers, *args)
    chosen = np.nanargmax(values, -2)[..., None, :]
    return np.take_along_axis(at, chosen, -2)[..., 0, :].astype("i8")


def first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


def last(x: Any) -> Any:
    return np.moveaxis(x, 1, -1)


_X = In((2, 5, 4, 2))
#: Small integers, so that there are ties.
_TIES = In(value=np.random.default_rng(1).integers(0, 3, (2, 4, 4, 2)))
EXPLICIT = [[0, 0], [1, 0], [0, 1], [0, 0]]
for _name, _size, _strides, _padding in (
    ("halves", [2, 2], [2, 2], "VALID"), ("same", [3, 2], [1, 1], "SAME"), ("overlap", [3, 3], [2, 1], "SAME"),
    ("gaps", [2, 1], [3, 2], "VALID"), ("one", [1, 1], [1, 1], "SAME"), ("one_strides", [1, 1], [2, 2], "SAME"),
):
    row(f"max_pool_{_name}", lambda x, k=_size, s=_strides, p=_padding: fs.nn.max_pool(x, [1, *k, 1], [1, *s, 1], p),
        lambda x, k=_size, s=_strides, p=_padding: top(x, k, s, p), _X, dtypes=("float16", "float32", "float64", "int32", "uint8"))
    row(f"avg_pool_{_name}", lambda x, k=_size, s=_strides, p=_padding: fs.nn.avg_pool(x, [1, *k, 1], [1, *s, 1], p),
        lambda x, k=_size, s=_strides, p=_padding: mean(x, k, s, p), _X, dtypes=("float16", "float32", "float64"))
row("max_pool_explicit", lambda x: fs.nn.max_pool(x, 2, 2, EXPLICIT), lambda x: top(x, 2, 2, EXPLICIT), _X)
row("max_pool_nchw", lambda x: fs.nn.max_pool(x, [1, 1, 2, 2], 2, "VALID", "NCHW"), lambda x: first(top(last(x), 2, 2, "VALID")), In((2, 2, 4, 4)))
row("max_pool_channels", lambda x: fs.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "VALID"), lambda x: x.reshape(2, 2, 2, 2, 2).max(-1), In((2, 2, 2, 4)))
row("max_pool2d", lambda x: fs.nn.max_pool2d(x, 2, 2, "SAME"), lambda x: top(x, 2, 2, "SAME"), _X)
row("max_pool_none", lambda x: fs.nn.max_pool(x, 2, 2, "SAME"), lambda x: np.zeros((0, 3, 2, 2), x.dtype), In((0, 5, 4, 2)))
for _name, _size, _strides, _padding in (("halves", 2, 2, "VALID"), ("overlap", 3, 1, "SAME")):
    row(f"max_pool_ties_{_name}", lambda x, a=(_size, _strides, _padding): fs.nn.max_pool_with_argmax(x, *a),
        lambda x, a=(_size, _strides, _padding): [top(x, *a), places(x, *a)], _TIES, dtypes=("float32", "int32"), order=0)
row("max_pool_ties_grad", lambda x: fs.gradients(fs.nn.max_pool(x, 3, 1, "SAME"), x)[0],
    lambda x: _counted(places(x, 3, 1, "SAME"), x), _TIES, order=0)
row("max_pool_with_argmax", lambda x: fs.nn.max_pool_with_argmax(x, 2, 2, "SAME", output_dtype="int32"),
    lambda x: [top(x, 2, 2, "SAME"), places(x, 2, 2, "SAME").astype("i4")], _X)
row("max_pool_with_argmax_batch", lambda x: fs.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True),
    lambda x: [top(x, 2, 2, "SAME"), places(x, 2, 2, "SAME") + np.array([0, x[0].size]).reshape(2, 1, 1, 1)], _X)
row("avg_pool_nchw", lambda x: fs.nn.avg_pool(x, 2, 2, "VALID", "NCHW"), lambda x: first(mean(last(x), 2, 2, "VALID")), In((2, 2, 4, 4)))
row("max_pool3d", lambda x: fs.nn.max_pool3d(x, 2, [1, 2, 1, 1, 1], "SAME"), lambda x: top(x, 2, [2, 1, 1], "SAME"), In((1, 3, 2, 3, 2)))
row("avg_pool3d", lambda x: fs.nn.avg_pool3d(x, 2, [1, 2, 1, 1, 1], "SAME"), lambda x: mean(x, 2, [2, 1, 1], "SAME"), In((1, 3, 2, 3, 2)))
row("max_pool1d", lambda x: fs.nn.max_pool1d(x, 2, 1, "SAME"), lambda x: top(x, 2, 1, "SAME"), In((2, 4, 2)))
row("avg_pool1d", lambda x: fs.nn.avg_pool1d(x, 2, 2, "SAME", "NCW"), lambda x: first(mean(last(x), 2, 2, "SAME")), In((2, 2, 5)))
row("max_pool_v2", lambda x: fs.nn.max_pool_v2(x, 2, 1, "SAME"), lambda x: top(x, 2, 1, "SAME"), In((2, 4, 2)), rank=True)
row("avg_pool_v2", lambda x: fs.nn.avg_pool_v2(x, 2, 1, "SAME"), lambda x: mean(x, 2, 1, "SAME"), In((1, 2, 2, 2, 2)), rank=True)
row("pool", lambda x: fs.nn.pool(x, [2, 2], "MAX", "SAME", strides=[2, 1]), lambda x: top(x, 2, [2, 1], "SAME"), _X)
row("pool_dilated", lambda x: fs.nn.pool(x, [2, 3], "AVG", "VALID", [2, 1]), lambda x: mean(x, [2, 3], 1, "VALID", [2, 1]), _X)
row("pool_dilated_1d", lambda x: fs.nn.pool(x, [3], "MAX", "VALID", [2]), lambda x: top(x, 3, 1, "VALID", [2]), In((2, 6, 2)))
row("pool_3d", lambda x: fs.nn.pool(x, [2, 1, 2], "MAX", "VALID"), lambda x: top(x, [2, 1, 2], 1, "VALID"), In((1, 3, 2, 3, 2)))


def picked(x: Any, values: Any, *args: Any) -> Any:
    numbers = places(x, *args)
    flat = values.reshape(len(values), -1)
    return np.stack([v[n] for v, n in zip(flat, numbers)])


_PICK = {"strides": (1, 1, 1, 1), "padding": "SAME", "ksize": (1, 2, 3, 1)}
row("max_pool_pick", lambda x, v: apply(pooling.MaxPoolGradGrad(**_PICK), x, v), lambda x, v: picked(x, v, [2, 3], 1, "SAME"), _X, _X)
_PICK_3D = {"strides": (1, 2, 1, 1, 1), "padding": "VALID", "ksize": (1, 2, 1, 2, 1), "data_format": "NDHWC"}
row("max_pool_pick_3d", lambda x, v: apply(pooling.MaxPool3DGradGrad(**_PICK_3D), x, v),
    lambda x, v: picked(x, v, [2, 1, 2], [2, 1, 1], "VALID"), In((1, 4, 2, 3, 2)), In((1, 4, 2, 3, 2)))


def _counted(numbers: Any, x: Any) -> Any:
    out = np.zeros((len(x), x[0].size), x.dtype)
    for i, some in enumerate(numbers):
        np.add.at(out[i], some.reshape(-1), 1)
    return out.reshape(x.shape)
