"""Sums and maxima of large arrays along some axes, where NumPy's own way is slow.

NumPy reduces row by row and column by column in the order of the axes. Short rows then cost a call
each: sums of 200 000 rows of five take 2.4 ms, a maximum 7.7 ms. Here, for arrays in C order whose
reduced axes are the first or the last ones, so that they are matrices:

- sums over the rows' elements go through `einsum`, whose inner loop is made for that;
- sums over rows add a few hundred rows laid side by side first, which is also more exact;
- maxima of short rows compare whole columns, or blocks that are transposed and stay in the cache.

Small arrays, other orders and other array modules are left to NumPy's functions. BLAS would be
twice as quick for sums (a product with ones), but its threads cost far more where cores are busy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule

#: Below so many elements NumPy's own way is as good.
SMALL = 1 << 12
#: Rows up to so long are summed in one go; longer ones pairwise, by NumPy, which is more exact.
_LONG = 1 << 12
#: How many elements are laid side by side for sums over rows.
_WIDTH = 1 << 11
#: Rows from so long on are added as they are.
_WIDE = 1 << 9
#: Up to so many columns are compared as they are, and up to so many in transposed blocks.
_FEW, _SOME = 12, 64
_BLOCK = 1 << 17


def matrix_of(xp: ArrayModule, x: Array, axes: Any) -> tuple[Array, int] | None:
    """Returns x as a matrix, and which axis of it is reduced; None where that does not help.

    Args:
        xp: The array module.
        x: An array.
        axes: Which axes are reduced; None for all.
    """
    if xp is not np or x.size < SMALL or not x.flags.c_contiguous or axes is None:
        return None
    rank = x.ndim
    chosen = sorted(a % rank for a in axes)
    if not 0 < len(chosen) < rank:
        return None
    if chosen[-1] - chosen[0] != len(chosen) - 1 or (chosen[0] != 0 and chosen[-1] != rank - 1):
        return None
    split = len(chosen) if chosen[0] == 0 else chosen[0]
    rows = math.prod(x.shape[:split])
    return x.reshape(rows, -1), 0 if chosen[0] == 0 else 1


def _kept(y: Array, x: Array, axes: Any, keepdims: bool) -> Array:
    chosen = {a % x.ndim for a in axes}
    if keepdims:
        return y.reshape([1 if i in chosen else d for i, d in enumerate(x.shape)])
    return y.reshape([d for i, d in enumerate(x.shape) if i not in chosen])


def sum_along(xp: ArrayModule, x: Array, axes: Any, keepdims: bool, dtype: Any) -> Array:
    """Returns sums along axes."""
    if xp is np and axes == (0,) and x.ndim == 2 and x.shape[1] >= _WIDE and x.dtype == dtype:
        return x.sum(axis=0, dtype=dtype, keepdims=keepdims)
    found = matrix_of(xp, x, axes) if x.dtype.kind == "f" and x.dtype == dtype else None
    if found is None or x.dtype.itemsize < 4:
        return x.sum(axis=axes, dtype=dtype, keepdims=keepdims)
    matrix, axis = found
    y = column_sums(xp, matrix) if axis == 0 else row_sums(xp, matrix)
    return _kept(y, x, axes, keepdims)


def max_along(xp: ArrayModule, x: Array, axes: Any, keepdims: bool, name: str = "max") -> Array:
    """Returns maxima along axes, or minima where `name` is "min"."""
    found = matrix_of(xp, x, axes)
    if found is None or found[1] == 0 or not 0 < found[0].shape[1] <= _SOME:
        return getattr(x, name)(axis=axes, keepdims=keepdims)
    y = _row_max(found[0], np.maximum if name == "max" else np.minimum)
    return _kept(y, x, axes, keepdims)


def column_sums(xp: ArrayModule, x: Array) -> Array:
    """Returns the sums over the rows of a matrix of float32 or float64."""
    rows, columns = x.shape
    side = _WIDTH // max(columns, 1)
    if xp is not np or x.size < SMALL or columns >= _WIDE or not x.flags.c_contiguous:
        return x.sum(axis=0, dtype=x.dtype)
    whole = rows // side * side
    y = x[:whole].reshape(-1, side * columns).sum(axis=0).reshape(side, columns).sum(axis=0)
    if whole < rows:
        y += x[whole:].sum(axis=0)
    return y


def laid_out(xp: ArrayModule, x: Array) -> tuple[Array, int]:
    """Returns a matrix with several rows side by side in each, and how many.

    What is broadcast along rows then has longer ones to go along, after `numpy.tile`.
    """
    rows, columns = x.shape
    if xp is not np or x.size < SMALL or not x.flags.c_contiguous or not 0 < columns < _SOME:
        return x, 1
    side = next(s for s in range(max(_WIDTH // 4 // columns, 1), 0, -1) if rows % s == 0)
    return x.reshape(rows // side, -1), side


def row_blocks(xp: ArrayModule, x: Array) -> Iterator[slice]:
    """Yields which rows of a matrix stay in the cache together; all where there is none."""
    if xp is np and x.size:
        yield from _blocks(x)
    else:
        yield slice(None)


def row_sums(xp: ArrayModule, x: Array) -> Array:
    """Returns the sums over the columns of a matrix of float32 or float64."""
    columns = x.shape[1]
    if xp is not np or x.size < SMALL or not 0 < columns <= _LONG:
        return x.sum(axis=1, dtype=x.dtype)
    return np.einsum("ij->i", x) if columns > _FEW else _over_columns(x, np.add)


def row_max(xp: ArrayModule, x: Array) -> Array:
    """Returns the maxima over the columns of a matrix."""
    if xp is not np or x.size < SMALL or not 0 < x.shape[1] <= _SOME:
        return x.max(axis=1)
    return _row_max(x, np.maximum)


def _row_max(x: Array, larger: Any) -> Array:
    columns = x.shape[1]
    if columns <= _FEW:
        return _over_columns(x, larger)
    y = np.empty(len(x), x.dtype)
    for some in _blocks(x):
        larger.reduce(np.ascontiguousarray(x[some].T), axis=0, out=y[some])
    return y


def _over_columns(x: Array, ufunc: Any) -> Array:
    """Returns the columns taken together, one after the other."""
    y = x[:, 0].copy()
    for some in _blocks(x):
        part = y[some]
        for i in range(1, x.shape[1]):
            ufunc(part, x[some, i], out=part)
    return y


def _blocks(x: Array) -> Iterator[slice]:
    """Yields which rows stay in the cache together."""
    step = max(1, _BLOCK // (x.shape[1] * x.dtype.itemsize))
    for first in range(0, len(x), step):
        yield slice(first, first + step)
