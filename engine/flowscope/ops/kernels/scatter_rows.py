"""Rows folded into other rows by number: what scatters and segment reductions share.

NumPy's `ufunc.at` and `reduceat` take some 8 ns per element of short rows. A sum over rows is a
product with a matrix that has a single 1 per row: SciPy's sparse product runs it at the speed of
memory, adding in the same order, so to the same bits. Other functions, which no product computes,
sort the numbers first. Either has its use from a few thousand elements on; below, `at` does
it, and on accelerators `device_scatter`. (100 000 rows of 32 float32 into 1000: `at` 24 ms, the
product 0.9 ms.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule
from flowscope.graph.values.string_values import zeros
from flowscope.ops.kernels.scipy_modules import scipy_of

#: From so many elements on sorting or a sparse product pays.
_MANY = 4096
#: Kinds and least sizes of elements that SciPy's sparse products take.
_SPARSE_KINDS = "fiuc"
#: Rows at least so wide are folded all at once per round; narrower ones by `reduceat`.
_WIDE = 8


def add_rows(xp: ArrayModule, n: int, places: Array, rows: Array) -> Array:
    """Returns n rows of sums: row i of `rows` is added to row places[i].

    Args:
        xp: Array module.
        n: Number of rows of the result.
        places: Integers in [0, n), of rank 1.
        rows: As many rows as places.
    """
    if rows.size >= _MANY and rows.dtype.kind == "f" and rows.size == rows.shape[0]:
        # Numbers, not rows: counting with weights is quicker still, and sums up in float64.
        sums = xp.bincount(places, rows.reshape(-1), n).astype(rows.dtype)
        return sums.reshape(n, *rows.shape[1:])
    if xp is np and rows.size >= _MANY and rows.dtype.kind in _SPARSE_KINDS and _fits(rows.dtype):
        return _product(n, places, rows)
    out = zeros(xp, (n, *rows.shape[1:]), rows.dtype)
    if xp is np:
        np.add.at(out, places, rows)
    else:
        from flowscope.ops.kernels.device_scatter import scatter

        scatter(xp, "add", out, places, rows)
    return out


def _fits(dtype: Any) -> bool:
    return bool(dtype.isbuiltin == 1) and (dtype.kind in "iu" or dtype.itemsize >= 4)


def _product(n: int, places: Array, rows: Array) -> Array:
    m, tail = rows.shape[0], rows.shape[1:]
    ones, ends = np.ones(m, rows.dtype), np.arange(m + 1)
    matrix = scipy_of(np, "sparse").csc_array((ones, places, ends), shape=(n, m))
    sums = matrix @ rows.reshape(m, -1)
    return np.ascontiguousarray(sums).reshape(n, *tail)


def fold_rows(
    xp: ArrayModule, name: str, out: Array, places: Array, rows: Array, rising: bool = False
) -> None:
    """Sets out[places[i]] = name(out[places[i]], rows[i]) for each i, one after the other.

    Args:
        xp: Array module.
        name: A universal function that does not care for order, e.g. "maximum".
        out: Changed in place.
        places: Integers in [0, len(out)), of rank 1.
        rows: As many rows as places.
        rising: Whether the places never fall.
    """
    function = getattr(xp, name)
    if xp is np and rows.size >= _MANY and (rising or rows.size > rows.shape[0]):
        _fold_sorted(function, out, places, rows, rising)
        return
    if xp is np:
        function.at(out, places, rows)
    else:
        from flowscope.ops.kernels.device_scatter import scatter

        scatter(xp, name, out, places, rows)


def set_rows(xp: ArrayModule, out: Array, places: Array, rows: Array) -> None:
    """Sets out[places[i]] = rows[i]; of what goes to one place the last stays."""
    if xp is np:
        out[places] = rows
    else:
        from flowscope.ops.kernels.device_scatter import scatter

        scatter(xp, "update", out, places, rows)


def _fold_sorted(function: Any, out: Array, places: Array, rows: Array, rising: bool) -> None:
    if rising:
        numbers = places
    else:
        # NumPy sorts 16 bits by radix, six times as fast as more.
        keys = places.astype(np.uint16) if out.shape[0] <= 1 << 16 else places
        order = np.argsort(keys, kind="stable")
        numbers, rows = places[order], rows[order]
    starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    counts = np.diff(np.append(starts, numbers.size))
    width = rows.size // rows.shape[0]
    if width >= _WIDE and counts.max() * 16 <= numbers.size:
        folded = _rounds(function, rows, starts, counts)
    elif width == 1:
        folded = function.reduceat(rows, starts, axis=0)
    else:
        turned = np.ascontiguousarray(np.moveaxis(rows, 0, -1))
        folded = np.moveaxis(function.reduceat(turned, starts, axis=-1), -1, 0)
    touched = numbers[starts]
    out[touched] = function(out[touched], folded)


def _rounds(function: Any, rows: Array, starts: Array, counts: Array) -> Array:
    """Folds the second row of all segments that have one into the first, then the third, ..."""
    longest_first = np.argsort(-counts, kind="stable")
    starts, counts = starts[longest_first], counts[longest_first]
    total = rows[starts]
    for k in range(1, int(counts[0])):
        left = np.searchsorted(-counts, -k)
        function(total[:left], rows[starts[:left] + k], out=total[:left])
    back = np.empty_like(longest_first)
    back[longest_first] = np.arange(back.size)
    return total[back]
