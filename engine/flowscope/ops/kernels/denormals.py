"""Denormal numbers as zeros, where they would only cost time.

A float too small for a normal number (below 1.2e-38 in 32 bits) takes a processor a hundred cycles
and more. The running means of an optimizer become such numbers wherever gradients stay zero: after
a thousand steps of Adam an update took four times as long. TensorFlow's kernels count them as
zeros, and so do the updates of large variables here.

Source: the System V ABI's MXCSR (FTZ and DAZ), Arm's FPCR (FZ), the C library's fenv.h.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule

#: Below so many elements the setting costs more than denormal numbers do.
_LARGE = 1 << 12
#: By processor, in the C library's floating-point environment on Linux: which word, which bits.
_BITS = {"x86_64": (7, 0x8040), "aarch64": (0, 1 << 24)}
_Environment = ctypes.c_uint32 * 8


def denormals_as_zeros(xp: ArrayModule, array: Array) -> AbstractContextManager[Any]:
    """Returns a context in which this thread counts denormal numbers as zeros.

    It is empty for small arrays, on accelerators, and where the C library has no way.
    """
    if array.size < _LARGE or xp is not np:
        return _AS_THEY_ARE
    functions = _functions()
    return _AS_THEY_ARE if functions is None else _Flushing(*functions)


_AS_THEY_ARE = nullcontext()


class _Flushing:
    def __init__(self, get: Callable[..., Any], put: Callable[..., Any], at: int, bits: int):
        self._get, self._put, self._at, self._bits = get, put, at, bits

    def __enter__(self) -> None:
        self._before = before = _Environment()
        self._get(before)
        inside = _Environment.from_buffer_copy(before)
        inside[self._at] |= self._bits
        self._put(inside)

    def __exit__(self, *exc: object) -> None:
        self._put(self._before)


@functools.cache
def _functions() -> tuple[Callable[..., Any], Callable[..., Any], int, int] | None:
    """The functions that get and set the FPU's mode, and its flags; None if unsupported."""
    found = _BITS.get(platform.machine())
    if found is None or not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.PyDLL(None)  # the calls are shorter than a change of threads
        functions = library.fegetenv, library.fesetenv, *found
    except AttributeError:
        return None
    tiny = np.full(2, np.finfo(np.float32).tiny)
    with _Flushing(*functions):
        is_flushed = not (tiny * np.float32(0.5)).any()
    return functions if is_flushed and (tiny * np.float32(0.5)).all() else None


__all__ = ["denormals_as_zeros"]
