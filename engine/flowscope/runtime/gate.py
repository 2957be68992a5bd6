"""The gate: how a running step is paused, continued, stopped and interrupted.

Each session has one. Steps test `raised` at their safepoints, and `Session.run` before it starts
and
after it ended; nothing else of it is touched while nobody wants anything. Requests may come from
any thread (a view's, a signal handler's): they are queued, and carried out where the step can take
them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Literal

from flowscope.errors import CancelledError

Request = Literal["pause", "resume", "stop", "interrupt"]
State = Literal["open", "pausing", "paused", "stopping"]

#: state -> request -> new state ("paused" is "pausing" with a step held). A stop also ends a
#: pause; an interrupt is a stop that is raised as
#: KeyboardInterrupt, on the main thread.
_TRANSITIONS: dict[State, dict[Request, State]] = {
    "open": {"pause": "pausing", "resume": "open", "stop": "stopping", "interrupt": "stopping"},
    "pausing": {"pause": "pausing", "resume": "open", "stop": "stopping", "interrupt": "stopping"},
    "stopping": {
        "pause": "stopping",
        "resume": "stopping",
        "stop": "stopping",
        "interrupt": "stopping",
    },
}


#: A held step looks again so often, for a signal that comes just before a wait does not end it.
_LOOK_S = 0.25


class Gate:
    """Holds, lets through or ends the steps of one session.

    Attributes:
        raised: Whether a step that reaches a safepoint has to call `hold`.
        held_ns: Nanoseconds that steps have waited here.
    """

    __slots__ = ("_changed", "_interrupted", "_requests", "_state", "_waiting", "held_ns", "raised")

    def __init__(self) -> None:
        self.raised = False
        self.held_ns = 0
        self._changed = threading.Condition(threading.RLock())
        self._requests: deque[Request] = deque()
        self._state: State = "open"
        self._interrupted = False
        self._waiting = 0

    @property
    def state(self) -> State:
        """What the gate does with the next step that comes to it."""
        if self._state == "pausing" and self._waiting:
            return "paused"
        return self._state

    def request(self, request: Request) -> None:
        """Asks for something; from any thread, a signal handler too. Returns at once."""
        with self._changed:
            self._requests.append(request)
            self._drain()
            self._changed.notify_all()

    def clear_stop(self) -> None:
        """Forgets a stop that no step has met: what it was meant for has ended by itself."""
        with self._changed:
            if self._state == "stopping":
                self._set("open")

    def hold(self, point: int, live: tuple[Any, ...]) -> tuple[Any, ...]:
        """Waits while paused; returns the live values with which the step goes on.

        Args:
            point: Position in the region, for those who look at the step.
            live: The values that are alive there.

        Raises:
            CancelledError: if the step is to stop.
            KeyboardInterrupt: if it is to stop because of an interrupt.
        """
        del point
        with self._changed:
            while self._state == "pausing":
                self._waiting += 1
                self._changed.notify_all()
                start = time.perf_counter_ns()
                try:
                    self._changed.wait(_LOOK_S)
                finally:
                    self._waiting -= 1
                    self.held_ns += time.perf_counter_ns() - start
            if self._state == "stopping":
                interrupted = self._interrupted
                if interrupted and threading.get_ident() != threading.main_thread().ident:
                    return live
                self._set("open")
                if interrupted:
                    raise KeyboardInterrupt
                raise CancelledError(
                    "the step was stopped; variables are as the last whole update left them"
                )
        return live

    def wait_until_held(self, timeout_s: float) -> bool:
        """Waits until a step is held here; returns whether one is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting > 0, timeout_s)

    def _drain(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if request == "interrupt":
                self._interrupted = True
            self._set(_TRANSITIONS[self._state][request])

    def _set(self, state: State) -> None:
        self._state = state
        self.raised = state != "open"
        if state == "open":
            self._interrupted = False
