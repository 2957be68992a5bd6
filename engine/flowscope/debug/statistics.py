"""What is told of an array: numbers of its elements, a histogram, a small picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen

#: Bins of a histogram.
BINS = 32
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
            `min` to `max`; () where there are none.
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
    numbers = _numbers(array)
    facts = str(array.dtype), array.shape, int(array.nbytes)
    if numbers is None or not numbers.size:
        return Statistics(*facts, int(array.size), 0, 0, None, None, None, ())
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(numbers)
        nan = int(np.count_nonzero(np.isnan(numbers)))
        finite = numbers[is_finite].astype(np.float64, copy=False)
    inf = int(numbers.size - finite.size - nan)
    if not finite.size:
        return Statistics(*facts, 0, nan, inf, None, None, None, ())
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(all="ignore"):
        return Statistics(
            *facts, int(finite.size), nan, inf, low, high, float(finite.mean()),
            _histogram(finite, low, high),
        )  # fmt: skip


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
    numbers = _numbers(array)
    if numbers is None or not numbers.size:
        return None
    while numbers.ndim > 2:
        numbers = numbers[0]
    rows = np.atleast_2d(numbers)
    chosen = [np.linspace(0, n - 1, min(n, SIDE)).astype(np.int64) for n in rows.shape]
    cells = rows[np.ix_(*chosen)].astype(np.float64)
    is_finite = np.isfinite(cells)
    finite = cells[is_finite]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    levels = np.full(cells.shape, 255, np.uint8)
    with np.errstate(all="ignore"):
        scaled = (finite / 2 - low / 2) / (high / 2 - low / 2) if high > low else finite * 0
    levels[is_finite] = np.round(scaled * 254).astype(np.uint8)
    return Picture(cells.shape[1], cells.shape[0], low, high, levels.tobytes())


__all__ = ["BINS", "SIDE", "Picture", "Statistics", "picture", "statistics"]
