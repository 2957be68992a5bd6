"""The gate: how running steps are paused, stepped, slowed, stopped and looked at.

Each session has one. Steps test `raised` at their safepoints, and the session before they start and
after they ended; nothing else of it is touched while nobody wants anything. Requests may come from
any thread (a view's, a signal handler's): they are queued, and carried out where the steps can take
them.

A stop is meant for the steps that are inside when it comes; where none is, or they all end before
they meet it, for the next one. A step with a deadline keeps the flag raised, so that it looks at
the clock at each of its safepoints: a step without one pays nothing.

Stepping is a pause that is lifted for one move: until the next operation, or until the next back
edge of a loop. Slow motion is a wait before each operation. For both, steps run one operation at a
time: `hold` says so. A look raises the flag once: each step notes where it is, and goes on.

Signals that come while a step runs on the main thread are handled here too, outside of the lock:
see `flowscope.runtime.interrupt`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal

from flowscope.errors import CancelledError, DeadlineExceededError
from flowscope.plan.codegen.function import loop_name
from flowscope.plan.locations import Here, Moved, Where
from flowscope.runtime import interrupt
from flowscope.runtime.interrupt import MAIN_THREAD

#: "arrive" comes from a step that has done its move.
Request = Literal["pause", "resume", "stop", "close", "step_op", "step_iteration", "arrive"]
State = Literal["open", "pausing", "stepping", "stopping", "closed"]

#: state -> request -> new state ("paused" is "pausing" with a step held). A stop also ends a
#: pause.
_TRANSITIONS: dict[State, dict[Request, State]] = {
    "open": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step_op": "stepping",
        "step_iteration": "stepping",
        "arrive": "open",
    },
    "pausing": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step_op": "stepping",
        "step_iteration": "stepping",
        "arrive": "pausing",
    },
    "stepping": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step_op": "stepping",
        "step_iteration": "stepping",
        "arrive": "pausing",
    },
    "stopping": {
        "pause": "stopping",
        "resume": "stopping",
        "stop": "stopping",
        "close": "closed",
        "step_op": "stopping",
        "step_iteration": "stopping",
        "arrive": "stopping",
    },
    "closed": {
        "pause": "closed",
        "resume": "closed",
        "stop": "closed",
        "close": "closed",
        "step_op": "closed",
        "step_iteration": "closed",
        "arrive": "closed",
    },
}

#: What happens between two messages to a view is told from here; older moves are forgotten.
MOVES = 1000

#: A held step looks again so often, for a signal that comes just before a wait does not end it.
_LOOK_S = 0.25


class Moves:
    """What has run one operation at a time, for any number of those who tell it."""

    def __init__(self) -> None:
        self._latest: deque[tuple[int, Moved]] = deque(maxlen=MOVES)
        self.count = 0

    def append(self, move: Moved) -> None:
        """Notes a move."""
        self.count += 1
        self._latest.append((self.count, move))

    def since(self, count: int) -> list[Moved]:
        """Returns the moves after the first `count`, as far as they are not forgotten."""
        return [move for number, move in list(self._latest) if number > count]


class Gate:
    """Holds, lets through or ends the steps of one session.

    Attributes:
        raised: Whether a step that reaches a safepoint has to call `hold`.
        inside: The threads with a step on its way; the session keeps it.
        is_by_op: Whether steps shall run one operation at a time now.
        seen: Where each thread's step was when it was looked at last.
        held: The threads whose step stands still, in a pause or in slow motion.
        moves: What has run one operation at a time.
        held_ns: Nanoseconds that steps have waited here.
        waits: Of these, by thread, those of the steps on their way.
    """

    __slots__ = (
        "_changed",
        "_deadlines",
        "_doomed",
        "_is_met",
        "_is_signalled",
        "_lock",
        "_lookers",
        "_pace_s",
        "_requests",
        "_state",
        "_steps",
        "_waiting",
        "held",
        "held_ns",
        "inside",
        "is_by_op",
        "moves",
        "raised",
        "seen",
        "waits",
    )

    def __init__(self) -> None:
        self.raised = False
        self.is_by_op = False
        self.inside: dict[int, bool] = {}
        self.seen: dict[int, Where] = {}
        self.held: set[int] = set()
        self.moves = Moves()
        self.held_ns = 0
        self.waits: dict[int, int] = {}
        #: Entered by itself, not through the condition: that takes several instructions, between
        #: which the handler of a signal could raise and leave it held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._requests: deque[Request] = deque()
        self._state: State = "open"
        self._waiting = 0
        #: Moves that are to be made before steps hold again.
        self._steps: deque[Request] = deque()
        self._pace_s = 0.0
        #: Threads that are to note where they are.
        self._lookers: set[int] = set()
        #: Threads whose steps are to end by a stop.
        self._doomed: set[int] = set()
        self._is_met = False
        #: Whether signals wait for a step on the main thread.
        self._is_signalled = False
        #: (when, timeout in milliseconds) by thread.
        self._deadlines: dict[int, tuple[int, int]] = {}

    @property
    def state(self) -> State | Literal["paused"]:
        """What the gate does with the next step that comes to it."""
        if self._state == "pausing" and self._waiting:
            return "paused"
        return self._state

    def request(self, request: Request) -> None:
        """Asks for something; from any thread, a signal handler too. Returns at once."""
        with self._lock:
            self._requests.append(request)
            self._drain()
            self._changed.notify_all()

    @property
    def pace_s(self) -> float:
        """Seconds between two operations in slow motion; 0 at full speed."""
        return self._pace_s

    def set_pace(self, seconds: float) -> None:
        """Sets the seconds between two operations; 0 for full speed. A wait that runs ends."""
        with self._lock:
            self._pace_s = seconds
            self._set(self._state)
            self._changed.notify_all()

    def look(self, wait_s: float = 0.0) -> None:
        """Asks the running steps to note where they are (`seen`) at their next safepoints.

        Args:
            wait_s: How long to wait until they have.
        """
        with self._lock:
            inside = set(self.inside)
            self.seen = {t: w for t, w in list(self.seen.items()) if t in inside}
            self._lookers = inside - self.held
            self._set(self._state)
            self._changed.notify_all()
            if wait_s:
                self._changed.wait_for(lambda: not self._lookers & set(self.inside), wait_s)

    def report(self) -> tuple[dict[int, Where], set[int]]:
        """Returns where steps were seen, and which of them stand still."""
        with self._lock:
            return dict(self.seen), set(self.held)

    def clear_stop(self) -> None:
        """Forgets a stop that no step has met: what it was meant for has ended by itself."""
        with self._lock:
            if self._state == "stopping":
                self._set("open")

    def limit(self, timeout_ms: int) -> tuple[int, int] | None:
        """Gives this thread's step so many milliseconds from now on.

        Returns the limit that there was, of a step around this one: see `unlimit`.
        """
        me = threading.get_ident()
        with self._lock:
            before = self._deadlines.get(me)
            self._deadlines[me] = (time.monotonic_ns() + timeout_ms * 1_000_000, timeout_ms)
            self._set(self._state)
            return before

    def unlimit(self, before: tuple[int, int] | None) -> None:
        """Takes this thread's limit away, and puts back the one that there was before."""
        me = threading.get_ident()
        with self._lock:
            if before is None:
                self._deadlines.pop(me, None)
            else:
                self._deadlines[me] = before
            self._set(self._state)

    def hold(self, point: int, here: Here | None = None) -> bool:
        """Waits while paused; returns whether the step goes on one operation at a time.

        Args:
            point: Position in the region; -1 before the step and -2 after it.
            here: What tells those who look where the step is.

        Raises:
            CancelledError: if the step is to stop, or the session was closed.
            DeadlineExceededError: if its time is over.
            BaseException: what the handler of a signal raises, such as KeyboardInterrupt; other
                exceptions of handlers as HandlerError.
        """
        me = threading.get_ident()
        try:
            self._heed_signals(me)
            with self._lock:
                self._arrive(me, point, here)
            while True:
                self._heed_signals(me)
                with self._lock:
                    if self._state != "pausing":
                        return self.is_by_op
                    self._wait(me)
                    self._check(me)
        except (CancelledError, DeadlineExceededError) as e:
            if here is None:
                raise
            loops = [(loop_name(loop.node), loop.iteration) for loop in here.where().loops]
            raise e.located(iterations=loops) from None

    def signalled(self) -> None:
        """Has the step on the main thread handle the signals that wait."""
        with self._lock:
            self._is_signalled = True
            self._set(self._state)
            self._changed.notify_all()

    def _heed_signals(self, me: int) -> None:
        """Handles the signals that wait; not with the lock held, for handlers may do anything."""
        while self._is_signalled and me == MAIN_THREAD:
            with self._lock:
                self._is_signalled = False
                self._set(self._state)
            try:
                interrupt.heed()
            except BaseException:
                self._end_pause()
                raise

    def _end_pause(self) -> None:
        """Ends a pause with the step that was held: the next one shall not wait for nobody."""
        with self._lock:
            if self._state in ("pausing", "stepping"):
                self._set("open")
                self._changed.notify_all()

    def _arrive(self, me: int, point: int, here: Here | None) -> None:
        self._check(me)
        self._note(me, here)
        if self._state == "stepping" and self._is_goal(point, here):
            self._steps.popleft()
            arrived = _TRANSITIONS[self._state]["arrive"]
            self._set(self._state if self._steps else arrived)
        if self._pace_s and self._state == "open" and here is not None and here.is_op:
            self._slow(me)

    def _is_goal(self, point: int, here: Here | None) -> bool:
        """Whether a step that is here has done the move that it was asked for."""
        if here is None:
            return point == -2
        return here.is_op if self._steps[0] == "step_op" else here.is_back_edge

    def _note(self, me: int, here: Here | None) -> None:
        if me in self._lookers:
            self._lookers.discard(me)
            self._set(self._state)
            self._changed.notify_all()
        elif self._state == "open" and not self._pace_s:
            return
        if here is not None:
            self.seen[me] = here.where()
        else:
            self.seen.pop(me, None)

    def _slow(self, me: int) -> None:
        """Waits as long as slow motion asks for, or until something changes."""
        start = time.monotonic()
        self.held.add(me)
        self._changed.notify_all()
        try:
            while self._state == "open" and self._pace_s and not self._is_signalled:
                left_s = start + self._pace_s - time.monotonic()
                if left_s <= 0:
                    break
                self._doze(me, left_s)
                self._check(me)
        finally:
            self.held.discard(me)

    def wait(self, is_done: Callable[[], bool], here: Here | None = None) -> None:
        """Waits for something that others do; they `wake` the gate when they have done it.

        Args:
            is_done: Whether it has been done.
            here: What tells those who look where the step is.

        Raises: what `hold` does: a stop, a signal and a deadline end the wait.
        """
        me = threading.get_ident()
        while True:
            self._heed_signals(me)
            with self._lock:
                if is_done():
                    return
                self._check(me)
                if here is not None and me in self._lookers:
                    self._note(me, here)
                seconds = _LOOK_S
                if me in self._deadlines:
                    seconds = min(seconds, (self._deadlines[me][0] - time.monotonic_ns()) * 1e-9)
                self._changed.wait(max(0.0, seconds))

    def wake(self) -> None:
        """Makes those who `wait` look again; from any thread."""
        with self._lock:
            self._changed.notify_all()

    def wait_until_held(self, timeout_s: float, count: int = 1) -> bool:
        """Waits until `count` steps are held here; returns whether they are."""
        with self._lock:
            return self._changed.wait_for(lambda: self._waiting >= count, timeout_s)

    def _wait(self, me: int) -> None:
        self._waiting += 1
        self.held.add(me)
        self._changed.notify_all()
        try:
            self._doze(me, _LOOK_S)
        finally:
            self._waiting -= 1
            self.held.discard(me)

    def _doze(self, me: int, seconds: float) -> None:
        """Waits until something changes, so long at most."""
        start = time.perf_counter_ns()
        if me in self._deadlines:
            seconds = min(seconds, (self._deadlines[me][0] - time.monotonic_ns()) * 1e-9)
        try:
            self._changed.wait(min(_LOOK_S, seconds))
        finally:
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
        self._doomed.intersection_update(list(self.inside))
        if me not in self._doomed:
            if self._doomed:
                return None  # it is meant for others
            if self._is_met:
                return self._set("open")
        self._doomed.discard(me)
        self._is_met = True
        if not self._doomed:
            self._set("open")
        raise CancelledError(
            "the step was stopped; variables are as the last whole update left them"
        )

    def _drain(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if request == "stop":
                self._doomed = set(self.inside)
                self._is_met = False
            state = _TRANSITIONS[self._state][request]
            if state == "stepping":
                self._steps.append(request)
            else:
                self._steps.clear()
            self._set(state)

    def _set(self, state: State) -> None:
        self._state = state
        is_slow = bool(self._pace_s)
        is_wanted = self._deadlines or self._lookers or self._is_signalled
        self.raised = state != "open" or is_slow or bool(is_wanted)
        if state == "stepping":
            self.is_by_op = self._steps[0] == "step_op"
        else:
            self.is_by_op = is_slow and state == "open"
        if state == "open":
            self._doomed.clear()
