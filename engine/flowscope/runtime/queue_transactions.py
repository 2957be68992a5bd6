"""Moves: what a step takes out of queues and puts into them, until the step has ended.

A step that is stopped, interrupted or out of time gives back what it has taken - to the front, in
the old order - and takes back what it has put in, as if it had not run. It does not where somebody
has seen an element: where it has written a variable since, where it may have acted on the world
outside, or where another step has taken what it put in. A step that fails gives nothing back: it
would fail again.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.errors import CancelledError, DeadlineExceededError
from flowscope.runtime.device_variable import PlacedVariable
from flowscope.runtime.queue_state import QueueState
from flowscope.runtime.resources import VariableState


class Moves:
    """What the steps of one call do to queues.

    Args:
        queues: The queues.
        written: The variables that a step writes.
        is_worldly: Whether it acts on the world outside.
    """

    __slots__ = ("_is_worldly", "_queues", "_written")

    def __init__(
        self,
        queues: Sequence[QueueState],
        written: Sequence[VariableState | PlacedVariable],
        is_worldly: bool,
    ) -> None:
        self._queues = queues
        self._written = written
        self._is_worldly = is_worldly

    def writes(self) -> int:
        """Returns how often the variables were written so far, by anyone."""
        return sum([v.writes for v in self._written])

    def settle(self) -> None:
        """Notes that this thread's step has ended, and what it moved stays where it is."""
        for queue in self._queues:
            queue.settle()

    def end(self, error: BaseException, writes: int) -> None:
        """Notes that this thread's step has ended with an error; moves back what is to go back.

        Args:
            error: What it ended with.
            writes: What `writes` returned when it began.
        """
        is_stopped = isinstance(error, CancelledError | DeadlineExceededError)
        if is_stopped or not isinstance(error, Exception):
            is_seen = self._is_worldly or self.writes() != writes
            are_whole = [] if is_seen else [q.take_back() for q in self._queues]
            if not is_seen and all(are_whole):
                for queue in self._queues:
                    queue.give_back()
        self.settle()


__all__ = ["Moves"]
