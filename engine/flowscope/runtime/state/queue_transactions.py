"""Queue transactions: what a step takes out of queues and puts into them, until it has ended.

A step that is stopped, interrupted or out of time gives back what it has taken - to the front, in
the old order - and takes back what it has put in, as if it had not run. It does not where somebody
has seen an element: where it has written a variable since, where it may have acted on the world
outside, or where another step has taken what it put in. So does one whose worker was lost, and one
that waited to put something into a queue that was closed. A step that fails otherwise gives nothing
back: it would fail again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from flowscope.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    UnavailableError,
)
from flowscope.plan.ir.invocation import InvocationError
from flowscope.runtime.state.device_variable import PlacedVariable
from flowscope.runtime.state.queue_state import Element
from flowscope.runtime.state.resources import VariableState

#: What ends a step that has not failed by itself.
_FROM_OUTSIDE = CancelledError, DeadlineExceededError, UnavailableError, AbortedError


class Moving(Protocol):
    """A queue, or a reader, whose records a step takes."""

    def take_back(self, put: Sequence[Sequence[Any]]) -> bool:
        """Takes out what a step has put in; returns whether all of it was there."""

    def give_back(self, taken: Sequence[Sequence[Any]]) -> None:
        """Puts back what a step has taken: it comes out first, in the order that it had."""


#: A step that moves something more often does not move it back.
_MOST_NOTED = 16


class QueueUse:
    """What the steps of one call may do to queues.

    Args:
        queues: The queues, and the readers.
        written: The variables that a step writes.
        is_worldly: Whether it acts on the world outside.
    """

    __slots__ = ("is_worldly", "queues", "written")

    def __init__(
        self,
        queues: Sequence[Moving],
        written: Sequence[VariableState | PlacedVariable],
        is_worldly: bool,
    ) -> None:
        self.queues = queues
        self.written = written
        self.is_worldly = is_worldly

    def writes(self) -> int:
        """Returns how often the variables were written so far, by anyone."""
        return sum([v.writes for v in self.written])


class QueueTransaction:
    """What one step has moved so far.

    Args:
        use: What it may do.
    """

    __slots__ = ("_put", "_taken", "_use", "_writes")

    def __init__(self, use: QueueUse) -> None:
        self._use = use
        self._writes = use.writes()
        self._taken: dict[Moving, list[Sequence[Element]]] = {}
        self._put: dict[Moving, list[Sequence[Element]]] = {}

    def begin(self) -> None:
        """Begins anew: what was moved so far stays where it is."""
        self._writes = self._use.writes()
        self._taken.clear()
        self._put.clear()

    def put(self, queue: Moving, elements: Sequence[Element]) -> None:
        """Notes what the step has put in; the queue's lock is held."""
        _note(self._put, queue, elements)

    def took(self, queue: Moving, elements: Sequence[Element]) -> None:
        """Notes what the step has taken out; the queue's lock is held."""
        _note(self._taken, queue, elements)

    def abort(self, error: BaseException) -> None:
        """Moves back what is to go back, as the step has ended with an error."""
        if goes_back(error) and not self._may_be_seen():
            self.give_back()

    @property
    def can_give_back(self) -> bool:
        """Whether the step, which has ended, took elements that nobody may have seen."""
        is_noted = any(len(taken) <= _MOST_NOTED for taken in self._taken.values())
        return is_noted and not self._may_be_seen()

    def _may_be_seen(self) -> bool:
        return self._use.is_worldly or self._use.writes() != self._writes

    def give_back(self) -> None:
        """Moves back what the step has moved, but where others have taken what it put in."""
        # An iterator is also found by its name.
        queues = dict.fromkeys([*self._use.queues, *self._taken])
        are_whole = [self._takes_back(queue, self._put.get(queue, ())) for queue in queues]
        if all(are_whole):
            for queue in queues:
                taken = self._taken.get(queue, ())
                queue.give_back(taken if len(taken) <= _MOST_NOTED else ())

    @staticmethod
    def _takes_back(queue: Moving, put: Sequence[Sequence[Element]]) -> bool:
        return queue.take_back(put) and len(put) <= _MOST_NOTED


def goes_back(error: BaseException) -> bool:
    """Whether a step that has ended with an error gives back what it took.

    It does where a queue was closed while it waited to put something in, too.
    """
    if isinstance(error, InvocationError):
        error = error.kernel_error
    return not isinstance(error, Exception) or isinstance(error, _FROM_OUTSIDE)


def _note(
    noted: dict[Moving, list[Sequence[Element]]],
    queue: Moving,
    elements: Sequence[Element],
) -> None:
    """Notes what was moved, if it is not too much: a loop may go on for hours."""
    moves = noted.get(queue)
    if moves is None:
        moves = noted[queue] = []
    count = len(moves)
    if count < _MOST_NOTED:
        moves.append(elements)
    elif count == _MOST_NOTED:
        moves[:] = [()] * (_MOST_NOTED + 1)


__all__ = ["QueueTransaction", "QueueUse", "goes_back"]
