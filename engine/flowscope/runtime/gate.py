"""The gate: how running steps are paused, continued, stopped, interrupted and timed out.

Each session has one. Steps test `raised` at their safepoints, and the session before they start and
after they ended; nothing else of it is touched while nobody wants anything. Requests may come from
any thread (a view's, a signal handler's): they are queued, and carried out where the steps can take
them.

A stop is meant for the steps that are inside when it comes; where none is, or they all end before
they meet it, for the next one. A step with a deadline keeps the flag raised, so that it looks at
the clock at each of its safepoints: a step without one pays nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from flowscope.errors import CancelledError, DeadlineExceededError

Request = Literal["pause", "resume", "stop", "interrupt", "close"]
State = Literal["open", "pausing", "paused", "stopping", "closed"]

#: state -> request -> new state ("paused" is "pausing" with a step held). A stop also ends a
#: pause; an interrupt is a stop that is raised as KeyboardInterrupt, on the main thread.
_TRANSITIONS: dict[State, dict[Request, State]] = {
    "open": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "interrupt": "stopping",
        "close": "closed",
    },
    "pausing": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "interrupt": "stopping",
        "close": "closed",
    },
    "stopping": {
        "pause": "stopping",
        "resume": "stopping",
        "stop": "stopping",
        "interrupt": "stopping",
        "close": "closed",
    },
    "closed": {
        "pause": "closed",
        "resume": "closed",
        "stop": "closed",
        "interrupt": "closed",
        "close": "closed",
    },
}


#: A held step looks again so often, for a signal that comes just before a wait does not end it.
_LOOK_S = 0.25

#: The thread that gets signals.
MAIN_THREAD = threading.main_thread().ident


class Gate:
    """Holds, lets through or ends the steps of one session.

    Attributes:
        raised: Whether a step that reaches a safepoint has to call `hold`.
        inside: The threads with a step on its way; the session keeps it.
        held_ns: Nanoseconds that steps have waited here.
        waits: Of these, by thread, those of the steps on their way.
    """

    __slots__ = (
        "_changed",
        "_deadlines",
        "_doomed",
        "_is_met",
        "_pending",
        "_requests",
        "_state",
        "_waiting",
        "held_ns",
        "inside",
        "raised",
        "waits",
    )

    def __init__(self) -> None:
        self.raised = False
        self.inside: dict[int, bool] = {}
        self.held_ns = 0
        self.waits: dict[int, int] = {}
        self._changed = threading.Condition(threading.RLock())
        self._requests: deque[Request] = deque()
        self._state: State = "open"
        self._waiting = 0
        #: Threads whose steps are to end, and whether by a stop or an interrupt.
        self._doomed: dict[int, Request] = {}
        #: Why the next step is to end if none of the doomed meets the stop.
        self._pending: Request = "stop"
        self._is_met = False
        #: (when, timeout in milliseconds) by thread.
        self._deadlines: dict[int, tuple[int, int]] = {}

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

    def limit(self, timeout_ms: int | None) -> None:
        """Gives this thread's step so many milliseconds from now on; None takes the limit away."""
        me = threading.get_ident()
        with self._changed:
            if timeout_ms is None:
                self._deadlines.pop(me, None)
            else:
                self._deadlines[me] = (time.monotonic_ns() + timeout_ms * 1_000_000, timeout_ms)
            self._set(self._state)

    def hold(self, point: int, live: tuple[Any, ...]) -> tuple[Any, ...]:
        """Waits while paused; returns the live values with which the step goes on.

        Args:
            point: Position in the region, for those who look at the step.
            live: The values that are alive there.

        Raises:
            CancelledError: if the step is to stop, or the session was closed.
            KeyboardInterrupt: if it is to stop because of an interrupt.
            DeadlineExceededError: if its time is over.
        """
        del point
        me = threading.get_ident()
        with self._changed:
            self._check(me)
            while self._state == "pausing":
                self._wait(me)
                self._check(me)
        return live

    def wait(self, is_done: Callable[[], bool], here: Any = None) -> None:
        """Waits for something that others do; they `wake` the gate when they have done it.

        Args:
            is_done: Whether it has been done.
            here: What tells those who look where the step is.

        Raises: what `hold` does: a stop, an interrupt and a deadline end the wait.
        """
        del here
        me = threading.get_ident()
        with self._changed:
            while not is_done():
                self._check(me)
                seconds = _LOOK_S
                if me in self._deadlines:
                    seconds = min(seconds, (self._deadlines[me][0] - time.monotonic_ns()) * 1e-9)
                self._changed.wait(max(0.0, seconds))

    def wake(self) -> None:
        """Makes those who `wait` look again; from any thread."""
        with self._changed:
            self._changed.notify_all()

    def wait_until_held(self, timeout_s: float, count: int = 1) -> bool:
        """Waits until `count` steps are held here; returns whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting >= count, timeout_s)

    def _wait(self, me: int) -> None:
        self._waiting += 1
        self._changed.notify_all()
        start = time.perf_counter_ns()
        left_ns = self._deadlines[me][0] - time.monotonic_ns() if me in self._deadlines else None
        try:
            self._changed.wait(_LOOK_S if left_ns is None else min(_LOOK_S, left_ns * 1e-9))
        finally:
            self._waiting -= 1
            waited_ns = time.perf_counter_ns() - start
            self.held_ns += waited_ns
            self.waits[me] = self.waits.get(me, 0) + waited_ns

    def _check(self, me: int) -> None:
        """Ends this thread's step if it is to end."""
        if self._state == "closed":
            raise CancelledError("the session was closed while the step ran")
        if self._state == "stopping":
            self._meet_stop(me)
        deadline = self._deadlines.get(me)
        if deadline is not None and time.monotonic_ns() >= deadline[0]:
            paused = " (the session is paused)" if self._state == "pausing" else ""
            raise DeadlineExceededError(
                f"the step took longer than its {deadline[1]} ms{paused}; "
                "variables are as the last whole update left them"
            )

    def _meet_stop(self, me: int) -> None:
        self._doomed = {t: r for t, r in list(self._doomed.items()) if t in self.inside}
        reason = self._doomed.pop(me, None)
        if reason is None:
            if self._doomed:
                return None  # it is meant for others
            if self._is_met:
                return self._set("open")
            reason = self._pending
            if reason == "interrupt" and me != MAIN_THREAD:
                return None
        self._is_met = True
        if not self._doomed:
            self._set("open")
        if reason == "interrupt":
            raise KeyboardInterrupt
        raise CancelledError(
            "the step was stopped; variables are as the last whole update left them"
        )

    def _drain(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if request in ("stop", "interrupt"):
                self._doom(request)
            self._set(_TRANSITIONS[self._state][request])

    def _doom(self, request: Request) -> None:
        for thread in list(self.inside):
            if request == "stop" or thread == MAIN_THREAD:
                self._doomed[thread] = request
        self._pending = request
        self._is_met = False

    def _set(self, state: State) -> None:
        self._state = state
        self.raised = state != "open" or bool(self._deadlines)
        if state == "open":
            self._doomed.clear()
