"""How arrays lie in memory, as they travel: the same operation then gives the same bits elsewhere.

NumPy adds up the elements of an array in an order that follows how they lie: that of a transposed
array, or of a slice, is another one than that of its copy in C order. So what is not in C order is
sent as it lies: its axes from the outermost in memory, backwards where they go backwards, and with
gaps where there were some. A gap is one element wide, whatever it was.

A layout is one number for each axis: its place in memory, and flags.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.errors import DataLossError

_PLACE, _BACKWARDS, _GAP, _STRIDED = 127, 128, 256, 512
_MOST = 1024


def layout_of(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Returns how an array lies; None for C order, which others may be sent in, too.

    Elements that stand for several - of an axis along which a value was repeated - do so no more
    where they come to: such an array has no layout.
    """
    shape, strides = array.shape, array.strides
    is_repeated = any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True))
    if array.flags.c_contiguous or is_repeated:
        return None
    axes = sorted(range(len(shape)), key=lambda i: (shape[i] > 1, -abs(strides[i])))
    found = [0] * len(shape)
    for place, axis in enumerate(axes):
        found[axis] = place | (_BACKWARDS if strides[axis] < 0 else 0)
    wide = [i for i in axes if shape[i] > 1]
    for outer, inner in zip(wide, wide[1:], strict=False):
        if abs(strides[outer]) != shape[inner] * abs(strides[inner]):
            found[inner] |= _GAP
    if wide and abs(strides[wide[-1]]) != array.itemsize:
        found[wide[-1]] |= _STRIDED
    return tuple(found)


def laid_out(array: np.ndarray[Any, Any], layout: Sequence[int]) -> np.ndarray[Any, Any]:
    """Returns the memory of an array as a flat one, which `viewed` makes the array of."""
    ordered = viewed_from(array, layout)
    dims = memory_shape(array.shape, layout)
    if dims == ordered.shape:
        return np.ascontiguousarray(ordered).reshape(-1)
    memory = np.zeros(math.prod(dims), array.dtype)
    viewed(memory, array.shape, layout)[...] = array
    return memory


def memory_shape(shape: Sequence[int], layout: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape of what holds an array of this shape, gaps included.

    Raises:
        DataLossError: if that is no layout.
    """
    places = [one & _PLACE for one in layout]
    if sorted(places) != list(range(len(shape))) or not all(0 <= one < _MOST for one in layout):
        raise DataLossError(f"expected how an array of shape {tuple(shape)} lies, got {layout!r}")
    dims = [0] * len(shape)
    for place, size, one in zip(places, shape, layout, strict=True):
        dims[place] = size + bool(one & _GAP)
    return (*dims, 2) if any(one & _STRIDED for one in layout) else tuple(dims)


def viewed(
    memory: np.ndarray[Any, Any], shape: Sequence[int], layout: Sequence[int]
) -> np.ndarray[Any, Any]:
    """Returns the array that lies in a flat one."""
    found = memory.reshape(memory_shape(shape, layout))
    if any(one & _STRIDED for one in layout):
        found = found[..., 0]
    found = found.transpose([one & _PLACE for one in layout])
    found = found[tuple([slice(n) for n in shape])]
    return found[_directions(layout)]


def viewed_from(array: np.ndarray[Any, Any], layout: Sequence[int]) -> np.ndarray[Any, Any]:
    """Returns an array forwards and from its outermost axis in memory."""
    axes = sorted(range(array.ndim), key=lambda i: layout[i] & _PLACE)
    return array[_directions(layout)].transpose(axes)


def _directions(layout: Sequence[int]) -> tuple[slice, ...]:
    return tuple([slice(None, None, -1 if one & _BACKWARDS else 1) for one in layout])


__all__ = ["laid_out", "layout_of", "memory_shape", "viewed"]
