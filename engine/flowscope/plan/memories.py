"""Memories: where values of a device lie. All CPUs of a process share the host's."""

from __future__ import annotations

import functools


@functools.cache
def memory_of(device: str) -> str:
    """Returns what names the memory of a device: the full name of one of those that have it."""
    head, _, kind = device.rpartition("/device:")
    return f"{head}/device:CPU:0" if kind.startswith("CPU") else device


__all__ = ["memory_of"]
