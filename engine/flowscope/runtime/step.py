"""Steps: one run of a plan in a session, from its beginning to its end.

The step is what is held, stopped, looked at, and what fails: a session may run several at a time,
on several threads, and a function of the user's may run one inside of another.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from flowscope.runtime.device_variable import PlacedVariable
from flowscope.runtime.resources import VariableState

if TYPE_CHECKING:
    from flowscope.plan.locations import Where
    from flowscope.plan.plan import Plan
    from flowscope.runtime.calls import Call

State = Literal["running", "held", "stopping"]


class Step:
    """One run of a plan.

    Args:
        call: What is run.
        outer: The step of the same session around it, on the same thread; None for none.
        thread: The thread that runs it.

    Attributes:
        call, outer, thread: As above.
        number: The number of the run in its session; None before it has one.
        deadline: When it is to end, by the monotonic clock in nanoseconds, and the milliseconds
            that it was given; None without one.
        is_held: Whether it stands still, in a pause or in slow motion.
        is_stopping: Whether it is to end by a stop.
        is_looked_at: Whether it is to note where it is at its next safepoint.
        where: Where it was when it was looked at last.
        waited_ns: Nanoseconds that it stood still.
    """

    # In the class as long as they are as at the beginning: a step of one operation is made quickly.
    number: int | None = None
    deadline: tuple[int, int] | None = None
    is_held = False
    is_stopping = False
    is_looked_at = False
    where: Where | None = None
    waited_ns = 0
    _writes = 0

    def __init__(self, call: Call, outer: Step | None, thread: int) -> None:
        self.call = call
        self.outer = outer
        self.thread = thread
        if outer is not None:
            self.deadline = outer.deadline
        if call.moves is not None:
            self._writes = call.moves.writes()

    @property
    def plan(self) -> Plan:
        """The plan that it runs."""
        return self.call.plan

    @property
    def state(self) -> State:
        """What it does."""
        if self.is_stopping:
            return "stopping"
        return "held" if self.is_held else "running"

    def limit(self, timeout_ms: int) -> None:
        """Gives it so many milliseconds from now on."""
        self.deadline = (time.monotonic_ns() + timeout_ms * 1_000_000, timeout_ms)

    def left_s(self) -> float | None:
        """Returns the seconds until its deadline; None without one."""
        if self.deadline is None:
            return None
        return (self.deadline[0] - time.monotonic_ns()) * 1e-9

    def failed(self, error: BaseException) -> None:
        """Puts back what a step that ended with an error must not leave behind.

        Queues get back what a step that was stopped has taken, and update groups that it had begun
        are undone.
        """
        if self.call.moves is not None:
            self.call.moves.end(error, self._writes)
        for state in self.call.resources:
            if isinstance(state, VariableState | PlacedVariable):
                state.undo()


__all__ = ["Step"]
