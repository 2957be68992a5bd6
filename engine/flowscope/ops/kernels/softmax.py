"""Softmax over the last axis of large arrays, in blocks of rows that stay in the cache.

Short rows are transposed, block by block, so that each pass goes along many rows at once and not
over a handful of elements. Elsewhere passes go row by row; the largest element of a block then
serves for all its rows, so long as no row lies far below it: it is only there to keep exponentials
in range.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowscope.graph.op import Array, ArrayModule
from flowscope.ops.kernels.sums import SMALL, row_max, row_sums

#: Bytes of one block of rows.
_BLOCK = 1 << 18
#: Rows up to so long are transposed.
_SHORT = 32
#: A sum of exponentials from which no row lies far below its block: 14 at most.
_NEAR = 1e-6


def is_large(xp: ArrayModule, x: Array, axis: int) -> bool:
    """Whether the functions of this module take x, with the softmax along `axis`."""
    return (
        xp is np
        and x.size >= SMALL
        and axis in (-1, x.ndim - 1)
        and x.dtype.kind == "f"
        and x.dtype.itemsize >= 4
        and x.shape[-1] > 0
        and bool(x.flags.c_contiguous)
    )


def _blocks(x: Array) -> Iterator[slice]:
    step = max(1, _BLOCK // (x.shape[1] * x.dtype.itemsize))
    for first in range(0, len(x), step):
        yield slice(first, first + step)


def softmax_rows(x: Array) -> Array:
    """Returns exp(x) over its sum along the last axis."""
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.shape, x.dtype)
    for some in _blocks(rows):
        if rows.shape[1] <= _SHORT:
            part = _exponentials(rows[some])
            np.multiply(part, np.reciprocal(part.sum(axis=0)), out=out[some].T)
        else:
            _softmax_block(rows[some], out[some])
    return out.reshape(x.shape)


def _exponentials(rows: Array) -> Array:
    """Returns the exponentials of rows' elements below their largest, transposed."""
    part = np.ascontiguousarray(rows.T)
    part -= part.max(axis=0)
    return np.exp(part, out=part)


def _softmax_block(rows: Array, out: Array) -> None:
    np.subtract(rows, rows.max(), out=out)
    np.exp(out, out=out)
    sums = row_sums(np, out)
    if not sums.min() > _NEAR:  # nor NaN
        np.subtract(rows, row_max(np, rows)[:, None], out=out)
        np.exp(out, out=out)
        sums = row_sums(np, out)
    np.multiply(out, np.reciprocal(sums)[:, None], out=out)


def log_softmax_rows(x: Array) -> Array:
    """Returns the logarithm of `softmax_rows`, exact near 0."""
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.shape, x.dtype)
    for some in _blocks(rows):
        if rows.shape[1] <= _SHORT:
            part = np.ascontiguousarray(rows[some].T)
            part -= part.max(axis=0)
            np.subtract(part, np.log(np.exp(part).sum(axis=0)), out=out[some].T)
            continue
        shifted = np.subtract(rows[some], row_max(np, rows[some])[:, None], out=out[some])
        shifted -= np.log(row_sums(np, np.exp(shifted)))[:, None]
    return out.reshape(x.shape)


def exponentials(xp: ArrayModule, x: Array) -> tuple[Array, Array, Array]:
    """Returns, for a matrix: x minus its rows' largest, exponentials of that, and their sums.

    The sums are a column.
    """
    if not x.size:
        powers = xp.exp(x)
        return x, powers, powers.sum(axis=1, keepdims=True, dtype=x.dtype)
    shifted = x - row_max(xp, x)[:, None]
    powers = xp.exp(shifted)
    if x.dtype.itemsize < 4:
        return shifted, powers, powers.sum(axis=1, keepdims=True, dtype=x.dtype)
    return shifted, powers, row_sums(xp, powers)[:, None]
