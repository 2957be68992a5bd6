"""What spans add up to: totals, and the split of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.runtime.trace.step_trace import StepTrace
from flowscope.tracing.recording import TimeSplit

Array = Any


def with_inner(own: Array, parents: Array) -> Array:
    """Returns totals: a node's own time, and that of what it runs.

    Args:
        own: Per node.
        parents: Per node the position of the one around it, which comes before it; -1 for none.
    """
    total = own.copy()
    for i in reversed(np.flatnonzero(parents >= 0)):
        total[parents[i]] += total[i]
    return total


def split(trace: StepTrace, compute: int, python: int) -> TimeSplit:
    """Returns where the time of a step went.

    Args:
        trace: Its trace.
        compute: Nanoseconds in its nodes.
        python: Nanoseconds in the user's program before it.
    """
    copies = trace.fed - trace.planned + trace.done - trace.end
    waits = sum(w.end - w.begin for w in trace.waits)
    other = trace.done - trace.called - copies - waits - compute
    return TimeSplit(compute, copies, waits, python, max(0, other))


__all__ = ["split", "with_inner"]
