"""Predicates: where a step that runs on is to be held again.

A gate only waits. What it waits for is a predicate: asked at each safepoint, it says whether the
step has come to where it shall stand.
"""

from __future__ import annotations

from collections.abc import Callable

from flowscope.graph.lazy import frozen
from flowscope.plan.locations import Here


@frozen
class Predicate:
    """Where a step is to be held.

    Attributes:
        is_met: Whether a step that comes to a safepoint has arrived: told what tells where it is.
        is_by_op: Whether it has to run one operation at a time until then.
    """

    is_met: Callable[[Here], bool]
    is_by_op: bool = False


#: Before the next operation.
NEXT_OP = Predicate(lambda here: here.is_op, is_by_op=True)
#: At the end of the next iteration of any loop.
NEXT_ITERATION = Predicate(lambda here: here.is_back_edge)

__all__ = ["NEXT_ITERATION", "NEXT_OP", "Predicate"]
