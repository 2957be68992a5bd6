"""Predicates: where a step that runs on is to be held again.

A gate only waits. What it waits for is a predicate: asked at each safepoint, it says whether the
step has come to where it shall stand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from flowscope.graph.lazy import frozen
from flowscope.plan.analysis.locations import StopPoint

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step


@frozen
class Predicate:
    """Where a step is to be held.

    Attributes:
        is_met: Whether a step that comes to a safepoint has arrived: told what tells where it is.
        is_by_op: Whether it has to run one operation at a time until then.
        step: The step that is meant: others that are held stay so. None for whichever comes first.
        depth: With fewer loops around it is met; None where that does not count.
    """

    is_met: Callable[[StopPoint], bool]
    is_by_op: bool = False
    step: Step | None = None
    depth: int | None = None

    def of(self, step: Step | None) -> Predicate:
        """Returns the same for one step."""
        return replace(self, step=step)

    def is_meant_for(self, step: Step) -> bool:
        """Whether it is asked of this step, or of the whole that this one is a part of."""
        return self.step in (None, step, step.whole)

    def lets(self, step: Step) -> bool:
        """Whether a step goes on: it is meant, or another part of its whole that waits for it."""
        moving = self.step
        if moving is None or self.is_meant_for(step):
            return True
        return moving.is_waiting and moving.whole is step.whole


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


def moves_without(step: Step, moves: Collection[Predicate], is_held: bool) -> list[Predicate]:
    """The predicates that are left once a step has ended.

    Args:
        step: The step.
        moves: What was to be met.
        is_held: Whether another step is held. If none is, the whole of which the step was a part
            is to be held where it comes next, or at its end.
    """
    left = [p for p in moves if p.step is not step]
    if len(left) < len(moves) and step.whole is not step and not is_held:
        left.append(NEXT_SAFEPOINT.of(step.whole))
    return left


__all__ = [
    "END_OF_STEP",
    "NEXT_ITERATION",
    "NEXT_OP",
    "NEXT_SAFEPOINT",
    "Predicate",
    "moves_without",
    "out_of",
]
