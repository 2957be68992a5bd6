"""Steps: one run of a plan in a session, from its beginning to its end.

The step is what is held, stopped, stepped, looked at, and what fails; what it has moved in queues
and which update groups it has begun is noted of it. A session may run several at a time, a step may
have several threads - functions of the user's and parts of large kernels run on others - and a
function of the user's may run one step inside of another. So nothing of a step is told by a thread:
who runs for a step asks `current_step`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal

from flowscope.runtime.state.device_variable import PlacedVariable
from flowscope.runtime.state.queue_transactions import QueueTransaction
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.threads import host_calls, interrupt
from flowscope.runtime.threads.blas import one_thread

if TYPE_CHECKING:
    from flowscope.plan.analysis.locations import StepLocation, StopPoint
    from flowscope.plan.ir.breakpoints import BreakTests
    from flowscope.plan.plan import Plan
    from flowscope.runtime.planning.calls import PreparedCall
    from flowscope.runtime.state.shared_updates import SharedUpdates
    from flowscope.runtime.step.samples import Sample
    from flowscope.runtime.threads.thread_pool import ThreadPool
    from flowscope.runtime.waits.gate import Gate
    from flowscope.runtime.waits.gate_states import Preparation
    from flowscope.runtime.waits.local_waits import Awaiting
    from flowscope.runtime.waits.predicates import Predicate
    from flowscope.runtime.waits.rendezvous import Channel


State = Literal["running", "held", "stopping", "ended"]


class Step:
    """One run of a plan.

    Args:
        call: What is run.
        around: The step, of whichever session, in which a function of the user's has begun it; None
            for none.
        gate: Where it is held: the session's.
        host_threads: Where functions of the user's run that it does not wait for.
        thread: The thread that has begun it.

    Attributes:
        call, gate, thread: As above.
        number: The number of the run in its session; None before it has one.
        deadline: When it is to end, by the monotonic clock in nanoseconds, and the milliseconds
            that it was given; None without one.
        has_ended: Whether it is over; a function of the user's that it left alone may go on.
        held: How many of its threads stand still, in a pause or in slow motion.
        is_stopping: Whether it is to end by a stop.
        is_arriving: Whether it has met a breakpoint, and is not held yet.
        is_looked_at: Whether it is to note where it is at its next safepoint.
        sample: What traces it for a while from its next safepoint on; None for nothing.
        where: Where it was when it was looked at last.
        here: The safepoint at which it stands still; None while it runs.
        feeds: What is fed, while a plan runs that asks at breakpoints; () else.
        stops: How often it came to where it could be held.
        met: The breakpoint that it is held at; None for none.
        is_rearmed: Whether breakpoints were set that its code does not ask at: it is to leave that
            at its next safepoint, and to go on with code that does.
        meets_any_stop: Whether a stop is meant for it, too, that came when nothing ran.
        waited_ns: Nanoseconds that it stood still.
        takes_turns: Whether it is a part of a step that runs in several processes: it is not
            stepped by itself, but when its turn comes.
        keeps_turns: Whether its parts go on by turns alone, in a pause or not: breakpoints were set
            while it ran.
        has_left: Whether it has left the code that it began with, since it keeps to turns: behind
            its loops that may have no safepoint.
        is_joint: Whether it stands for such a step while that is held.
        turn: Up to where it may run, though it is held; None where its turn has not come.
        is_blocked: Whether it waits for others where it may not be held.
        waits_at: Where it waits for a value of others, or for them to read; None else.
        is_settled: Whether it has ended well and others act on that: no stop and no deadline ends
            it any more.
        awaits: What its machine waits for, while nothing else of it is ready; None else.
        unbegun: How many of its partitions have not begun on their threads.
        is_waiting: Whether it waits at its gate for others, and nobody has woken it since.
        queues: What it has moved in queues; None where it uses none.
        left_call: The function that code has started and left to the executor.
        pool: The threads that share large kernels; None where no kernel of the plan multiplies.
        updates: The update groups for which other processes write, too; None where there are none.
        channel: What the partition that runs sends and receives through; None where all of the
            step is one program.
        device: The device whose partition runs; "" where all of the step is one program.
    """

    # In the class as long as they are as at the beginning: a step of one operation is made quickly.
    number: int | None = None
    deadline: tuple[int, int] | None = None
    has_ended = False
    held = 0
    is_stopping = False
    is_arriving = False
    is_looked_at = False
    sample: Sample | None = None
    where: StepLocation | None = None
    here: StopPoint | None = None
    feeds: tuple[Any, ...] = ()
    stops = 0
    met: Any = None
    is_rearmed = False
    meets_any_stop = True
    waited_ns = 0
    takes_turns = False
    keeps_turns = False
    has_left = False
    is_joint = False
    turn: Predicate | None = None
    is_blocked = False
    waits_at: StopPoint | None = None
    is_settled = False
    awaits: Awaiting | None = None
    unbegun = 0
    is_waiting = False
    queues: QueueTransaction | None = None
    left_call: tuple[Any, host_calls.HostCall] | None = None
    pool: ThreadPool | None = None
    updates: SharedUpdates | None = None
    channel: Channel | None = None
    device = ""

    def __init__(
        self,
        call: PreparedCall,
        around: Step | None,
        gate: Gate,
        host_threads: host_calls.HostThreads,
        thread: int,
    ) -> None:
        self.call = call
        self._begun_in = around
        self.gate = gate
        self.thread = thread
        self.host_threads = host_threads
        if call.queues is not None:
            self.queues = QueueTransaction(call.queues)

    @property
    def plan(self) -> Plan:
        """The plan that it runs."""
        return self.call.plan

    @property
    def tests(self) -> BreakTests:
        """What its code asks at breakpoints."""
        return self.call.tests

    @property
    def state(self) -> State:
        """What it does."""
        if self.has_ended:
            return "ended"
        if self.is_stopping:
            return "stopping"
        return "held" if self.held else "running"

    @property
    def is_wanted(self) -> bool:
        """Whether it is to call the gate at its next safepoint, though that is open."""
        return self.is_asked or self.deadline is not None

    @property
    def is_asked(self) -> bool:
        """Whether it is to call the gate for another reason than its deadline."""
        is_told = self.is_looked_at or self.is_stopping or self.is_rearmed
        return is_told or self.keeps_turns

    # -- steps inside of steps ------------------------------------------------------------------

    @property
    def around(self) -> Step | None:
        """The step, of whichever session, in which it was begun and that goes on; or None."""
        step = self._begun_in
        return None if step is None or step.has_ended else step

    @property
    def is_left_alone(self) -> bool:
        """Whether a step in which it was begun has ended: nobody waits for it any more."""
        step = self._begun_in
        while step is not None and not step.has_ended:
            step = step._begun_in
        return step is not None

    @property
    def outer(self) -> Step | None:
        """The step of the same session around it; None for none."""
        step = self.around
        while step is not None and step.gate is not self.gate:
            step = step.around
        return step

    @property
    def whole(self) -> Step:
        """The step that this one is a part of: itself, where no partition of one runs."""
        return self

    def includes(self, step: Step | Preparation | None) -> bool:
        """Whether a step is this one, or runs inside of it."""
        while step is not None and step is not self:
            step = step.around
        return step is not None

    # -- time -----------------------------------------------------------------------------------

    def inherit_limit(self) -> None:
        """Lets it end with the step around it, if that has a deadline and it has none."""
        outer = self.outer
        if self.deadline is None and outer is not None:
            self.deadline = outer.deadline

    def left_s(self) -> float | None:
        """Returns the seconds until its deadline; None without one."""
        if self.deadline is None:
            return None
        return (self.deadline[0] - time.monotonic_ns()) * 1e-9

    # -- functions of the user's ----------------------------------------------------------------

    def call_function(self, function: Callable[[], Any]) -> Any:
        """Calls a function of the user's; see `flowscope.runtime.threads.host_calls`."""
        if get_ident() != self.thread:
            return function()  # it was started on a thread of its own, and nobody waits for it here
        if self.pool is None:
            return self._called(function)
        with one_thread.suspended():
            return self._called(function)

    def _called(self, function: Callable[[], Any]) -> Any:
        if self.deadline is not None:
            return host_calls.call_and_wait(self.gate, self.host_threads, function)
        if get_ident() == interrupt.MAIN_THREAD:
            return interrupt.call(function)
        return function()

    def start_function(self, function: Callable[[], Any]) -> host_calls.HostCall:
        """Starts a function of the user's on a thread of its own."""
        return host_calls.HostCall(function, self.host_threads)

    def forget_function(self) -> None:
        """Leaves the function alone that it has started and not waited for."""
        left, self.left_call = self.left_call, None
        if left is not None:
            left[1].leave_alone()

    # -- its end --------------------------------------------------------------------------------

    def failed(self, error: BaseException) -> None:
        """Puts back what a step that ended with an error must not leave behind.

        Queues get back what a step that was stopped has taken, and update groups that it had begun
        are undone.
        """
        if self.queues is not None:
            self.queues.abort(error)
        self.undo()

    def undo(self) -> None:
        """Undoes the update groups that this thread has begun and not ended."""
        for state in self.call.resources:
            if isinstance(state, VariableState | PlacedVariable):
                state.undo()


def deadline_after(timeout_ms: int) -> tuple[int, int] | None:
    """Returns the deadline that is so many milliseconds from now; None for 0."""
    return (time.monotonic_ns() + timeout_ms * 1_000_000, timeout_ms) if timeout_ms else None


__all__ = ["Step", "deadline_after"]
