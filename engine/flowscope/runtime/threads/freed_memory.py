"""Freed memory stays with the process for a while, for the next step takes as much.

The C library gives large freed arrays back to the system, and the next ones come in pages that the
system fills with zeros as they are first touched: a fifth of a small convolutional network's step.
So at the first session glibc is told to keep up to 128 MB and to map arrays of 32 MB and more only.
It is the process's setting; who has set it in the environment keeps what he has set. Other C
libraries are left alone.

Source: the Linux manual, mallopt(3).
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _MAPPED_BYTES = 128 << 20, 32 << 20
#: What users set in the environment.
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Has the C library keep what is freed; returns whether it does. Once in a process."""
    if not sys.platform.startswith("linux") or any(name in os.environ for name in _VARIABLES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))


__all__ = ["keep_freed_memory"]
