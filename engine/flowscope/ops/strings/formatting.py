"""Values as text, as TensorFlow writes them: short (`Print`, `Assert`) and laid out (`print`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule


def number(value: Any, dtype: Any) -> str:
    """Returns a number in as few digits as tell it from its neighbours, six at least tried."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if dtype.kind == "b":
        return "1" if value else "0"
    if dtype.kind in "iu":
        return str(int(value))
    if dtype.kind == "c":
        part = np.dtype("f4" if dtype.itemsize == 8 else "f8")
        return f"({number(value.real, part)},{number(value.imag, part)})"
    return _float(float(value), dtype)


def _float(value: float, dtype: Any) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    wide = dtype.itemsize > 4
    short = f"{value:.{15 if wide else 6}g}"
    same = float(short) == value if wide else np.float32(short) == np.float32(value)
    return short if same else f"{value:.{17 if wide else 9}g}"


def _elements(x: Array) -> tuple[list[Any], Any]:
    """Returns the elements in order, and the dtype."""
    if isinstance(x, bytes):
        return [x], np.dtype(object)
    flat = x.reshape(-1).tolist()
    return flat, x.dtype


def summary(x: Array, limit: int) -> str:
    """Returns the first elements of a value in brackets: "[[0 1 2][3...]...]".

    Args:
        x: An array of any device, or a scalar.
        limit: How many elements; below 0 for all.
    """
    shape = np.shape(x)
    size = int(np.prod(shape, dtype=np.int64))
    limit = size if limit < 0 else limit
    head = x if not shape else x.reshape(-1)[: max(limit, 0)]
    values, dtype = _elements(head)
    texts = [number(v, dtype) for v in values[:limit]]
    if not shape:
        return f"[{' '.join(texts)}{'' if size <= limit else '...'}]"
    out = _Rows(shape, texts, limit)
    out.row(0)
    return f"[{out.text}{'...' if size > limit else ''}]"


class _Rows:
    """Writes rows of nested brackets until the limit is reached."""

    def __init__(self, shape: Any, texts: list[str], limit: int) -> None:
        self.text = ""
        self._shape, self._texts, self._limit, self._next = shape, texts, limit, 0

    def _is_full(self) -> bool:
        return self._next >= self._limit

    def row(self, axis: int) -> None:
        """Writes what lies along an axis at the current place."""
        if self._is_full():
            return
        if axis == len(self._shape) - 1:
            self._line(axis)
            return
        for _ in range(self._shape[axis]):
            if self._is_full():
                return
            self.text += "["
            self.row(axis + 1)
            self.text += "]"

    def _line(self, axis: int) -> None:
        for i in range(self._shape[axis]):
            if self._is_full():
                self.text += "..." if axis else ""
                return
            self.text += (" " if i else "") + self._texts[self._next]
            self._next += 1


def layout(xp: ArrayModule, x: Array, edge: int) -> str:
    """Returns a value in nested brackets, row under row: "[0 1 2 ... 7 8 9]".

    Args:
        xp: Array module.
        x: An array, or a scalar.
        edge: How many elements at each end of an axis; below 0 for all.
    """
    if isinstance(x, bytes):
        return f'"{number(x, None)}"'
    dims = x.shape
    if edge >= 0:
        for axis, n in enumerate(dims):
            if n > 2 * edge:
                head = (slice(None),) * axis
                ends = [x[(*head, slice(0, edge))], x[(*head, slice(n - edge, n))]]
                x = xp.concatenate(ends, axis=axis)
    quote = '"' if x.dtype.kind == "O" else ""
    texts = iter([f"{quote}{number(v, x.dtype)}{quote}" for v in _elements(x)[0]])
    return _nested(dims, x.shape, texts, edge, 0)


def _nested(dims: Any, kept: Any, texts: Any, edge: int, axis: int) -> str:
    if axis == len(dims):
        return str(next(texts))
    parts = [_nested(dims, kept, texts, edge, axis + 1) for _ in range(kept[axis])]
    if kept[axis] != dims[axis]:
        parts.insert(edge, "...")
    inner = len(dims) - axis - 1
    space = "\n" * inner + " " * (axis + 1) if inner else " "
    return f"[{space.join(parts)}]"
