"""The partitions of a step in one process, where they stand while the step is held.

A partition stands at a safepoint, or waits for what another one sends. It stays there until its
turn comes: then it runs to its next safepoint, one operation on. Who gives the turns is told where
each one stands, by numbers: of nodes and values in the order of the partition's program, which
client and host have alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, NamedTuple

from flowscope.errors import FailedPreconditionError
from flowscope.graph.values.dtypes import resource
from flowscope.plan.analysis.locations import StepLocation
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.runtime.step.split import PartitionStep, SplitStep
from flowscope.runtime.step.step import Step
from flowscope.runtime.waits.gate import Gate
from flowscope.runtime.waits.predicates import NEXT_SAFEPOINT, out_of

#: "begins": it has not begun; "held": at a safepoint; "waits": for another one, where it can be
#: held; "blocked": for another one, where it cannot; "runs": on its way to one of these.
State = Literal["begins", "held", "waits", "blocked", "runs", "ended"]
#: So long a host waits until its partitions stand, before it tells that one runs.
STANDS_S = 0.2


class LoopStand(NamedTuple):
    """A loop around: its node's number, and what `plan.analysis.locations.LoopAt` has of it."""

    node: int
    iteration: int
    limit: int | None
    finished: int


class PartitionPosition(NamedTuple):
    """Where a partition stands.

    Attributes:
        state: What it does.
        node: The number of the node that comes next; -1 at the end of an iteration.
        loops: The loops around, from the outermost.
    """

    state: State
    node: int = -1
    loops: tuple[LoopStand, ...] = ()


def values_of(program: Program) -> list[Value]:
    """Returns the values of a program, with those of the blocks in it, in an order of its own."""
    found = [*program.feeds]
    for node in program.walk():
        found += node.outputs
        for block in node.blocks:
            found += block.feeds
    return found


class HeldParts:
    """The partitions of a step in this process.

    Args:
        gate: Where they are held.
        whole: The step.
        programs: What they run.
        split: The step that runs them; None before they have begun and after they have ended.
    """

    def __init__(
        self,
        gate: Gate,
        whole: Step,
        programs: Sequence[Program],
        split: Callable[[], SplitStep | None],
    ) -> None:
        self._gate = gate
        self._whole = whole
        self._programs = programs
        self._split = split
        self._has_begun = False

    @cached_property
    def _nodes(self) -> list[dict[Node, int]]:
        return [{n: i for i, n in enumerate(p.walk())} for p in self._programs]

    @cached_property
    def _values(self) -> list[list[Value]]:
        return [values_of(p) for p in self._programs]

    def stands(self, timeout_s: float) -> list[PartitionPosition]:
        """Returns where the partitions stand, once none runs, or after so many seconds."""
        states: list[State] = []

        def are_at_rest() -> bool:
            states[:] = self._states()
            return "runs" not in states

        self._gate.wait_until(are_at_rest, timeout_s)
        return [self._stand(i, state) for i, state in enumerate(states)]

    def turn(self, part: int, depth: int | None) -> None:
        """Lets a partition run on: one operation, or until fewer loops than `depth` are around."""
        until = NEXT_SAFEPOINT if depth is None else out_of(depth)
        steps = self._steps()
        step = None if steps is None else steps[part]
        if step is not None:
            self._gate.give_turn(step, until)
        elif self._whole.held:
            self._gate.give_turn(self._whole, until)

    def keep_turns(self, keeps: bool) -> None:
        """Has the partitions go on by turns alone, or when nobody holds them, too."""
        if self._whole.keeps_turns is not keeps:
            self._gate.keep_turns(self._whole, keeps)

    def alive(self, part: int) -> list[tuple[int, bool]]:
        """Returns the numbers of the values that are alive in a partition, and which are arrays."""
        found = self._alive(part)
        return [
            (i, not isinstance(found[v.identity], tuple | list))
            for i, v in enumerate(self._values[part])
            if v.spec.dtype is not resource and found.get(v.identity) is not None
        ]

    def value(self, part: int, number: int) -> Any:
        """Returns a value that is alive.

        Raises:
            FailedPreconditionError: if the partition has gone on, and it is gone.
        """
        found = self._alive(part).get(self._values[part][number].identity)
        if found is None:
            raise FailedPreconditionError("the step has gone on: the value is gone")
        return found

    def replace(self, part: int, number: int, array: Any) -> bool:
        """Puts an array into the place of a value; returns whether that is alive."""
        steps = self._steps()
        step = None if steps is None else steps[part]
        if step is None:
            return False
        with self._gate.at_stop(step) as here:
            return here is not None and here.replace(self._values[part][number].identity, array)

    def _alive(self, part: int) -> dict[object, Any]:
        steps = self._steps()
        step = None if steps is None else steps[part]
        if step is None:
            return {}
        with suppress(FailedPreconditionError), self._gate.at_stop(step) as here:
            return {} if here is None else here.values()
        return {}

    def _steps(self) -> list[PartitionStep | None] | None:
        """Returns the steps of the partitions; None before they have begun, and after their end."""
        split = self._split()
        found = [] if split is None else [one.step for one in split.runs]
        if len(found) != len(self._programs):
            return None
        self._has_begun = True
        return found

    def _states(self) -> list[State]:
        steps = self._steps()
        if steps is None:
            whole = self._whole
            is_before = not self._has_begun and whole.held and whole.turn is None
            state: State = "ended" if self._has_begun else "begins" if is_before else "runs"
            return [state] * len(self._programs)
        return [self._state(step) for step in steps]

    @staticmethod
    def _state(step: PartitionStep | None) -> State:
        if step is None:
            return "runs"
        if step.has_ended:
            return "ended"
        if step.held and step.here is not None and step.turn is None:
            return "held"
        if (here := step.waits_at) is not None:
            turn = step.turn
            goes_on = turn is not None and turn.depth is not None and not turn.is_met(here)
            return "runs" if goes_on else "waits"
        return "blocked" if step.is_blocked else "runs"

    def _stand(self, part: int, state: State) -> PartitionPosition:
        steps = self._steps()
        step = None if steps is None else steps[part]
        if step is None or state not in ("held", "waits"):
            return PartitionPosition(state)
        try:
            with self._gate.at_stop(step) as here:
                return (
                    PartitionPosition("runs")
                    if here is None
                    else self._told(part, state, here.where())
                )
        except FailedPreconditionError:
            return PartitionPosition("runs")

    def _told(self, part: int, state: State, where: StepLocation) -> PartitionPosition:
        numbers = self._nodes[part]
        loops = [LoopStand(numbers[s.node], s.iteration, s.limit, s.finished) for s in where.loops]
        node = -1 if where.node is None else numbers[where.node]
        return PartitionPosition(state, node, tuple(loops))


__all__ = ["STANDS_S", "HeldParts", "LoopStand", "PartitionPosition", "State", "values_of"]
