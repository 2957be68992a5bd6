"""Arrays in stretches that stay in the processor's cache, for kernels of many passes.

A kernel that goes over its arrays a dozen times is as slow as the memory is. Cut into stretches of
which all arrays fit into the second-level cache together, each stretch comes from memory once.
Shorter ones, for the first level, lose more by calls than they gain. Graphics cards have no use
for stretches: there they span the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowscope.graph.op import Array, ArrayModule

#: Bytes of a stretch of one array: about five arrays at once, caches of 1 to 2 MB (measured).
STRETCH_BYTES = 1 << 17
#: The width of vector registers, to which scratch space is aligned: writes to it take half the
#: time.
_ALIGNMENT = 64


def stretches(
    xp: ArrayModule, arrays: tuple[Array, ...], temporaries: int
) -> Iterator[tuple[Array, ...]]:
    """Yields views of the same stretch of every array, then as much scratch space each.

    Args:
        xp: The array module.
        arrays: Arrays of one shape. Those that are written to lie row by row in memory.
        temporaries: How many arrays of scratch space to add; what they hold is not defined.
    """
    first = arrays[0]
    length = STRETCH_BYTES // first.dtype.itemsize
    if first.size <= length or type(first) is not np.ndarray:
        yield (*arrays, *[scratch(xp, first) for _ in range(temporaries)])
        return
    flat = [a.reshape(-1) for a in arrays]
    flat += [scratch(xp, flat[0][:length]) for _ in range(temporaries)]
    count = len(arrays)
    for start in range(0, first.size, length):
        parts = [a[start : start + length] for a in flat[:count]]
        n = parts[0].size
        yield (*parts, *[t[:n] for t in flat[count:]])


def scratch(xp: ArrayModule, like: Array) -> Array:
    """Returns an array of the shape and dtype of `like`; what it holds is not defined."""
    if type(like) is not np.ndarray or like.nbytes < STRETCH_BYTES // 8:
        return xp.empty(like.shape, like.dtype)
    raw = np.empty(like.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + like.nbytes].view(like.dtype).reshape(like.shape)
