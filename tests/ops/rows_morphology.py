# ruff: noqa: E501
# fmt: off
"""Dilation, erosion, fractional pools."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table
from rows_pooling import windows

import flowscope as fs
from flowscope.ops.core.build import apply
from flowscope.ops.nn import fractional_pooling, morphology

ROWS = Table()
row = ROWS.row


def dilated(x: Any, w: Any, strides: Any, rates: Any, padding: str) -> Any:
    """The largest sums, from windows whose elements in margins are NaN."""
    parts = windows(x, list(w.shape[:2]), strides, padding, rates)
    return np.nanmax(parts + w.reshape(-1, w.shape[-1]).astype("f8"), -2).astype(x.dtype)


_X, _W = In((2, 4, 5, 2)), In((2, 3, 2))
for _name, _strides, _rates, _padding in (
    ("same", [1, 1], [1, 1], "SAME"), ("valid", [1, 2], [1, 1], "VALID"), ("spread", [1, 1], [2, 1], "VALID"), ("strides", [2, 2], [1, 2], "SAME"),
):
    row(f"dilation2d_{_name}", lambda x, w, s=_strides, r=_rates, p=_padding: fs.nn.dilation2d(x, w, [1, *s, 1], [1, *r, 1], p),
        lambda x, w, s=_strides, r=_rates, p=_padding: dilated(x, w, s, r, p), _X, _W, dtypes=("float16", "float32", "float64", "int32"))
row("erosion2d", lambda x, w: fs.nn.erosion2d(x, w, [1, 2, 1, 1], [1, 1, 1, 1], "SAME"),
    lambda x, w: -dilated(-x, w[::-1, ::-1], [2, 1], [1, 1], "SAME"), _X, _W)
row("dilation2d_none", lambda x, w: fs.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), lambda x, w: x.copy(), In((0, 4, 5, 2)), _W)


def picked(x: Any, w: Any, image: Any, other: Any) -> Any:
    args = list(w.shape[:2]), [1, 1], "SAME", [1, 1]
    best = np.nanargmax(windows(x, *args) + w.reshape(-1, w.shape[-1]), -2)[..., None, :]
    sums = windows(image, *args) + other.reshape(-1, w.shape[-1])
    return np.take_along_axis(sums, best, -2)[..., 0, :].astype(x.dtype)


row("dilation2d_pick", lambda *xs: apply(morphology.Dilation2DPick((1, 1, 1, 1), "SAME"), *xs), picked, _X, _W, _X, _W)

_ROWS, _COLUMNS = np.array([0, 2, 3, 5]), np.array([0, 1, 4])


def regions(x: Any, function: Any, overlap: int) -> Any:
    down = [slice(a, b + overlap) for a, b in zip(_ROWS[:-1], _ROWS[1:])]
    across = [slice(a, b + overlap) for a, b in zip(_COLUMNS[:-1], _COLUMNS[1:])]
    return np.stack([np.stack([function(x[:, i, j], (1, 2)) for j in across], 1) for i in down], 1).astype(x.dtype)


def argmaxes(x: Any, rows: Any, columns: Any) -> Any:
    values = regions(x, np.max, 1)
    return np.array([np.flatnonzero(x.reshape(-1) == v)[0] for v in values.reshape(-1)]).reshape(values.shape)


row("fractional_argmax", lambda x, r, c: apply(fractional_pooling.FractionalArgmax(True), x, r, c), argmaxes,
    In((2, 5, 4, 3)), In(value=_ROWS, dtype="int64"), In(value=_COLUMNS, dtype="int64"), order=0)
