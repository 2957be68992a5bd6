"""What views are told of fetched values: short texts, figures, histograms, differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.live.protocol.run_schema import FetchChange, Fetched

#: Arrays of at most so many elements are written out.
SHORT = 8
#: Longest text of a value.
CHARS = 80
#: Parts of a histogram.
PARTS = 24


def fetched(name: str, value: Any) -> Fetched:
    """The message of a fetched value.

    Args:
        name: The fetch's name.
        value: As `Session.run` returns it; None of an operation.
    """
    if value is None:
        return Fetched(name, "", (), "done", None, None, None, (), 0)
    array = np.asarray(value)
    dtype = "string" if array.dtype.kind in "OSU" else str(array.dtype)
    text = _text(value, array) if array.size <= SHORT else ""
    low, high, mean, parts, not_finite = _figures(array)
    return Fetched(name, dtype, array.shape, text, low, high, mean, parts, not_finite)


def _text(value: Any, array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0 and array.dtype.kind in "fV" and _is_number(array):
        text = f"{float(array):.6g}"
    elif array.ndim == 0:
        text = repr(value) if array.dtype.kind in "OSU" else str(array)
    else:
        text = np.array2string(array, precision=4, separator=", ", threshold=SHORT)
    text = " ".join(text.split())
    return text if len(text) <= CHARS else f"{text[: CHARS - 1]}\u2026"


def _is_number(array: np.ndarray[Any, Any]) -> bool:
    """Whether elements are real numbers; bfloat16 and its kin are, to NumPy, of no known kind."""
    return array.dtype.kind in "fiub" or (array.dtype.kind == "V" and array.dtype.names is None)


def _figures(
    array: np.ndarray[Any, Any],
) -> tuple[float | None, float | None, float | None, tuple[int, ...], int]:
    if not array.size or not _is_number(array):
        return None, None, None, (), 0
    flat = array.reshape(-1)
    numbers = flat if flat.dtype.kind in "fiu" else flat.astype(np.float64)
    if numbers.dtype.kind == "f":
        is_finite = np.isfinite(numbers)
        finite = numbers if is_finite.all() else numbers[is_finite]
    else:
        finite = numbers
    not_finite = int(numbers.size - finite.size)
    if not finite.size:
        return None, None, None, (), not_finite
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore", invalid="ignore"):
        sum_ = float(finite.sum(dtype=np.float64))
    mean = sum_ / finite.size if math.isfinite(sum_) else None
    if array.size <= SHORT or low == high or not math.isfinite(high - low):
        return low, high, mean, (), not_finite
    counts, _ = np.histogram(finite, bins=PARTS, range=(low, high))
    return low, high, mean, tuple(counts.tolist()), not_finite


def change(name: str, before: Any, now: Any) -> FetchChange:
    """Returns how a value differs from an earlier one of the same fetch."""
    if before is None or now is None:
        is_equal = before is None and now is None
        return FetchChange(name, is_equal, None, "no value" if is_equal else "only one has a value")
    a, b = np.asarray(before), np.asarray(now)
    if a.shape != b.shape or a.dtype != b.dtype:
        was, now_is = f"{a.dtype}{list(a.shape)}", f"{b.dtype}{list(b.shape)}"
        return FetchChange(name, False, None, f"was {was}, is {now_is}")
    is_number = _is_number(a) or a.dtype.kind == "c"
    if _has_equal_bits(a, b):
        return FetchChange(name, True, 0.0 if is_number else None, "equal bits")
    if not is_number:
        return FetchChange(name, False, None, f"{int((a != b).sum())} of {a.size} differ")
    return _distance(name, a, b)


def _has_equal_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype.kind == "O":
        return bool(np.array_equal(a, b))
    return a.tobytes() == b.tobytes()


def _distance(name: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> FetchChange:
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    greatest = float(distance.max())
    if not math.isfinite(greatest):
        count = int((~np.isfinite(distance)).sum())
        return FetchChange(name, False, None, f"{count} of {a.size} became finite, or ceased to be")
    if greatest == 0.0:  # signs of zero, or numbers beyond the precision of float64
        return FetchChange(name, False, 0.0, "equal values, other bits")
    return FetchChange(name, False, greatest, f"differs by up to {greatest:.3g}")


__all__ = ["change", "fetched"]
