"""Maxima and sums of arrays under moving windows, and their gradients.

A window's maximum is the maximum of its rows' maxima, and so are sums: each axis is gone through
by itself, which takes as many passes as the windows' sizes have in their sum, not in their
product. The last axis comes first. So the gradient, which goes the other way, finds first the
first row that has the maximum and then the first such element of the row: the same one that
TensorFlow takes where there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule
from flowscope.ops.kernels.windows import Axis

Axes = Sequence[Axis]
#: Bytes of images that are worked on together, so that what lies between stays in the cache.
BLOCK_BYTES = 1 << 19
_BITS = {2: "int16", 4: "int32", 8: "int64"}


def _at(i: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * i, part)


def _taps(axis: Axis) -> list[tuple[slice, slice]]:
    """Returns, per element of the window, for which windows it is on the axis, and where."""
    found = []
    for t in range(axis.window):
        offset = t * axis.dilation - axis.low
        first = max(0, -(offset // axis.stride))
        stop = min(axis.out, (axis.size - 1 - offset) // axis.stride + 1)
        stop = max(first, stop)
        begin = first * axis.stride + offset
        end = begin + max((stop - first - 1) * axis.stride + 1, 0) if stop > first else begin
        found.append((slice(first, stop), slice(begin, end, axis.stride)))
    return found


def _along(
    xp: ArrayModule, x: Array, i: int, axis: Axis, ufunc: Callable[..., Array], fill: Any
) -> Array:
    """Returns the windows' results along axis i."""
    taps = _taps(axis)
    whole = [t for t in taps if t[0] == slice(0, axis.out)]
    if not whole:
        y = xp.full((*x.shape[:i], axis.out, *x.shape[i + 1 :]), fill, x.dtype)
    elif len(whole) == 1:
        y = x[_at(i, whole[0][1])].copy()
    else:
        y = ufunc(x[_at(i, whole[0][1])], x[_at(i, whole[1][1])])
    done = whole[:2]
    for where, there in taps:
        if (where, there) in done:
            continue
        part = y[_at(i, where)]
        ufunc(part, x[_at(i, there)], out=part)
    return y


def _stages(axes: Axes) -> list[tuple[int, Axis]]:
    """Returns the axes on which there is something to do, the last first."""
    return [(i, a) for i, a in reversed(list(enumerate(axes))) if not a.is_plain]


def _lowest(xp: ArrayModule, x: Array) -> Any:
    return xp.iinfo(x.dtype).min if x.dtype.kind in "iu" else -float("inf")


def window_max(xp: ArrayModule, x: Array, axes: Axes) -> Array:
    """Returns the windows' maxima."""
    # Backwards, so that the passes with the longest runs in memory see the most elements.
    for i, a in reversed(_stages(axes)):
        x = _along(xp, x, i, a, xp.maximum, _lowest(xp, x))
    return x


def window_sum(xp: ArrayModule, x: Array, axes: Axes) -> Array:
    """Returns the windows' sums; margins count as 0."""
    for i, a in reversed(_stages(axes)):
        x = _along(xp, x, i, a, xp.add, 0)
    return x


def counts(xp: ArrayModule, axes: Axes, dtype: Any) -> Array:
    """Returns how many elements of each window do not lie in a margin, to be broadcast."""
    whole: Any = float(reduce(lambda n, a: n * a.window, axes, 1))
    if not any(a.has_margin for a in axes):
        return xp.asarray(whole, dtype)
    parts = []
    for i, a in enumerate(axes):
        inside = xp.ones((a.size,) + (1,) * (len(axes) - 1 - i), dtype)
        parts.append(_along(xp, inside, 0, a, xp.add, 0))
    return reduce(lambda n, p: n * p, parts)


def spread_sum(xp: ArrayModule, g: Array, axes: Axes) -> Array:
    """Returns the gradient of `window_sum`: each window's number added to its elements."""
    for i, a in reversed(_stages(axes)):
        taps = _taps(a)
        out = xp.zeros((*g.shape[:i], a.size, *g.shape[i + 1 :]), g.dtype)
        for where, there in taps:
            if a.stride >= a.extent:
                out[_at(i, there)] = g[_at(i, where)]
            else:
                out[_at(i, there)] += g[_at(i, where)]
        g = out
    return g


