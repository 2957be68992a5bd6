"""Reads of values that steer a kernel or check its inputs: the host waits for an accelerator."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Array
from flowscope.graph.values.host_values import on_host


def bounds(x: Array) -> tuple[Any, Any]:
    """Returns the smallest and the largest number of an array that has one, on the host."""
    return on_host(x.min()), on_host(x.max())


__all__ = ["bounds"]
