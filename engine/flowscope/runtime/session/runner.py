"""The runner: one step of a plan, the hot path of a session, and the count of them."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import CancelledError, GraphError, OpError
from flowscope.graph.current_step import steps_of_threads
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation
from flowscope.plan.plan import Plan
from flowscope.runtime.planning.calls import PreparedCall
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.session.helpers import Helpers
from flowscope.runtime.step.failures import FailureNote, located_failure
from flowscope.runtime.step.step import Step
from flowscope.runtime.threads import interrupt
from flowscope.runtime.threads.blas import one_thread
from flowscope.runtime.threads.interrupt import MAIN_THREAD
from flowscope.runtime.waits.gate import Gate

if TYPE_CHECKING:
    from flowscope.runtime.session.rounds import Rounds


class Runner:
    """Runs steps.

    Args:
        graph: The graph.
        engine: Owns what sessions share.

    Attributes:
        graph, engine: As above.
        steps: Steps that were finished.
        busy_ns: Nanoseconds spent in them, without those they were paused.
        gate: Pauses, continues and stops steps.
    """

    def __init__(self, graph: Graph, engine: Engine) -> None:
        self.graph = graph
        self.engine = engine
        self.gate = Gate()
        self.steps = 0
        self.busy_ns = 0
        self._failed = 0
        #: How many attempts there were when a step was stopped last.
        self._stopped = -1
        self._failure = FailureNote()
        self._latest: PreparedCall | None = None
        self._closed = False
        self._runs = itertools.count()
        #: The threads and hooks beside it.
        self.helpers = Helpers()
        #: How often operations have run in rounds.
        self.rounds_done: dict[Operation, Iterator[int]] = {}
        #: Stands in for the graph's seed while none is set: two sessions draw different numbers.
        self._entropy = int.from_bytes(os.urandom(8))

    def _step(
        self,
        call: PreparedCall,
        feeds: tuple[Any, ...],
        number: int | None = None,
        deadline: tuple[int, int] | None = None,
        rounds: Rounds | None = None,
    ) -> tuple[Any, ...]:
        """Runs one step: the hot path. Nothing here that could be done once.

        With `rounds` it may be run again and again, and each time counts as a step.
        """
        __tracebackhide__ = True
        gate = self.gate
        me = get_ident()
        on_main = me == MAIN_THREAD
        if on_main:
            interrupt.enter(gate)
        around = steps_of_threads.get(me)
        step = Step(call, around, gate, self.engine.host_threads, me)
        steps_of_threads[me] = step
        self._latest = call
        is_done = False
        start = time.perf_counter_ns()
        try:
            if deadline is not None:
                gate.limit(step, deadline)
            function = call.function
            if call.uses_blas:
                one_thread.enter()
                step.pool = self.engine.pool
            if gate.raised:
                self._check_open()
                step.inherit_limit()
                is_by_op = gate.hold(-1)  # breakpoints may have been set meanwhile
                function = call.by_op if is_by_op else call.function
            if not call.is_checked:
                call.check_initialized()
            if number is None:
                number = next(self._runs)
            step.number = number
            with np.errstate(all="ignore"):
                run: tuple[Any, ...] = (self.graph.seed, self._entropy, number)
                if rounds is None:
                    values = function(gate, run, feeds, call.resources)
                else:
                    values = self._rounds(step, function, run, rounds)
            if gate.raised and not step.is_settled:
                gate.hold(-2)
            self.steps += 1
            is_done = True
        except BaseException as e:
            self._failed += 1
            if isinstance(e, CancelledError) or not isinstance(e, Exception):
                self._stopped = self.attempts
            step.failed(e)
            if isinstance(e, interrupt.HandlerError):
                raise e.error from None
            if not isinstance(e, Exception):
                raise
            error, cause = located_failure(e, call.plan)
            self._failure.take(error, self.attempts)
            try:
                raise error from cause
            finally:
                del error, cause  # a traceback holds this frame, and so what the step has made
        finally:
            # One bytecode reads and adds: several threads count here without a lock.
            self.busy_ns += time.perf_counter_ns() - start - step.waited_ns
            step.has_ended = True
            if step.pool is not None:
                one_thread.leave()
                step.pool.products.settle()
            if around is None:
                del steps_of_threads[me]
            else:
                steps_of_threads[me] = around
            if gate.raised:
                gate.left(step)
            if on_main:
                interrupt.leave(step.failed if is_done and not step.is_settled else None)
        return values

    def _rounds(
        self, step: Step, function: Callable[..., Any], run: tuple[Any, ...], rounds: Rounds
    ) -> tuple[Any, ...]:
        """Runs a step's function once and as often as another round is wanted; see `Rounds`."""
        call, gate = step.call, self.gate
        seed, entropy, number = run
        place, goes_on, resources = rounds.place, rounds.goes_on, call.resources
        values: tuple[Any, ...] = function(gate, (seed, entropy, place(), number), (), resources)
        while not gate.raised and goes_on():
            self.steps += 1
            number = step.number = next(self._runs)
            if step.queues is not None:
                step.queues.begin()
            values = call.function(gate, (seed, entropy, place(), number), (), resources)
        return values

    def _note_end(self, error: OpError) -> None:
        """Notes that a stop or a deadline has ended what was prepared for a step, as its end."""
        self._failed += 1
        if isinstance(error, CancelledError):
            self._stopped = self.attempts
        self._failure.take(error, self.attempts)

    def _check_open(self) -> None:
        if self._closed:
            raise GraphError(
                "this session is closed (as at the end of its `with` block): open another one"
            )

    # -- what has run, and runs -----------------------------------------------------------------

    @property
    def attempts(self) -> int:
        """Steps that were finished or have failed."""
        return self.steps + self._failed

    @property
    def running(self) -> int:
        """How many steps are on their way, without those that run inside of others."""
        return sum(step.outer is None for step in self.gate.inside)

    @property
    def is_stopped(self) -> bool:
        """Whether the last step was stopped or interrupted, and none runs since."""
        return self._stopped == self.attempts and not self.gate.inside

    @property
    def failure(self) -> tuple[int | None, str] | None:
        """The number of the operation at which the latest step failed, and what was said."""
        return None if self.gate.inside else self._failure.told(self.attempts)

    @property
    def latest_plan(self) -> Plan | None:
        """The plan of the step that was run last; None before the first."""
        return None if self._latest is None else self._latest.plan


__all__ = ["Runner"]
