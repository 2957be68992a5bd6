"""Scatters on accelerators: what CuPy's `ufunc.at` and assignments give for all dtypes.

CuPy's `at` takes few dtypes, sums up in any order, ignores NaN, and an assignment to a place that
is named twice keeps any of the values. Here sums of narrow integers are made in 32 bits, those of
64 bits as unsigned ones, complex ones by parts; extremes compare keys of the same order; where
order counts, the n-th use of each place has its own round.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule
from flowscope.graph.values.host_values import on_host

_SIGN = 1 << 63


def scatter(xp: ArrayModule, how: str, out: Array, where: Any, updates: Array) -> None:
    """Changes slices of an array in place, once for each time that they are named, in turn.

    Args:
        xp: An accelerator's array module.
        how: "update", or the name of a universal function: "add", "subtract", "multiply", ...
        out: The array.
        where: Indices into its first axis, or a tuple of arrays of indices into its first axes; all
            of them in range.
        updates: A slice for each, or one number for all.
    """
    axes = where if isinstance(where, tuple) else (where,)
    count, tail = math.prod(axes[0].shape), out.shape[len(axes) :]
    if not count or not out.size:
        return
    rows = out.reshape(-1, *tail)  # a copy, where the array has other strides
    given = updates if updates.shape == () else updates.reshape(count, *tail)
    _changed(xp, how, rows, _flat(xp, axes, out.shape), given)
    if not out.flags.c_contiguous:
        out[...] = rows.reshape(out.shape)


def _flat(xp: ArrayModule, axes: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    total = axes[0].reshape(-1).astype(xp.int64)
    for places, length in zip(axes[1:], shape[1:], strict=False):
        total = total * length + places.reshape(-1)
    return total


def _changed(xp: ArrayModule, how: str, out: Array, places: Array, rows: Array) -> None:
    if how == "update":
        _update(xp, out, places, rows)
    elif how == "add":
        _add(xp, out, places, rows)
    elif how == "subtract":
        _add(xp, out, places, xp.negative(rows))
    elif how in ("minimum", "maximum"):
        _extreme(xp, how, out, places, rows)
    else:
        _in_turn(xp, getattr(xp, how), out, places, rows)


def _update(xp: ArrayModule, out: Array, places: Array, rows: Array) -> None:
    """Of what goes to one place the last stays."""
    if rows.shape == ():
        out[places] = rows
        return
    last = xp.zeros(out.shape[0], xp.int32)
    xp.maximum.at(last, places, xp.arange(len(places), dtype=xp.int32))
    out[places] = rows[last[places]]


def _add(xp: ArrayModule, out: Array, places: Array, rows: Array) -> None:
    kind, size = out.dtype.kind, out.dtype.itemsize
    if kind == "c":
        for part in ("real", "imag"):
            sums = xp.ascontiguousarray(getattr(out, part))
            xp.add.at(sums, places, xp.ascontiguousarray(getattr(rows, part)))
            setattr(out, part, sums)
    elif kind == "i" and size == 8:  # two's complement: the same bits
        xp.add.at(out.view(xp.uint64), places, rows.view(xp.uint64))
    elif kind == "b":
        hits = xp.zeros(out.shape, xp.int32)
        xp.add.at(hits, places, rows.astype(xp.int32))
        out |= hits > 0
    elif kind in "iu" and size < 4:
        sums = xp.zeros(out.shape, xp.int32)
        xp.add.at(sums, places, rows.astype(xp.int32))
        out += sums.astype(out.dtype)
    else:
        xp.add.at(out, places, rows)


def _extreme(xp: ArrayModule, how: str, out: Array, places: Array, rows: Array) -> None:
    keys = _keys(xp, out)
    getattr(xp, how).at(keys, places, _keys(xp, rows))
    if out.dtype.kind != "f":
        out[...] = _values(xp, keys, out.dtype)
        return
    missing = xp.isnan(out).astype(xp.int32)
    xp.maximum.at(missing, places, xp.isnan(rows).astype(xp.int32))
    out[...] = xp.where(missing > 0, out.dtype.type(math.nan), _values(xp, keys, out.dtype))


def _keys(xp: ArrayModule, x: Array) -> Array:
    """Returns new numbers of the same order, of a dtype that `at` takes."""
    if x.dtype.kind == "i" and x.dtype.itemsize == 8:
        return x.view(xp.uint64) ^ np.uint64(_SIGN)
    if x.dtype.itemsize < 4:
        return x.astype(xp.float32 if x.dtype.kind == "f" else xp.int32)
    return x.copy()


def _values(xp: ArrayModule, keys: Array, dtype: Any) -> Array:
    if dtype.kind == "i" and dtype.itemsize == 8:
        return (keys ^ np.uint64(_SIGN)).view(xp.int64)
    return keys.astype(dtype)


def _in_turn(xp: ArrayModule, function: Any, out: Array, places: Array, rows: Array) -> None:
    order = xp.argsort(places, kind="stable")
    ordered = places[order]
    turns = xp.arange(len(order)) - xp.searchsorted(ordered, ordered)
    for turn in range(int(on_host(turns.max())) + 1):
        some = order[turns == turn]
        at = places[some]
        out[at] = function(out[at], rows if rows.shape == () else rows[some])


__all__ = ["scatter"]
