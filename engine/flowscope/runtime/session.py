"""Sessions: where graphs run. `Session.run` is one step of a cached plan."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from flowscope.errors import (
    CancelledError,
    DTypeError,
    GraphError,
    InvalidArgumentError,
    NestingError,
)
from flowscope.graph import default
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor, runner
from flowscope.graph.serialization.definition import GraphDef
from flowscope.graph.summary import counted
from flowscope.ops.host.py_functions import callers, starters
from flowscope.plan.partitions import Mode
from flowscope.plan.plan import Plan
from flowscope.runtime import (
    checks,
    clock_kernels as clock_kernels,  # registers what reads the clock
    engine,
    host_calls,
    interrupt,
    reruns,
    resource_lookup as states,
)
from flowscope.runtime.calls import Call, PlanCacheInfo
from flowscope.runtime.config import ConfigProto, RunMetadata, RunOptions, StepStats
from flowscope.runtime.devices import Device
from flowscope.runtime.failures import FailureNote, located_failure
from flowscope.runtime.feeds import nbytes, stats, taken_apart, traced
from flowscope.runtime.fetches import structure_key
from flowscope.runtime.frames import Frames, running
from flowscope.runtime.gate import Gate
from flowscope.runtime.interrupt import MAIN_THREAD
from flowscope.runtime.local_devices import local_devices
from flowscope.runtime.partial_run import PartialRun, Pattern
from flowscope.runtime.plan_cache import Recent
from flowscope.runtime.planner import Planner
from flowscope.runtime.predicates import NEXT_ITERATION, NEXT_OP
from flowscope.runtime.queue_state import QueueState
from flowscope.runtime.resources import Container, VariableState
from flowscope.runtime.step import Step

_ATOMS = frozenset({Tensor, Operation, str})


class Session:
    """Runs operations of a graph and keeps the values of its variables.

        with fs.Session() as sess:
            print(sess.run(y, {x: [[1.0, 2.0]]}))

    Several threads may run steps of one session at the same time.

    Args:
        target: "" for this process.
        graph: The graph; the default graph if None.
        config: Options.

    Attributes:
        graph: The graph.
        engine: Owns what sessions share.
        steps: Steps that were finished.
        busy_ns: Nanoseconds spent in them, without those they were paused.
        gate: Pauses, continues and stops steps.
    """

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        checks.check_arguments(target, graph, config)
        self.graph = graph if graph is not None else default.get_default_graph()
        self.config = config or ConfigProto()
        self.engine = engine.current()
        self.devices: tuple[Device, ...] = local_devices(self.config, self.engine.pool.share)
        if self.config.intra_op_parallelism_threads:
            from flowscope.runtime import blas  # at need: it looks at all loaded libraries

            blas.limit_threads(self.config.intra_op_parallelism_threads)
            self.engine.pool.limit(self.config.intra_op_parallelism_threads)
        self.gate = Gate()
        self.steps = 0
        self.busy_ns = 0
        self._failed = 0
        #: How many attempts there were when a step was stopped last.
        self._stopped = -1
        self._failure = FailureNote()
        self._latest: Call | None = None
        self._container = Container()
        self._planner = Planner(self.graph, self.config, self.devices, self._state)
        self._calls = self._planner.calls
        self._patterns = Recent(self.config.plan_cache_size, Pattern.count_nodes)
        self._closed = False
        self._runs = itertools.count()
        #: Stands in for the graph's seed while none is set: two sessions draw different numbers.
        self._entropy = int.from_bytes(os.urandom(8))
        self._contexts: list[AbstractContextManager[Any]] = []
        #: Sessions are numbered as they are made.
        self.number = self.engine.opened(self)

    # -- running --------------------------------------------------------------------------------

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs what `fetches` needs, once, and returns its values.

        Args:
            fetches: A tensor, an operation, a variable, a name, or a (nested) list, tuple, named
                tuple or dict of them.
            feed_dict: Values by tensor (or variable, or tensor's name): they take the place of what
                the graph would compute. Arrays that fit are used without a copy. A tuple of tensors
                (a recurrent cell's state) takes a tuple of values.
            options: Options of this run.
            run_metadata: Filled with what the run can tell about itself.

        Returns:
            The same structure with arrays in place of tensors (NumPy scalars for rank 0) and None
            in place of operations. The arrays are the caller's own.

        Raises:
            InvalidArgumentError: if a fetch or feed does not fit, or an operation fails.
            FailedPreconditionError: if a variable has no value yet, before anything runs.
            CancelledError: if the step was stopped.
            DeadlineExceededError: if it has a timeout and takes longer.
        """
        __tracebackhide__ = True
        config = self.config
        if options is not None or run_metadata is not None or config.operation_timeout_in_ms:
            return self._run_observed(fetches, feed_dict, options, run_metadata)
        try:
            fetch_key = fetches if type(fetches) in _ATOMS else structure_key(fetches)
            feed_key = tuple(feed_dict) if feed_dict else ()
            call = self._calls.get((fetch_key, feed_key, config.mode))
        except TypeError:
            checks.check_feed_dict(feed_dict)
            raise checks.bad_key(fetches) from None
        if call is None or (call.edits != self.graph.edits and not call.is_current(self.graph)):
            checks.check_feed_dict(feed_dict)
            apart = taken_apart(feed_dict)
            if apart is not None:
                return self.run(fetches, apart)
            call = self._call(fetches, feed_dict or (), config.mode)
        if feed_dict:
            feeds = tuple([c(v) for c, v in zip(call.converters, feed_dict.values(), strict=True)])
            values = self._step(call, feeds)
        else:
            values = self._step(call, ())
        return values[0] if call.single else call.rebuild(values)

    def _step(
        self, call: Call, feeds: tuple[Any, ...], number: int | None = None, timeout_ms: int = 0
    ) -> tuple[Any, ...]:
        """Runs one step: the hot path. Nothing here that could be done once."""
        __tracebackhide__ = True
        gate = self.gate
        inside = gate.inside
        me = get_ident()
        on_main = me == MAIN_THREAD
        if on_main:
            interrupt.enter(gate)
        outer = inside.get(me)
        inside[me] = step = Step(call, outer, me)
        self._latest = call
        start = time.perf_counter_ns()
        limited = self._limit(step, timeout_ms) if timeout_ms else None
        try:
            function = call.function
            if gate.raised:
                self._check_open()
                if gate.hold(-1):
                    function = call.by_op
            if not call.is_checked:
                call.check_initialized()
            if number is None:
                number = next(self._runs)
            step.number = number
            with np.errstate(all="ignore"):
                values = function(
                    gate, (self.graph.seed, self._entropy, number), feeds, call.resources
                )
            if gate.raised:
                gate.hold(-2)
            if call.moves is not None:
                call.moves.settle()
            self.steps += 1
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
            raise error from cause
        finally:
            # One bytecode reads and adds: several threads count here without a lock.
            self.busy_ns += time.perf_counter_ns() - start - step.waited_ns
            if limited is not None:
                limited()
            if outer is None:
                del inside[me]
            else:
                inside[me] = outer
            if gate.raised:
                gate.left(step)
            if on_main:
                interrupt.leave()
        return values

    def _limit(self, step: Step, timeout_ms: int) -> Callable[[], None]:
        """Gives a step a deadline, by which its functions end too; returns what undoes that."""
        gate, me = self.gate, step.thread
        gate.limit(step, timeout_ms)
        caller = callers.get(me)
        callers[me] = partial(host_calls.call_and_wait, gate, self.engine.host_threads)

        def unlimit() -> None:
            if caller is None:
                del callers[me]
            else:
                callers[me] = caller

        return unlimit

    def _run_observed(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        """Runs with a timeout, or tells about the run."""
        __tracebackhide__ = True
        start = time.perf_counter_ns()
        checks.check_options(options, run_metadata)
        checks.check_feed_dict(feed_dict)
        apart = taken_apart(feed_dict)
        given = feed_dict or {} if apart is None else apart
        misses = self._calls.misses
        call = self._call(fetches, given, (options and options.mode) or self.config.mode)
        was_cached = misses == self._calls.misses
        return self._observed(call, tuple(given.values()), options, run_metadata, start, was_cached)

    def _observed(
        self,
        call: Call,
        given: tuple[Any, ...],
        options: RunOptions | None,
        run_metadata: RunMetadata | None,
        start: int,
        was_cached: bool,
    ) -> Any:
        __tracebackhide__ = True
        feeds = tuple([c(v) for c, v in zip(call.converters, given, strict=True)])
        step_start = time.perf_counter_ns()
        values = self._step(call, feeds, timeout_ms=self._timeout_ms(options))
        step_ns = time.perf_counter_ns() - step_start
        if run_metadata is not None:
            run_metadata.plan = call.plan
            wants_graphs = options is not None and options.output_partition_graphs
            run_metadata.partition_graphs = [call.plan.program.text()] if wants_graphs else []
            run_metadata.step_stats = StepStats(
                total_ns=time.perf_counter_ns() - start,
                step_ns=step_ns,
                plan_was_cached=was_cached,
                feeds=stats(call.plan.request.feeds, given, feeds),
                fetched_bytes=sum(nbytes(v) for v in values),
                dev_stats=traced(call.plan) if options and options.trace_level else (),
            )
        return values[0] if call.single else call.rebuild(values)

    def _timeout_ms(self, options: RunOptions | None) -> int:
        own = options.timeout_in_ms if options is not None else 0
        return own or self.config.operation_timeout_in_ms

    def _call(self, fetches: Any, feeds: Any, mode: Mode) -> Call:
        __tracebackhide__ = True
        self._check_open()
        key = checks.key_of(fetches, feeds, mode)
        call = self._planner.call(key, fetches, key[1], mode)
        reruns.initialize(self, call)
        return call

    def _check_open(self) -> None:
        if self._closed:
            raise GraphError(
                "this session is closed (as at the end of its `with` block): open another one"
            )

    # -- variables ------------------------------------------------------------------------------

    def variable_state(self, handle: Tensor) -> VariableState:
        """Returns where the value of the variable with this handle is kept."""
        return self._state(handle.op.definition)  # type: ignore[no-any-return]

    def _state(self, handle: Any) -> Any:
        container, name = self._container, handle.container
        if name:
            container = self.engine.containers.named(name)
        return states.state_of(self.graph, container, handle)

    @staticmethod
    def reset(
        target: str = "", containers: Iterable[str] | None = None, config: Any = None
    ) -> None:
        """Drops the values in the named containers (all named ones by default).

        Sessions stay open, unlike in TensorFlow: they find these variables without a value.
        """
        checks.check_arguments(target, None, config)
        if isinstance(containers, str):
            raise DTypeError(f"expected a list of containers' names, got {containers!r}")
        engine.current().containers.reset(containers)

    # -- more ways to run -----------------------------------------------------------------------

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """Returns a function that runs `fetches`, given the values of `feed_list` as arguments.

        Args:
            fetches: As in `run`.
            feed_list: Tensors, one per argument.
            accept_options: Whether it takes `options` and `run_metadata` by keyword.
        """
        feed_list = checks.key_of(fetches, feed_list or (), self.config.mode)[1]
        call = self._call(fetches, feed_list, self.config.mode)

        def current() -> Call:
            nonlocal call
            if call.edits != self.graph.edits and not call.is_current(self.graph):
                call = self._call(fetches, feed_list, self.config.mode)
            return call

        def run(*values: Any) -> Any:
            now = current()
            if len(values) != len(feed_list):
                raise InvalidArgumentError(f"expected {len(feed_list)} values, got {len(values)}")
            if self.config.operation_timeout_in_ms:
                return self._observed(now, values, None, None, 0, True)
            feeds = tuple([c(v) for c, v in zip(now.converters, values, strict=True)])
            return now.rebuild(self._step(now, feeds))

        def run_with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            start = time.perf_counter_ns()
            checks.check_options(options, run_metadata)
            if len(values) != len(feed_list):
                raise InvalidArgumentError(f"expected {len(feed_list)} values, got {len(values)}")
            misses = self._calls.misses
            now = current()
            was_cached = misses == self._calls.misses
            return self._observed(now, values, options, run_metadata, start, was_cached)

        return run_with_options if accept_options else run

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> PartialRun:
        """Returns the handle of a step whose feeds come in several calls of `partial_run`.

        Args:
            fetches: Everything that will be fetched.
            feeds: Everything that will be fed.
        """
        self._check_open()
        mode = self.config.mode
        key = checks.key_of(fetches, feeds or (), mode)
        pattern = self._patterns.find(key)
        if pattern is None or not pattern.is_current(self.graph):
            self._patterns.forget_stale(self.graph)
            pattern = Pattern(self.graph, self._planner, fetches, key[1], mode)
            self._patterns.add(key, pattern)
        return PartialRun(pattern, next(self._runs))

    def partial_run(self, handle: PartialRun, fetches: Any, feed_dict: Any = None) -> Any:
        """Goes on with a step: gives it some of its feeds, fetches some of its values.

        All that the feeds given so far allow runs now, each operation once, and is remembered. A
        call that is refused leaves the step as it is; one that fails while it runs ends it.

        Args:
            handle: What `partial_run_setup` returned.
            fetches: As in `run`: some of those that were named there, each once.
            feed_dict: Values for some of the tensors named there, each once.

        Raises:
            InvalidArgumentError: if something was not named or comes a second time, or a fetch
                needs a feed that was not given yet, or one that others must be computed before.
        """
        __tracebackhide__ = True
        self._check_open()
        if not isinstance(handle, PartialRun):
            raise InvalidArgumentError(
                f"expected what partial_run_setup returned as handle, got {handle!r}"
            )
        if handle.pattern.planner is not self._planner:
            raise InvalidArgumentError("the handle belongs to another session")
        checks.check_feed_dict(feed_dict)
        return handle.go_on(fetches, taken_apart(feed_dict) or feed_dict or {}, self._stage)

    def _stage(self, call: Call, feeds: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        __tracebackhide__ = True
        return self._step(call, feeds, number, self.config.operation_timeout_in_ms)

    def plan(self, fetches: Any, feeds: Any = ()) -> Plan:
        """Returns the plan of `run(fetches, ...)` with these feeds, without running it."""
        return self._call(fetches, feeds, self.config.mode).plan

    @property
    def plan_cache(self) -> PlanCacheInfo:
        """How the cache of plans does: a program that plans in each step is slow."""
        calls = self._calls
        started = self.steps + self._failed
        return PlanCacheInfo(
            max(0, started - calls.misses), calls.misses, calls.size, calls.max_size
        )

    # -- control --------------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """How many threads have a step on its way."""
        return len(self.gate.inside)

    @property
    def is_stopped(self) -> bool:
        """Whether the last step was stopped or interrupted, and none runs since."""
        return self._stopped == self.attempts and not self.gate.inside

    @property
    def placements(self) -> dict[int, str]:
        """Device of each operation that was planned, by id."""
        return self._planner.placements

    @property
    def queues(self) -> dict[int, QueueState]:
        """The queues that steps use, by the ids of the operations of their handles."""
        return dict(self._planner.queues)

    @property
    def latest_plan(self) -> Plan | None:
        """The plan of the step that was run last; None before the first."""
        return None if self._latest is None else self._latest.plan

    def pause(self) -> None:
        """Makes running steps wait at their next safepoints, and others before they start."""
        self.gate.request("pause")

    def resume(self) -> None:
        """Lets paused steps go on."""
        self.gate.request("resume")

    def step_op(self) -> None:
        """Lets a paused step run one more operation; one that runs is paused before its next."""
        self.gate.run_until(NEXT_OP)

    def step_iteration(self) -> None:
        """Lets a step run until the next iteration of a loop ends, and holds it there."""
        self.gate.run_until(NEXT_ITERATION)

    def pace(self, seconds: float) -> None:
        """Sets how long steps wait before each operation: slow motion; 0 for full speed.

        Raises:
            InvalidArgumentError: if it is negative or not finite.
        """
        if not 0 <= seconds < math.inf:
            raise InvalidArgumentError(f"expected seconds of 0 or more, got {seconds}")
        self.gate.set_pace(float(seconds))

    def frames(self) -> Frames:
        """Returns the loops that run now, with their iterations; its text is a table.

        Steps tell at their next safepoints; what takes longer than a second to come to one is
        missing.
        """
        self.gate.look(wait_s=1.0)
        seen, _ = self.gate.report()
        return running(seen.values())

    def stop(self) -> None:
        """Ends the running steps, or the next one, at a safepoint: they raise CancelledError."""
        self.gate.request("stop")

    # -- life -----------------------------------------------------------------------------------

    @property
    def sess_str(self) -> str:
        """The target."""
        return ""

    @property
    def graph_def(self) -> GraphDef:
        """The graph as data."""
        return self.graph.as_graph_def()

    def list_devices(self) -> list[Device]:
        """Returns the devices, the CPU first."""
        return list(self.devices)

    def as_default(self) -> AbstractContextManager[Session]:
        """Returns a context manager that makes this the default session.

        The default graph stays what it is; `with session:` changes both, and closes the session.
        """
        return default.use_session(self)

    def close(self) -> None:
        """Ends the session: its variables' values and plans are dropped.

        Steps that other threads are running raise CancelledError at their next safepoint, or
        finish; later ones are refused.
        """
        self._closed = True
        self.engine.closed(self)
        self.gate.request("close")
        self._calls.drop()
        self._patterns.drop()
        if not self.gate.inside:
            self._container.clear()  # otherwise a step may still read: it goes when that ends
        self._container = Container()

    @property
    def failure(self) -> tuple[int | None, str] | None:
        """The number of the operation at which the latest step failed, and what was said."""
        return None if self.gate.inside else self._failure.told(self.attempts)

    @property
    def attempts(self) -> int:
        """Steps that were finished or have failed."""
        return self.steps + self._failed

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __enter__(self) -> Session:
        if self._contexts:
            raise NestingError(
                "`with session:` is open already: use `with session.as_default():` inside it"
            )
        context = ExitStack()
        context.enter_context(self.graph.as_default())
        context.enter_context(self.as_default())
        self._contexts.append(context)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._contexts.pop().__exit__(*exc)
        self.close()

    def __repr__(self) -> str:
        devices = ", ".join(d.name.rpartition("/device:")[2] for d in self.devices)
        parts = [
            f"graph of {counted(len(self.graph), 'operation')}",
            f"on {devices}",
            f"{counted(self.steps, 'step')} done",
            counted(self._calls.size, "plan"),
        ]
        if self._closed or self.gate.state != "open":
            parts.append("closed" if self._closed else self.gate.state)
        return f"<fs.{type(self).__name__}: {', '.join(parts)}>"


def _run_in_default(fetch: Any, feed_dict: Any, session: Any) -> Any:
    session = session or default.get_default_session()
    if session is None:
        raise GraphError("no default session: use `with sess.as_default():` or pass session=")
    if session.graph is not fetch.graph:
        raise GraphError("the default session runs another graph: pass session=")
    return session.run(fetch, feed_dict)


def _start(function: Callable[[], Any]) -> host_calls.HostCall:
    return host_calls.HostCall(function, engine.current().host_threads)


runner.append(_run_in_default)
starters.append(_start)

__all__ = ["Session"]
