"""A step whose partitions run apart: one on the caller's thread, each other one on its own.

Each partition is run by a step of its own, inside of the whole one (`PartitionStep`): it is that
which is held, looked at and stopped, and a pause, a stop or a deadline of the whole step is one of
all of them. What a partition waits for, it waits for at the session's gate.

The first error of a partition is the step's. It aborts the rendezvous, so others that wait end
too, and stops those that do not; what these raise follows from the first error, and is not told.
However a step ends, it ends after all its threads have left it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import CancelledError, DeadlineExceededError, OpError
from flowscope.graph.current_step import current_step, steps_of_threads
from flowscope.plan.executables.back_ends import Function
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTests
from flowscope.plan.ir.invocation import InvocationError
from flowscope.plan.partition.compiled_partitions import CompiledPartition
from flowscope.runtime.step.step import Step
from flowscope.runtime.waits.gate import Gate
from flowscope.runtime.waits.rendezvous import Channel, EndedWait, Pending, Rendezvous, Waiter

if TYPE_CHECKING:
    from flowscope.runtime.trace.part_trace import PartPlan, PartTrace


class DerivedError(CancelledError):
    """A partition ended because another one has failed: the error of that one is told."""


class PartitionStep(Step):
    """What one partition does of a step.

    Args:
        step: The whole step.
        part: The partition.
        channel: What it sends and receives through.
        thread: The thread that runs it.
    """

    def __init__(self, step: Step, part: CompiledPartition, channel: Channel, thread: int) -> None:
        super().__init__(step.call, step, step.gate, step.host_threads, thread)
        self._step = step
        self.device = part.device
        self.channel = channel
        self._again = part.again
        #: The breakpoints of the whole, and of these its own.
        self._tests = NO_TESTS, NO_TESTS
        self.number, self.deadline, self.feeds = step.number, step.deadline, step.feeds
        self.queues, self.pool = step.queues, step.pool

    @property
    def whole(self) -> Step:
        """The step that this one is a part of."""
        return self._step

    @property
    def tests(self) -> BreakTests:
        """What its code asks: at a branch or loop of several partitions the first of them asks.

        Nothing in a part of a step that runs in several processes: what stands for the whole asks.
        """
        if self.takes_turns:
            return NO_TESTS
        found = self.call.tests
        if self._tests[0] is not found:
            self._tests = found, found.without(self._again)
        return self._tests[1]

    @property
    def keeps_turns(self) -> bool:  # type: ignore[override]
        """Whether it goes on by turns alone, as all parts of the step."""
        return self._step.keeps_turns


class SplitFunction:
    """Runs partitions on several threads; same signature as generated code.

    Args:
        parts: The partitions; the first one runs on the caller's thread.
        by_op: Whether operations run one at a time.
        channel: Makes the channel of a step.
        plans: The plans of the partitions' traces; None where they are not traced.
    """

    def __init__(
        self,
        parts: Sequence[CompiledPartition],
        by_op: bool = False,
        channel: Callable[[], Channel] = Rendezvous,
        plans: Callable[[], Sequence[PartPlan]] | None = None,
    ) -> None:
        self.parts = parts
        self._channel = channel
        self._plans = plans
        self._traced: Sequence[PartPlan] = ()
        self._functions: list[Function] = [
            p.executable.by_op if by_op else p.executable.function for p in parts
        ]

    def __call__(
        self, gate: Gate, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Runs one step; see `flowscope.plan.codegen.function` for the arguments."""
        return self._run(self._functions, gate, run, feeds, resources)

    def traced(self, traces: list[PartTrace]) -> Function:
        """A function that runs one step and traces it.

        Args:
            traces: Where what the partitions did is put, once the step has ended.
        """
        from flowscope.runtime.trace.part_trace import PartRecorder  # most steps are not traced

        if not self._traced and self._plans is not None:
            self._traced = self._plans()
        recorders = [
            PartRecorder(part.device, plan)
            for part, plan in zip(self.parts, self._traced, strict=True)
        ]

        def run(
            gate: Gate, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
        ) -> tuple[Any, ...]:
            fetched = self._run([r.function for r in recorders], gate, run, feeds, resources)
            traces.extend([recorder.taken() for recorder in recorders])
            return fetched

        return run

    def _run(
        self,
        functions: Sequence[Function],
        gate: Gate,
        run: Any,
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        split = SplitStep(current_step(), self._channel(), gate, run)
        for part, function in zip(self.parts, functions, strict=True):
            taken = tuple([feeds[i] for i in part.takes])
            split.add(part, function, taken, tuple([resources[i] for i in part.handles]))
        split.begin()
        fetched = split.finish()
        return tuple([fetched[i] for i in range(len(fetched))])


class SplitStep:
    """A step of partitions that run apart, as far as they run in this process.

    Args:
        step: The step.
        channel: What its partitions send and receive through.
        gate: Where its threads wait.
        run: The run, for random operations.
        tell: Is told the error that ends it, once: others take part, in other processes.
        explain: Says what to add to the error that ends it, "" for nothing; is given the waits that
            the error has ended.
        takes_turns: Whether its partitions, where they are held, go on when their turns come.

    Attributes:
        step, channel, gate, run, takes_turns: As above.
        runs: What runs each partition.
        fetched: The values of the fetches by their numbers.
    """

    def __init__(
        self,
        step: Step,
        channel: Channel,
        gate: Gate,
        run: Any,
        tell: Callable[[BaseException], None] | None = None,
        explain: Callable[[BaseException, Sequence[Pending]], str] | None = None,
        takes_turns: bool = False,
    ) -> None:
        self.step = step
        self.takes_turns = takes_turns
        self.channel = channel
        self.gate = gate
        self.run = run
        self.runs: list[_PartRun] = []
        self.fetched: dict[int, Any] = {}
        self._tell = tell
        self._explain = explain  # not its own method: a step is no cycle
        self._left = self._writing = 0
        self._lock = threading.Lock()
        self._over = Waiter()
        self._cause: BaseException | None = None
        self._is_explained = False
        self._is_closed = False

    def add(
        self,
        part: CompiledPartition,
        function: Function,
        feeds: tuple[Any, ...],
        states: tuple[Any, ...],
    ) -> None:
        """Adds a partition, before the step begins.

        Args:
            part: The partition.
            function: Runs it.
            feeds: The values that it takes.
            states: What its handles stand for.
        """
        self.runs.append(_PartRun(self, part, function, feeds, states))

    def begin(self) -> None:
        """Runs the partitions: the first one here, each other one on a thread of its own."""
        self._left = self._writing = self.step.unbegun = len(self.runs)
        for one in self.runs[1:]:
            self.step.host_threads.run(one)
        for one in self.runs[:1]:
            one.run()

    def failed(self, error: BaseException, *own: Pending) -> None:
        """Notes an error; the first one ends the step on all threads.

        Args:
            error: The error.
            own: Who waited when it came, and does not any more.
        """
        if not isinstance(error, DerivedError):
            self.end(error, *own)

    def end(self, error: BaseException, *own: Pending) -> None:
        """Ends the step with an error, if none has; see `failed`."""
        with self._lock:
            if self._cause is not None or self._is_closed:
                return
            self._cause = error
        try:
            more = (self._explain or self._explained)(error, own)
            if isinstance(error, OpError) and more:
                self._cause = error.reworded(f"{error.message}; {more}")
        finally:
            self._is_explained = True
        self.channel.abort(DerivedError("another partition of the step has failed"))
        for one in self.runs:
            if one.step is not None and not one.step.has_ended:
                self.gate.stop_step(one.step)
        if self._tell is not None:
            self._tell(error)
        self._over.wake()

    def _explained(self, error: BaseException, ended: Sequence[Pending]) -> str:
        """Says of a step that ran out of time who waited."""
        if not isinstance(error, DeadlineExceededError):
            return ""
        return _waits([*ended, *self.channel.pending()])

    def blame(self, error: BaseException) -> None:
        """Names the cause of an end that was told before it."""
        with self._lock:
            if isinstance(self._cause, DerivedError):
                self._cause = error

    @property
    def is_ending(self) -> bool:
        """Whether the step ends with an error."""
        return self._cause is not None

    def begun(self) -> None:
        """Notes that a partition has begun on its thread."""
        with self._lock:
            self.step.unbegun -= 1

    def come_to_rest(self) -> None:
        """Notes that a thread writes no more."""
        with self._lock:
            self._writing -= 1
            is_last = not self._writing
        if is_last:
            for one in self.runs:
                one.rest.wake()

    def are_at_rest(self) -> bool:
        """Whether no thread writes any more."""
        return not self._writing

    def ended(self) -> None:
        """Notes that a thread has left the step."""
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._over.wake()

    def _has_ended(self) -> bool:
        return not self._left

    def finish(self) -> dict[int, Any]:
        """Waits for all threads; returns the fetched values, or raises what one has raised."""
        try:
            while self._left and self._cause is None:
                self._over.wait(lambda: self._has_ended() or self.is_ending, self.gate, None)
        except BaseException as e:
            self.failed(e)
        if self._left:
            self._over.wait_on(self._has_ended)
        self.runs.clear()
        if self._cause is not None:
            self._raise_cause()
        return self.fetched

    def close(self) -> None:
        """Notes that it has ended well, and is ended by nothing more, or raises what has ended it.

        After `finish`, for a step whose values others must have heard of first.
        """
        with self._lock:
            self._is_closed = self._cause is None
        self._raise_cause()

    def _raise_cause(self) -> None:
        if self._cause is None:
            return
        self._over.wait_on(lambda: self._is_explained)  # by the thread that ends the step
        error, self._cause = self._cause, None
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, and so the values of the step


class _PartRun:
    """Runs one partition of a step.

    Attributes:
        step: What it does of the step; None before it has begun.
        rest: Where its thread waits until none writes any more.
    """

    def __init__(
        self,
        shared: SplitStep,
        part: CompiledPartition,
        function: Function,
        feeds: tuple[Any, ...],
        states: tuple[Any, ...],
    ) -> None:
        self.step: PartitionStep | None = None
        self.rest = Waiter()
        self._shared = shared
        self._part = part
        self._function = function
        self._feeds = feeds
        self._states = states

    def run(self) -> None:
        """Runs it, on the thread that calls this."""
        shared, part = self._shared, self._part
        me = get_ident()
        around = steps_of_threads.get(me)
        step = PartitionStep(shared.step, part, shared.channel, me)
        step.takes_turns = shared.takes_turns
        self.step = step
        steps_of_threads[me] = step
        shared.begun()
        feeds, self._feeds = self._feeds, ()
        try:
            if shared.is_ending:
                raise DerivedError("another partition of the step has failed")
            with np.errstate(all="ignore"):
                values = self._function(shared.gate, shared.run, feeds, self._states)
            shared.fetched.update(zip(part.gives, values, strict=True))
        except EndedWait as e:
            shared.failed(e.error, e.pending)
        except BaseException as e:
            shared.failed(_located(part, e))
        finally:
            shared.come_to_rest()
            if shared.is_ending:
                # A group on several devices has been written by then as far as it will be.
                self.rest.wait_on(shared.are_at_rest)
                step.undo()
            step.has_ended = True
            if around is None:
                del steps_of_threads[me]
            else:
                steps_of_threads[me] = around
            if shared.gate.raised:
                shared.gate.left(step)
            shared.ended()


def _located(part: CompiledPartition, error: BaseException) -> BaseException:
    """Returns an error of a partition with the invocation that raised it, where there is one."""
    if isinstance(error, Exception) and not isinstance(error, InvocationError | DerivedError):
        invocation = part.executable.failed(error)
        if invocation is not None:
            located = InvocationError(invocation, error)
            located.__cause__ = error
            return located
    return error


def _waits(pending: Sequence[Pending]) -> str:
    """Returns who waits for which device, as an error says it."""
    found = []
    for one in pending[:5]:
        sender, receiver, name = one.key.split(";", 2)
        waits, other = (sender, receiver) if one.is_producer else (receiver, sender)
        what = "to read" if one.is_producer else "to send"
        found.append(f'{waits} waited {one.seconds:.2f} s for {other} {what} "{name}"')
    more = len(pending) - len(found)
    return ", ".join(found) + (f" and {more} more" if more > 0 else "")


__all__ = ["DerivedError", "PartitionStep", "SplitFunction", "SplitStep"]
