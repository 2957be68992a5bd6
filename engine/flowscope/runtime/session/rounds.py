"""Rounds: one operation that runs again and again, as one lasting step where nothing forbids it.

A queue runner repeats its enqueue operation. As steps of their own, half of its time would go into
beginning and ending them. In a lasting step the plan's function is called again and again; each
round has a number and a queue transaction of its own, and counts as a step. So what it does is what
so many steps would do. It ends where somebody wants something at the gate - a pause, a look, a stop
- and the rounds after that are steps of their own until the gate is open.

What a round draws depends on seeds and on how often its operation has run in rounds, not on how
many steps of others came before: the order of a shuffled input, and what is done to its examples,
is the same whatever is trained beside it.

Source: a loop in the graph was measured, too: as quick while the queue has room, four times as slow
where it is full, for a loop whose body waits goes on in the executor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from flowscope.runtime.planning.calls import PreparedCall

if TYPE_CHECKING:
    from flowscope.graph.operation import Operation
    from flowscope.runtime.session.session import Session


class Rounds:
    """Runs an operation of a session again and again, on one thread.

    Args:
        session: The session.
        operation: The operation.
        is_wanted: Whether another round is wanted; asked between two.

    Attributes:
        place: Returns the number of the round that begins: they count per session and operation,
            whichever threads run them.
        why_single: Why the latest round was a step of its own; None where it was not.
    """

    def __init__(
        self, session: Session, operation: Operation, is_wanted: Callable[[], bool]
    ) -> None:
        self._session = session
        self._operation = operation
        self._is_wanted = is_wanted
        count = session.rounds_done.setdefault(operation, itertools.count())
        self.place: Callable[[], int] = count.__next__
        self.why_single: str | None = None
        self._edits = -1

    def run(self) -> None:
        """Runs one round or more; returns where somebody may have to look around.

        Raises: what the first round that fails raises, as a step does.
        """
        session = self._session
        deadline = session._deadline()
        call = session._call(self._operation, (), session.config.mode, deadline)
        self.why_single = _why_single(session, call)
        if self.why_single is not None:
            self._edits = -1
            session._observed(call, (), None, None, 0, True, deadline, self)
        else:
            self._edits = call.edits
            session._step(call, (), rounds=self)

    def goes_on(self) -> bool:
        """Whether another round of the lasting step follows."""
        session = self._session
        is_same = session.graph.edits == self._edits and not session.tracers
        return is_same and self._is_wanted()


def _why_single(session: Session, call: PreparedCall) -> str | None:
    """Why each round of a call is a step of its own; None where it is not."""
    if call.elsewhere is not None:
        return "it runs in several processes"
    if call.split is not None:
        return "its devices run side by side"
    if session.config.operation_timeout_in_ms:
        return "each step has a time limit"
    return "steps are traced" if session.tracers else None


__all__ = ["Rounds"]
