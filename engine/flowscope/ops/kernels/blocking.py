"""Arrays in stretches that stay in the processor's cache, for kernels of many passes.

A kernel that goes over its arrays a dozen times is as slow as the memory is. Cut into stretches of
which those of all arrays fit into the second-level cache together, each comes from memory once.
Shorter ones, for the first level, lose more by calls than they gain. Graphics cards have no use
for stretches: there they span the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowscope.graph.op import Array, ArrayModule

#: Bytes of one stretch of all arrays together, for second-level caches of 1 MB and more (measured).
CACHE_BYTES = 3 << 18
#: The width of vector registers in bytes, to which scratch space is aligned: writes to it then take
#: half the time.
_ALIGNMENT = 64
#: Below this an array's alignment makes no difference that is worth a few calls.
_SMALL_BYTES = 1 << 14


def stretches(
    xp: ArrayModule, arrays: tuple[Array, ...], temporaries: int
) -> Iterator[tuple[Array, ...]]:
    """Yields views of the same stretch of every array, then as much scratch space each.

    Args:
        xp: The array module.
        arrays: Arrays of one shape and dtype. Those that are written to lie row by row in memory.
        temporaries: How many arrays of scratch space to add; what they hold is not defined.
    """
    first = arrays[0]
    length = _length(first, len(arrays) + temporaries)
    if first.size <= length:
        yield (*arrays, *[scratch(xp, first) for _ in range(temporaries)])
        return
    flat = [a.reshape(-1) for a in arrays]
    space = [scratch(xp, flat[0][:length]) for _ in range(temporaries)]
    whole = first.size - first.size % length
    for start in range(0, whole, length):
        stop = start + length
        yield (*[a[start:stop] for a in flat], *space)
    if whole < first.size:
        yield (*[a[whole:] for a in flat], *[t[: first.size - whole] for t in space])


def _length(array: Array, count: int) -> int:
    """Returns how many elements of each of `count` arrays a stretch has."""
    if type(array) is not np.ndarray:
        return int(array.size)
    itemsize: int = array.dtype.itemsize
    row = _ALIGNMENT // itemsize
    return CACHE_BYTES // (itemsize * count) // row * row


def scratch(xp: ArrayModule, like: Array) -> Array:
    """Returns an array of the shape and dtype of `like`; what it holds is not defined."""
    if type(like) is not np.ndarray or like.nbytes < _SMALL_BYTES:
        return xp.empty(like.shape, like.dtype)
    raw = np.empty(like.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + like.nbytes].view(like.dtype).reshape(like.shape)
