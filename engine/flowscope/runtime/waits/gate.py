"""The gate: how running steps are paused, stepped, slowed, stopped and looked at.

Each session has one. It only waits: a `Step` knows what was asked of it, and its deadline. Steps
test `raised` at their safepoints, and the session before they start and after they ended; nothing
else of it is touched while nobody wants anything. Requests may come from any thread (a view's, a
signal handler's): they are queued, and carried out where the steps can take them.

A stop is meant for the steps that are inside when it comes; where none is, or they all end before
they meet it, for the next one. A step with a deadline keeps the flag raised, so that it looks at
the clock at each of its safepoints: a step without one pays nothing.

Stepping is a pause that is lifted until a predicate is met (`runtime.waits.predicates`): at
the next operation, or at the next back edge of a loop. Slow motion is a wait before each operation.
For both, steps run one operation at a time: `hold` says so. A look raises the flag once: each step
notes where it is, and goes on.

Parts of a step that runs in several processes are not stepped by requests: they stay where they are
until they get a turn, which lasts until their next safepoint (`cluster.debug.held_partitions`).
Why no wake is lost stands in `flowscope.runtime.waits.gate_states`.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from flowscope.errors import CancelledError, DeadlineExceededError, FailedPreconditionError
from flowscope.graph.current_step import current_step, steps_of_threads
from flowscope.plan.analysis.locations import Moves, StepLocation, StopPoint
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTests
from flowscope.plan.ir.structured import loop_name
from flowscope.runtime.threads import interrupt
from flowscope.runtime.threads.interrupt import MAIN_THREAD
from flowscope.runtime.waits.gate_states import (
    LOOK_S,
    TRANSITIONS,
    GateOfPreparations,
    Preparation,
    Request,
    State,
    patience_s,
)
from flowscope.runtime.waits.predicates import END_OF_STEP, Predicate, moves_without, out_of

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step

#: Who waits for parts of steps looks so often at those that wait where no gate sees them.
_GLANCE_S = 0.002


class Gate(GateOfPreparations):
    """Holds, lets through or ends the steps of one session.

    Attributes:
        raised: Whether a step that reaches a safepoint has to call `hold`.
        is_by_op: Whether steps shall run one operation at a time now.
        moves: What has run one operation at a time.
        held_ns: Nanoseconds that steps have waited here.
        listener: Is called on a step's own thread, with the step, when that is held at a safepoint;
            the step goes on when it returns, unless it asked for something else. None for nobody.
        follower: Is told what was asked for, so that gates of other processes do the same, and
            "rearm" where breakpoints have changed. Before a move it is told the predicate, and may
            refuse it by raising. None for nobody.
    """

    __slots__ = (
        "_changed", "_is_met", "_is_signalled", "_latest_turn", "_lock", "_pace_s", "_predicates",
        "_requests", "_state", "_waiting", "follower", "held_ns", "is_by_op", "listener", "moves",
        "preparing", "raised",
    )  # fmt: skip

    def __init__(self) -> None:
        self.raised = False
        self.is_by_op = False
        self.moves = Moves()
        self.held_ns = 0
        self.listener: Callable[[Step], None] | None = None
        self.follower: Callable[[Request | Predicate | Literal["rearm"]], None] | None = None
        self.preparing: set[Preparation] = set()
        #: Entered by itself, not through the condition: that takes several instructions, between
        #: which the handler of a signal could raise and leave it held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._requests: deque[Request | Predicate] = deque()
        self._state: State = "open"
        self._waiting = 0
        #: What is to be met, one after the other, before steps hold again.
        self._predicates: deque[Predicate] = deque()
        self._pace_s = 0.0
        self._is_met = False
        #: Whether signals wait for a step on the main thread.
        self._is_signalled = False
        #: The latest turn of a part of a step in this pause; None before the first.
        self._latest_turn: Predicate | None = None

    @property
    def state(self) -> State | Literal["paused"]:
        """What the gate does with the next step that comes to it."""
        if self._state == "pausing" and self._waiting:
            return "paused"
        return self._state

    def request(self, request: Literal["pause", "resume", "stop", "close"]) -> None:
        """Asks for something; from any thread, a signal handler too. Returns at once."""
        self._ask(request)

    def run_until(self, predicate: Predicate) -> None:
        """Lets steps run on and holds them where the first meets the predicate; as `request`.

        Raises:
            FailedPreconditionError: if one of them cannot be stepped through.
        """
        if self.follower is not None:
            self.follower(predicate)
        self._ask(predicate)

    def _ask(self, request: Request | Predicate) -> None:
        with self._lock:
            self._requests.append(request)
            self._drain()
            self._changed.notify_all()
        self._tell_follower(request)

    def _tell_follower(self, request: Request | Predicate | Literal["rearm"]) -> None:
        if self.follower is not None:
            self.follower("step" if isinstance(request, Predicate) else request)

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
        """Asks the running steps to note where they are at their next safepoints; waits so long."""
        with self._lock:
            for step in self._innermost():
                step.is_looked_at = not step.held
            self._set(self._state)
            self._changed.notify_all()
            if wait_s:
                self._changed.wait_for(lambda: not self.is_looking, wait_s)

    @property
    def is_looking(self) -> bool:
        """Whether a step has still to note where it is."""
        return any(s.is_looked_at for s in self.inside)

    @property
    def inside(self) -> list[Step]:
        """The steps on their way: those for which threads work, and those around them."""
        found: dict[Step, None] = {}
        for one in list(steps_of_threads.values()):
            step: Step | None = one
            while step is not None:
                if step.gate is self and not step.has_ended:
                    found[step] = None
                step = step.around
        return list(found)

    def _innermost(self) -> list[Step]:
        """Returns the steps that come to safepoints: around others on their threads they do not."""
        steps = self.inside
        around = {s.outer for s in steps if s.outer is not None and s.outer.thread == s.thread}
        return [s for s in steps if s not in around]

    def report(self) -> tuple[dict[Step, StepLocation], set[Step]]:
        """Returns where steps were seen, and those that stand still."""
        with self._lock:
            steps = self.inside
            seen = {s: s.where for s in steps if s.where is not None}
            return seen, {s for s in steps if s.held}

    def breakpoints(self) -> BreakTests:
        """Returns the breakpoints of the plan that runs on this thread."""
        step = current_step()
        return NO_TESTS if step is None else step.tests

    def held_steps(self) -> list[Step]:
        """Returns the steps that stand still; not parts, for which their whole stands."""
        with self._lock:
            return [s for s in self.inside if s.held and not s.takes_turns]

    def give_turn(self, step: Step, until: Predicate) -> None:
        """Lets a part of a step that is held run on until this is met; others stay held."""
        with self._lock:
            step.turn = self._latest_turn = until
            self._set(self._state)
            self._changed.notify_all()

    def keep_turns(self, step: Step, keeps: bool) -> None:
        """Has the parts of a step go on by turns alone, or when nobody holds them, too."""
        with self._lock:
            step.keeps_turns = keeps
            self._set(self._state)
            self._changed.notify_all()

    def wait_until(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        """Waits until something of the steps is so, at most so long; not on a step's thread."""
        end = time.monotonic() + timeout_s
        with self._lock:
            while not is_done() and time.monotonic() < end:
                self._changed.wait(_GLANCE_S)

    @property
    def sought(self) -> Predicate | None:
        """What is to be met next; None for nothing."""
        with self._lock:
            return self._predicates[0] if self._predicates else None

    def seek_end(self, step: Step) -> None:
        """Has what was asked of a part of a step be met at the end of the whole."""
        with self._lock:
            moves = [END_OF_STEP.of(step.whole) if p.step is step else p for p in self._predicates]
            self._predicates = deque(moves)
            self._set(self._state)
            self._changed.notify_all()

    def step_out(self, step: Step) -> None:
        """Lets a held step run until the innermost loop that it is in has ended."""
        with self.at_stop(step) as here:
            depth = 0 if here is None else len(here.where().loops)
        self.run_until(out_of(depth).of(step) if depth else END_OF_STEP.of(step.whole))

    @contextmanager
    def at_stop(self, step: Step, number: int | None = None) -> Iterator[StopPoint | None]:
        """Keeps a held step where it is, for the time of the block; gives its safepoint.

        Args:
            step: The step.
            number: Which time it is held, by `Step.stops`; None for any, or where it only waits.

        Raises:
            FailedPreconditionError: if it has gone on.
        """
        with self._lock:
            waits = number is None and step.waits_at is not None
            if not waits and not (step.held and number in (None, step.stops)):
                raise FailedPreconditionError(
                    "the step has gone on: what was seen of it where it stood is gone"
                )
            here = step.here or step.waits_at
            if not step.is_joint:
                yield here
                return
        yield here  # its values are asked of other processes: nobody waits for the lock meanwhile

    def rearm(self, is_meant: Callable[[Step], bool]) -> None:
        """Has the steps that are meant leave their code at their next safepoints, to ask anew."""
        with self._lock:
            for step in self.inside:
                step.is_rearmed = step.is_rearmed or is_meant(step)
            self._set(self._state)
        self._tell_follower("rearm")

    def limit(self, step: Step, deadline: tuple[int, int]) -> None:
        """Gives a step a time to end; see `Step.deadline`."""
        with self._lock:
            step.deadline = deadline
            self._set(self._state)

    def left(self, step: Step) -> None:
        """Notes that a step has ended that was inside while the flag was raised.

        Steps inside of it run in functions that were left alone: they end too.
        """
        with self._lock:
            for one in self.inside:
                one.is_stopping |= one.is_left_alone
            step.where = None
            self._forget_moves(step)
            self._is_signalled &= interrupt.is_waiting()  # a function of the user's may have heeded
            self._end_stop()
            self._set(self._state)
            self._changed.notify_all()

    def hold(self, point: int, here: StopPoint | None = None) -> bool:
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
        step: Step = current_step()
        try:
            self._heed_signals()
            with self._lock:
                if here is not None and here.is_breakpoint:
                    step.is_arriving = True
                    self._requests.append("pause")
                    self._drain()
                    self._tell_follower("pause")
                self._arrive(step, point, here)
            has_told = self.listener is None or step.takes_turns
            step.stops += 1
            while True:
                self._heed_signals()
                with self._lock:
                    if not self._stays(step):
                        return self._goes_on(step, here)
                    step.here = here
                    if has_told:
                        self._stand_still(step)
                if not has_told:
                    has_told = True
                    self._tell(step, is_told=point != -1)
        except (CancelledError, DeadlineExceededError) as e:
            if here is None:
                raise
            loops = [(loop_name(loop.node), loop.iteration) for loop in here.where().loops]
            raise e.located(iterations=loops) from None
        finally:
            step.here = step.met = None
            step.is_arriving = False

    def _goes_on(self, step: Step, here: StopPoint | None) -> bool:
        """Notes that a step goes on; returns whether it does so one operation at a time."""
        if step.sample is not None and here is not None and not self.is_by_op:
            sample, step.sample = step.sample, None
            here.sample(sample)
        was_rearmed = step.is_rearmed
        if was_rearmed:
            step.is_rearmed = False
            self._set(self._state)
        leaves = step.keeps_turns and not step.has_left
        step.has_left |= leaves
        return self.is_by_op or was_rearmed or leaves

    def _tell(self, step: Step, is_told: bool) -> None:
        """Has the listener look at a step that is held; not with the lock held."""
        step.held += 1
        step.is_arriving = False
        try:
            if is_told and self.listener is not None:
                self.listener(step)
        finally:
            step.held -= 1
            if self._state == "pausing":
                self._ask("resume")

    def signalled(self) -> None:
        """Has the step on the main thread handle the signals that wait."""
        with self._lock:
            self._is_signalled = True
            self._set(self._state)
            self._changed.notify_all()

    def ended(self) -> None:
        """Forgets signals that came too late for a safepoint: the step has ended."""
        with self._lock:
            self._is_signalled = False
            self._set(self._state)

    def _heed_signals(self) -> None:
        """Handles the signals that wait; not with the lock held, for handlers may do anything."""
        while self._is_signalled and threading.get_ident() == MAIN_THREAD:
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
                self._tell_follower("resume")

    def _arrive(self, step: Step, point: int, here: StopPoint | None) -> None:
        self._check(step)
        if step.turn is not None and (here is None or step.turn.is_met(here)):
            step.turn = None
        if self._state == "stepping" and self._is_met_at(step, point, here):
            self._predicates.popleft()
            arrived = TRANSITIONS[self._state]["arrive"]
            self._set(self._state if self._predicates else arrived)
        self._note(step, here)
        if self._pace_s and self._state == "open" and here is not None and here.is_op:
            self._slow(step)

    def _forget_moves(self, step: Step) -> None:
        """Forgets the moves of a step that has ended: those that wait are held again, if any."""
        moves = moves_without(step, self._predicates, is_held=bool(self._waiting))
        if self._state == "stepping" and not moves:
            self._state = "pausing" if self._waiting else "open"
        self._predicates = deque(moves)

    def _stays(self, step: Step) -> bool:
        """Whether a step that is held stays so: in a pause, and while another one moves."""
        if step.takes_turns and (self._state in ("pausing", "stepping") or step.keeps_turns):
            return step.turn is None
        if self._state != "stepping":
            return self._state == "pausing"
        return not self._predicates[0].lets(step)

    def _is_met_at(self, step: Step, point: int, here: StopPoint | None) -> bool:
        """Whether a step that is here has come to where it shall stand; the end of it will do."""
        if self._stays(step) or not self._predicates[0].is_meant_for(step):
            return False
        return point == -2 if here is None else self._predicates[0].is_met(here)

    def _note(self, step: Step, here: StopPoint | None) -> None:
        if step.is_looked_at:
            step.is_looked_at = False
            self._set(self._state)
            self._changed.notify_all()
        elif not self._pace_s and not self._stays(step):
            return
        step.where = None if here is None else here.where()

    def _slow(self, step: Step) -> None:
        """Waits as long as slow motion asks for, or until something changes."""
        start = time.monotonic()
        step.held += 1
        self._changed.notify_all()
        try:
            while self._state == "open" and self._pace_s and not self._is_signalled:
                left_s = start + self._pace_s - time.monotonic()
                if left_s <= 0:
                    break
                self._doze(step, left_s)
                self._check(step)
        finally:
            step.held -= 1

    def wait(
        self, is_done: Callable[[], bool], here: StopPoint | None = None, until: float = math.inf
    ) -> None:
        """Waits for something that others do; they `wake` the gate when they have done it.

        Args:
            is_done: Whether it has been done.
            here: What tells those who look where the step is.
            until: When somebody looks again who has not been woken, by the monotonic clock.

        Raises: what `hold` does: a stop, a signal and a deadline end the wait.
        """
        step: Step = current_step()
        while True:
            self._heed_signals()
            with self._lock:
                if is_done():
                    return
                self._check(step)
                if here is not None and step.is_looked_at:
                    self._note(step, here)
                step.waits_at = here
                step.is_waiting = True
                if self._state == "stepping" and self._predicates[0].step is step:
                    self._changed.notify_all()  # what it waits for may be held
                try:
                    left_s = max(0.0, until - time.monotonic())
                    self._changed.wait(min(patience_s(step), left_s))
                finally:
                    step.waits_at = None
                    step.is_waiting = False

    def wake(self) -> None:
        """Makes those who `wait` look again; from any thread."""
        with self._lock:
            if self._state == "stepping" and (moving := self._predicates[0].step) is not None:
                moving.is_waiting = False  # until it has looked, others run no further for it
            self._changed.notify_all()

    def wait_until_held(
        self, timeout_s: float, count: int = 1, is_over: Callable[[], bool] = lambda: False
    ) -> bool:
        """Waits until `count` steps are held here, or it is over; returns whether that came.

        A step that has met a breakpoint is waited for: others may be held since an earlier pause.
        """

        def is_held() -> bool:
            enough = self._state == "pausing" and self._waiting >= count
            return enough and not any(step.is_arriving for step in self.inside)

        with self._lock:
            return self._changed.wait_for(lambda: is_held() or is_over(), timeout_s)

    def _stand_still(self, step: Step) -> None:
        """Waits while a step stays held, or until a signal comes; it counts as held so long."""
        counts = not step.takes_turns  # its whole is counted
        self._waiting += counts
        step.held += 1
        step.is_arriving = False
        self._changed.notify_all()
        try:
            while self._stays(step):
                self._doze(step, LOOK_S)
                self._check(step)
                if self._is_signalled:
                    break
        finally:
            self._waiting -= counts
            step.held -= 1

    def _doze(self, step: Step, seconds: float) -> None:
        """Waits until something changes, so long at most."""
        start = time.perf_counter_ns()
        try:
            self._changed.wait(min(patience_s(step), seconds))
        finally:
            waited_ns = time.perf_counter_ns() - start
            self.held_ns += waited_ns
            step.waited_ns += waited_ns
            if step.call.trace is not None:
                step.call.trace.waited("pause", start)

    def _check(self, step: Step | Preparation) -> None:
        """Ends a step, or what is prepared for one, if it is to end."""
        if self._state == "closed":
            raise CancelledError("the session was closed while the step ran")
        if self._is_stop_for(step):
            step.is_stopping = False
            self._is_met = True
            self._end_stop()
            raise CancelledError(
                "the step was stopped; variables are as the last whole update left them"
            )
        deadline = step.deadline
        if deadline is not None and time.monotonic_ns() >= deadline[0]:
            paused = " (the session is paused)" if self._state == "pausing" else ""
            raise DeadlineExceededError(
                f"the step took longer than its {deadline[1]} ms{paused}; "
                "variables are as the last whole update left them"
            )

    def _is_stop_for(self, step: Step | Preparation) -> bool:
        """Whether a stop is meant for a step: for one that came later, if it was for none."""
        if step.is_stopping or any(s.is_stopping and s.includes(step) for s in self.inside):
            return True
        self._end_stop()
        return step.meets_any_stop and self._state == "stopping" and not self._are_stopping

    @property
    def _are_stopping(self) -> bool:
        is_stopping = any(s.is_stopping for s in self.inside)
        return is_stopping or any(one.is_stopping for one in self.preparing)

    def _end_stop(self) -> None:
        """Ends a stop that was met, once all have ended that it was meant for."""
        if self._state == "stopping" and self._is_met and not self._are_stopping:
            self._set("open")

    def _drain(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if request == "stop":
                self._is_met = False
                for step in self.inside:
                    step.is_stopping = True
                for one in self.preparing:
                    one.stop()
            if isinstance(request, Predicate):
                self._predicates.append(request)
                request = "step"
            state = TRANSITIONS[self._state][request]
            if state != "stepping":
                self._predicates.clear()
            self._set(state)

    def _set(self, state: State) -> None:
        self._state = state
        is_slow = bool(self._pace_s)
        is_closed = state != "open" or is_slow or self._is_signalled
        self.raised = is_closed or any(s.is_wanted for s in self.inside)
        if self.raised and not is_closed:  # they may have ended before they saw it
            self.raised = any(s.is_wanted for s in self.inside)
        keeps_turns = any(s.keeps_turns for s in self.inside)
        if state not in ("pausing", "stepping") and not keeps_turns:
            self._latest_turn = None
        if self._latest_turn is not None:
            self.is_by_op = self._latest_turn.is_by_op
        elif state == "stepping":
            self.is_by_op = self._predicates[0].is_by_op
        else:
            self.is_by_op = is_slow and state == "open"
