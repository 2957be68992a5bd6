"""Predicates: where a step that runs on is to be held again.

A gate only waits. What it waits for is a predicate: asked at each safepoint, it says whether the
step has come to where it shall stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from flowscope.graph.lazy import frozen
from flowscope.plan.locations import Here

if TYPE_CHECKING:
    from flowscope.runtime.step import Step


@frozen
class Predicate:
    """Where a step is to be held.

    Attributes:
        is_met: Whether a step that comes to a safepoint has arrived: told what tells where it is.
        is_by_op: Whether it has to run one operation at a time until then.
        step: The step that is meant: others that are held stay so. None for whichever comes first.
        depth: With fewer loops around it is met; None where that does not count.
    """

    is_met: Callable[[Here], bool]
    is_by_op: bool = False
    step: Step | None = None
    depth: int | None = None

    def of(self, step: Step | None) -> Predicate:
        """Returns the same for one step."""
        return replace(self, step=step)


#: Before the next operation.
NEXT_OP = Predicate(lambda here: here.is_op, is_by_op=True)
#: Before the next operation, or at the end of an iteration.
NEXT_SAFEPOINT = Predicate(lambda here: True, is_by_op=True)
#: At the end of the next iteration of any loop.
NEXT_ITERATION = Predicate(lambda here: here.is_back_edge)
#: At the end of the step.
END_OF_STEP = Predicate(lambda here: False)


def out_of(depth: int) -> Predicate:
    """Returns the predicate that is met where fewer loops are around than `depth`."""
    return Predicate(lambda here: len(here.where().loops) < depth, depth=depth)


__all__ = ["END_OF_STEP", "NEXT_ITERATION", "NEXT_OP", "NEXT_SAFEPOINT", "Predicate", "out_of"]
