"""Kernels that read the clock."""

from __future__ import annotations

import time
from typing import Any

from flowscope.graph.op import register_kernel
from flowscope.ops.host.timing import Timestamp

__all__ = ["timestamp"]


@register_kernel(Timestamp, "CPU")
@register_kernel(Timestamp, "GPU")
def timestamp(op: Timestamp, xp: Any) -> Any:
    """Returns the time as a float64 scalar of the device."""
    return xp.asarray(time.time(), xp.float64)[()]