def _hits(
    xp: ArrayModule, x: Array, i: int, axis: Axis, top: Array
) -> Iterator[tuple[slice, slice, Array]]:
    """Yields, per element of the window: for which windows, where, and whether it is their first
    maximum.
    """
    taps = _taps(axis)
    if axis.window == 2 and not axis.has_margin:
        (where, first), (_, second) = taps
        is_first = x[_at(i, first)] >= x[_at(i, second)]
        yield where, first, is_first
        yield where, second, ~is_first
        return
    left = xp.ones(top.shape, bool)
    for where, there in taps:
        open_ = left[_at(i, where)]
        hit = (x[_at(i, there)] == top[_at(i, where)]) & open_
        open_ ^= hit
        yield where, there, hit


def _masked(xp: ArrayModule, g: Array, hit: Array, out: Array | None = None) -> Array:
    """Returns g where there is a hit, else 0; on bits, which is three times as quick."""
    if g.dtype.kind in "iub":
        return xp.multiply(g, hit, out=out)
    bits = _BITS[g.dtype.itemsize]
    target = None if out is None else out.view(bits)
    return xp.multiply(g.view(bits), hit, out=target).view(g.dtype)


def _maxima(xp: ArrayModule, x: Array, axes: Axes) -> list[tuple[int, Axis, Array, Array]]:
    """Returns the stages of the maximum with what comes in and goes out, the last stage first."""
    stages = []
    for i, a in _stages(axes):
        top = _along(xp, x, i, a, xp.maximum, _lowest(xp, x))
        stages.append((i, a, x, top))
        x = top
    return stages[::-1]


def spread_max(xp: ArrayModule, x: Array, g: Array, axes: Axes) -> Array:
    """Returns the gradient of `window_max`: each window's number added to its first maximum."""
    out = xp.empty(x.shape, g.dtype)
    step = max(len(x), 1)
    if xp is np and axes[0].is_plain and x.nbytes > BLOCK_BYTES:
        step = max(1, BLOCK_BYTES * len(x) // x.nbytes)
    for first in range(0, len(x), step):
        some = slice(first, first + step)
        part = x[some]
        _spread_max(xp, part, g[some], _first_axis(axes, len(part)), out[some])
    return out


def _first_axis(axes: Axes, length: int) -> Axes:
    """Returns the axes of fewer images."""
    if length == axes[0].size:
        return axes
    return (Axis(length, 1, 1, 1, 0, length), *axes[1:])


def _spread_max(xp: ArrayModule, x: Array, g: Array, axes: Axes, out: Array) -> None:
    stages = _maxima(xp, x, axes)
    if not stages:
        out[...] = g
    for n, (i, a, given, top) in enumerate(stages, 1):
        overlap = a.stride < a.extent
        is_filled = a.stride == a.window and a.dilation == 1 and a.span == a.size and not a.low
        shape = (*g.shape[:i], a.size, *g.shape[i + 1 :])
        made = out if n == len(stages) else xp.empty(shape, g.dtype)
        if is_filled and a.window == 2:
            _halve(xp, given, g, i, a, made)
            g = made
            continue
        if not is_filled:
            made.fill(0)
        for where, there, hit in _hits(xp, given, i, a, top):
            if overlap:
                made[_at(i, there)] += _masked(xp, g[_at(i, where)], hit)
            else:
                _masked(xp, g[_at(i, where)], hit, made[_at(i, there)])
        g = made


def _halve(xp: ArrayModule, x: Array, g: Array, i: int, axis: Axis, out: Array) -> None:
    """Writes each number to the larger element of its pair, and 0 to the other.

    All is done on bits, as `_masked`: the second half is what the first leaves over.
    """
    (_, first), (_, second) = _taps(axis)
    is_first = x[_at(i, first)] >= x[_at(i, second)]
    bits = g.dtype if g.dtype.kind in "iu" else _BITS[g.dtype.itemsize]
    given, target = g.view(bits), out.view(bits)
    part = target[_at(i, first)]
    xp.multiply(given, is_first.view("int8").astype(bits), out=part)
    xp.bitwise_xor(given, part, out=target[_at(i, second)])


def pick_max(xp: ArrayModule, x: Array, values: Array, axes: Axes) -> Array:
    """Returns, for each window, the one of the values that lies where its first maximum does."""
    for i, a, given, top in reversed(_maxima(xp, x, axes)):
        out = xp.zeros(top.shape, values.dtype)
        for where, there, hit in _hits(xp, given, i, a, top):
            out[_at(i, where)] += _masked(xp, values[_at(i, there)], hit)
        values = out
    return values
