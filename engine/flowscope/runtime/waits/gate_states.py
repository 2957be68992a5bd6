"""What a gate does with steps, and what is asked of it: one table tells what follows what.

All that a gate has is changed with its lock, and who has changed something that a step may wait for
notifies before the lock is free. A step looks, with the lock, whether it has to wait, and waits by
giving it up: so no change comes between. Two things are read without it. A step reads `raised` at
its safepoints: what is asked for after that it meets at the next one. And steps begin and end
without it: one that ends says so and then reads `raised`; who raises the flag for steps that are
inside does so and then looks whether they are. So the flag is not left up for a step that is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal

from flowscope.graph.current_step import current_step, preparations_of_threads

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step
    from flowscope.runtime.waits.gate import Gate
    from flowscope.runtime.waits.rendezvous import Waiter

#: A held step looks again so often, for a signal that comes just before a wait does not end it.
LOOK_S = 0.25
#: "arrive" comes from a step that has done its move.
Request = Literal["pause", "resume", "stop", "close", "step", "arrive"]
State = Literal["open", "pausing", "stepping", "stopping", "closed"]

#: state -> request -> new state ("paused" is "pausing" with a step held). A stop also ends a
#: pause.
TRANSITIONS: dict[State, dict[Request, State]] = {
    "open": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step": "stepping",
        "arrive": "open",
    },
    "pausing": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step": "stepping",
        "arrive": "pausing",
    },
    "stepping": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step": "stepping",
        "arrive": "pausing",
    },
    "stopping": {
        "pause": "stopping",
        "resume": "stopping",
        "stop": "stopping",
        "close": "closed",
        "step": "stopping",
        "arrive": "stopping",
    },
    "closed": {
        "pause": "closed",
        "resume": "closed",
        "stop": "closed",
        "close": "closed",
        "step": "closed",
        "arrive": "closed",
    },
}


def patience_s(step: Step) -> float:
    """Returns how long a step waits before it looks again."""
    left_s = step.left_s()
    return LOOK_S if left_s is None else max(0.0, min(LOOK_S, left_s))


class Preparation:
    """What a session does outside of its steps: it plans, sends plans, asks workers, moves values.

    A context manager; one inside of another of the same session is that one. Its gate knows it
    meanwhile: a stop of the session ends it, where it waits or between two passes of a plan.

    Args:
        gate: The session's gate.
        deadline: When it is to end, by the monotonic clock in nanoseconds, and the milliseconds
            that the caller has given; None without one.

        begins_step: Whether a step follows: a stop that comes meanwhile is meant for that.

    Attributes:
        gate, deadline: As above.
        around: The step in which a function of the user's has begun it; None for none.
        is_stopping: Whether it is to end by a stop.
    """

    #: A stop that came when nothing ran is meant for the next step.
    meets_any_stop = False

    def __init__(
        self, gate: Gate, deadline: tuple[int, int] | None = None, begins_step: bool = False
    ) -> None:
        self.gate = gate
        self._begins_step = begins_step
        self.around: Step | None = current_step()
        self.deadline = deadline
        self.is_stopping = False
        self._waiter: Waiter | None = None
        self._outer: Preparation | None = None

    def __enter__(self) -> None:
        me = get_ident()
        self._outer = preparations_of_threads.get(me)
        outer = self._outer or self.around
        if self.deadline is None and outer is not None and outer.gate is self.gate:
            self.deadline = outer.deadline
        self.gate.begin_preparation(self)
        preparations_of_threads[me] = self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        me = get_ident()
        if self._outer is None:
            del preparations_of_threads[me]
        else:
            preparations_of_threads[me] = self._outer
        try:
            if kind is None and self._begins_step and self._outer is None:
                self.check()
        finally:
            self.gate.end_preparation(self)

    def includes(self, one: object) -> bool:
        """Whether something is this preparation."""
        return one is self

    def check(self) -> None:
        """Raises if it is to end: CancelledError or DeadlineExceededError."""
        self.gate.check(self)

    def stop(self) -> None:
        """Has it end where it waits or looks next; from any thread."""
        self.is_stopping = True
        waiter = self._waiter
        if waiter is not None:
            waiter.wake()

    @contextmanager
    def waiting(self, waiter: Waiter) -> Iterator[None]:
        """Has a stop wake a waiter for the time of the block."""
        before, self._waiter = self._waiter, waiter
        try:
            yield
        finally:
            self._waiter = before


class GateOfPreparations:
    """What a gate knows of what threads prepare for steps; see `runtime.waits.gate.Gate`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _lock: Any
        _state: State
        _check: Any
        _end_stop: Any
        _heed_signals: Any
        _set: Any
        _changed: threading.Condition
        inside: Any
        preparing: set[Preparation]
        _pace_s: float
        _is_signalled: bool

    @property
    def is_timed_only(self) -> bool:
        """Whether steps come to their safepoints for nothing but to look at the clock."""
        if self._state != "open" or self._pace_s or self._is_signalled:
            return False
        return not any(s.is_asked for s in self.inside)

    def begin_preparation(self, one: Preparation) -> None:
        """Notes that a thread prepares something: a stop is meant for that, too."""
        with self._lock:
            self.preparing.add(one)

    def end_preparation(self, one: Preparation) -> None:
        """Notes that it is over."""
        with self._lock:
            self.preparing.discard(one)
            self._end_stop()

    def check(self, one: Step | Preparation) -> None:
        """Raises if a step of this thread, or what it prepares for one, is to end.

        Raises: what `hold` does.
        """
        self._heed_signals()
        with self._lock:
            self._check(one)

    def clear_stop(self) -> None:
        """Forgets a stop that no step has met: what it was meant for has ended by itself."""
        with self._lock:
            if self._state == "stopping":
                for step in self.inside:
                    step.is_stopping = False
                for one in self.preparing:
                    one.is_stopping = False
                self._set("open")

    def stop_step(self, step: Step) -> None:
        """Ends one step at its next safepoint; the others go on. From any thread."""
        with self._lock:
            step.is_stopping = step in self.inside
            self._set(self._state)
            self._changed.notify_all()


__all__ = [
    "LOOK_S",
    "TRANSITIONS",
    "GateOfPreparations",
    "Preparation",
    "Request",
    "State",
    "patience_s",
]
