"""What is told of an array: numbers of its elements, a histogram, a small picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen

#: Bins of a histogram.
BINS = 32
#: Elements that are looked at at once; a histogram is made of so many, that lie evenly, at most.
CHUNK = 1 << 20
#: The most rows and columns of a picture.
SIDE = 64


@frozen
class Statistics:
    """Numbers of the elements of an array.

    Attributes:
        dtype, shape, nbytes: Of the array.
        finite, nan, inf: How many elements are finite, not a number, infinite.
        min, max, mean: Of the finite elements; None where there are none, or of strings.
        histogram: How many finite elements there are in each of `BINS` bins of the same width from
            `min` to `max`; of more than `CHUNK` elements, of some that lie evenly in the array. ()
            where there are none.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    finite: int
    nan: int
    inf: int
    min: float | None
    max: float | None
    mean: float | None
    histogram: tuple[int, ...]


@frozen
class Picture:
    """An array as rows of grey levels: its last two axes, the first of all others.

    Attributes:
        width, height: Columns and rows, `SIDE` at most: of more, evenly chosen ones.
        low, high: The values of the levels 0 and 254; level 255 stands for what is not finite.
        levels: One byte per cell, row by row.
    """

    width: int
    height: int
    low: float
    high: float
    levels: bytes


def _numbers(array: Any) -> Any:
    """Returns the elements as floats; None where they are none."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        return np.abs(array)
    try:
        return array.astype(np.float64) if array.dtype.kind != "f" else array
    except (TypeError, ValueError):
        return None  # strings


def statistics(array: Any) -> Statistics:
    """Returns numbers of the elements of an array."""
    array = np.asarray(array)
    facts = str(array.dtype), array.shape, int(array.nbytes)
    flat = array.reshape(-1)
    if not flat.size or _numbers(flat[:1]) is None:
        return Statistics(*facts, int(array.size), 0, 0, None, None, None, ())
    sums = _Sums()
    for begin in range(0, flat.size, CHUNK):
        sums.add(_numbers(flat[begin : begin + CHUNK]))
    inf = int(flat.size) - sums.finite - sums.nan
    if not sums.finite:
        return Statistics(*facts, 0, sums.nan, inf, None, None, None, ())
    some = _numbers(flat[:: -(-flat.size // CHUNK)])
    with np.errstate(all="ignore"):
        chosen = some[np.isfinite(some)].astype(np.float64, copy=False)
        histogram = _histogram(chosen, sums.low, sums.high) if chosen.size else ()
    return Statistics(*facts, sums.finite, sums.nan, inf, sums.low, sums.high, sums.mean, histogram)


class _Sums:
    """What the elements of an array add up to, a part of it after the other: a copy takes memory.

    Attributes:
        finite, nan: How many elements are finite, and not a number.
        low, high: The least and the largest finite element.
        mean: The mean of the finite elements.
    """

    def __init__(self) -> None:
        self.finite = self.nan = 0
        self.low, self.high = np.inf, -np.inf
        self.mean = 0.0

    def add(self, part: Any) -> None:
        """Takes a part."""
        with np.errstate(all="ignore"):
            if part.size == CHUNK and np.isfinite(total := float(part.sum(dtype=np.float64))):
                self._count(part, total)  # a sum is finite only where all elements are
                return
            self.nan += int(np.count_nonzero(np.isnan(part)))
            finite = part[np.isfinite(part)].astype(np.float64, copy=False)
            if finite.size:
                self._count(finite, float(finite.mean()) * finite.size)

    def _count(self, finite: Any, total: float) -> None:
        self.low = min(self.low, float(finite.min()))
        self.high = max(self.high, float(finite.max()))
        before, self.finite = self.finite, self.finite + int(finite.size)
        if before:
            share = before / self.finite
            self.mean = self.mean * share + total / finite.size * (1.0 - share)
        else:
            self.mean = float(finite.mean()) if finite.size < CHUNK else total / finite.size


def _histogram(finite: Any, low: float, high: float) -> tuple[int, ...]:
    """Returns counts per bin, of values however far they lie apart."""
    scale = max(abs(low), abs(high), np.finfo(np.float64).tiny)
    first, last = low / scale, high / scale
    width = last - first
    if not width > 0:
        return (int(finite.size), *[0] * (BINS - 1))
    bins = ((finite / scale - first) / width * BINS).astype(np.int64)
    return tuple(np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS).tolist())


def picture(array: Any) -> Picture | None:
    """Returns an array as a small picture; None of strings and of nothing."""
    array = np.asarray(array)
    if not array.size:
        return None
    while array.ndim > 2:
        array = array[0]
    rows = np.atleast_2d(array)
    chosen = [np.linspace(0, n - 1, min(n, SIDE)).astype(np.int64) for n in rows.shape]
    cells = _numbers(rows[np.ix_(*chosen)])
    if cells is None:
        return None
    cells = cells.astype(np.float64)
    is_finite = np.isfinite(cells)
    finite = cells[is_finite]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    levels = np.full(cells.shape, 255, np.uint8)
    with np.errstate(all="ignore"):
        scaled = (finite / 2 - low / 2) / (high / 2 - low / 2) if high > low else finite * 0
    levels[is_finite] = np.round(scaled * 254).astype(np.uint8)
    return Picture(cells.shape[1], cells.shape[0], low, high, levels.tobytes())


__all__ = ["BINS", "SIDE", "Picture", "Statistics", "picture", "statistics"]
