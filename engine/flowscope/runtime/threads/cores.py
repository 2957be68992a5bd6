"""How many cores this process may use: its affinity, and the share of time that a container has.

A container with a quota of two cores on a machine of 64 sees all 64. Threads beyond the quota are
held by the system in the middle of their work, and those that wait for them wait too.

Source: the Linux manual cgroups(7); cpu.max of version 2, cpu.cfs_quota_us of version 1.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator


def available_cores(root: str = "/") -> int:
    """Returns the number of cores that this process may use, 1 at least.

    Args:
        root: Where /proc and /sys lie.
    """
    quotas = (math.ceil(q) for q in _quotas(root))
    return max(1, min([_cores_by_affinity(), *quotas]))


def _cores_by_affinity() -> int:
    if counts := getattr(os, "process_cpu_count", None):  # Python 3.13; heeds PYTHON_CPU_COUNT
        return counts() or 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _quotas(root: str) -> Iterator[float]:
    """Yields the quotas, in cores, of this process's control groups and of those around them."""
    for line in _text(f"{root}/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            for folder in _upwards(f"{root}/sys/fs/cgroup", path):
                yield from _share(*_text(f"{folder}/cpu.max").split()[:2])
        elif "cpu" in controllers.split(","):
            for folder in _upwards(f"{root}/sys/fs/cgroup/cpu", path):
                files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                yield from _share(*(_text(f"{folder}/{name}").strip() for name in files))


def _upwards(top: str, path: str) -> Iterator[str]:
    """Yields the group's folder and those above it.

    A container may see its own group as the top, so what its path says is not there.
    """
    names = path.strip("/").split("/")
    for depth in range(len(names), -1, -1):
        yield "/".join([top, *names[:depth]])


def _share(quota: str = "", period: str = "") -> Iterator[float]:
    if quota.isdigit() and period.isdigit() and int(period):
        yield int(quota) / int(period)


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except OSError:
        return ""


__all__ = ["available_cores"]
