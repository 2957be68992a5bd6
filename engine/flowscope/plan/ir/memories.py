"""Memories: where values of a device lie. All CPUs of a process share the host's."""

from __future__ import annotations

import functools


@functools.cache
def memory_of(device: str) -> str:
    """The name of a device's memory: the full name of one of the devices that share it."""
    return host_of(device) if is_host(device) else device


@functools.cache
def is_host(device: str) -> bool:
    """Whether the memory of a device is the host's; so is that of no device."""
    return not device or device.rpartition("/device:")[2].startswith("CPU")


@functools.cache
def host_of(device: str) -> str:
    """The name of the memory of a device's host."""
    return f"{device.rpartition('/device:')[0]}/device:CPU:0"


def short_name(device: str) -> str:
    """Returns the end of a device's name, such as "CPU:0"."""
    return device.rpartition("/device:")[2]


__all__ = ["host_of", "is_host", "memory_of", "short_name"]
