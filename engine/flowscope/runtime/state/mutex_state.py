"""Locks as state: who holds one, and who waits for it, without a thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from flowscope.errors import CancelledError, InvalidArgumentError
from flowscope.graph.current_step import current_step

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step

#: Called once: with the hold, or with what went wrong.
Finish = Callable[[Any], None]


class Hold:
    """Stands for a lock that is held, or waited for, by one acquisition of one step."""

    __slots__ = ("finish", "lock", "step")

    def __init__(self, lock: MutexState, finish: Finish) -> None:
        self.step: Step | None = current_step()
        self.lock = lock
        self.finish = finish


class MutexState:
    """A lock that is handed on in the order in which it was asked for.

    Attributes:
        name: Its name in its container.
    """

    family = "lock"
    #: What has to be the same where two handles name one lock.
    identity: ClassVar[tuple[str, ...]] = ()
    #: How often it was written: it has nothing that a step could see.
    writes: ClassVar[int] = 0

    __slots__ = ("_guard", "_holder", "_waiting", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._guard = threading.Lock()
        self._holder: Hold | None = None
        self._waiting: OrderedDict[Hold, None] = OrderedDict()

    @property
    def is_held(self) -> bool:
        """Whether somebody holds it."""
        return self._holder is not None

    @property
    def waiting(self) -> int:
        """How many wait for it."""
        return len(self._waiting)

    @property
    def waiters(self) -> list[Step | None]:
        """The steps whose acquisitions wait."""
        return [hold.step for hold in list(self._waiting)]

    @property
    def holder(self) -> Step | None:
        """The step that holds it; None for none."""
        hold = self._holder
        return None if hold is None else hold.step

    def __str__(self) -> str:
        held = "held" if self.is_held else "free"
        return f'lock "{self.name}" ({held}, {self.waiting} waiting)'

    def acquire(self, finish: Finish) -> Callable[[], None]:
        """Asks for the lock; returns what gives it up, whether it is held or waited for.

        Args:
            finish: Called once: with a `Hold` when the lock is held, or with a CancelledError.
        """
        hold = Hold(self, finish)
        with self._guard:
            if self._holder is None:
                self._holder = hold
            else:
                self._waiting[hold] = None
            is_mine = self._holder is hold
        if is_mine:
            finish(hold)

        def give_up() -> None:
            self._drop(hold)

        return give_up

    def release(self, hold: Hold) -> None:
        """Hands the lock on to the one that has waited for longest.

        Raises:
            InvalidArgumentError: if it is not held by `hold`.
        """
        if not self._drop(hold):
            raise InvalidArgumentError(f'the lock "{self.name}" was released already')

    def clear(self) -> None:
        """Makes it free. Who waits gets a CancelledError."""
        with self._guard:
            waits = list(self._waiting)
            self._waiting.clear()
            self._holder = None
        for hold in waits:
            hold.finish(CancelledError(f'the lock "{self.name}" was dropped with its container'))

    def _drop(self, hold: Hold) -> bool:
        """Ends a hold, or the wait for one; returns whether it was held."""
        with self._guard:
            if self._holder is not hold:
                self._waiting.pop(hold, None)
                return False
            next_one = next(iter(self._waiting), None)
            if next_one is not None:
                del self._waiting[next_one]
            self._holder = next_one
        if next_one is not None:
            next_one.finish(next_one)
        return True


__all__ = ["Finish", "Hold", "MutexState"]
