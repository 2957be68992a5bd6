"""Sessions: where graphs run. `Session.run` is one step of a cached plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from flowscope.errors import (
    CancelledError,
    DeadlineExceededError,
    DTypeError,
    InvalidArgumentError,
    NestingError,
)
from flowscope.graph import default, providers
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.serialization.definition import GraphDef
from flowscope.graph.summary import counted
from flowscope.plan.partition.partitions import Mode
from flowscope.plan.plan import Plan
from flowscope.runtime.config import ConfigProto, RunMetadata, RunOptions, StepStats
from flowscope.runtime.devices.device import Device
from flowscope.runtime.devices.local_devices import local_devices
from flowscope.runtime.planning.calls import PlanCacheInfo, PreparedCall
from flowscope.runtime.planning.feeds import flatten_feeds, nbytes, stats
from flowscope.runtime.planning.fetches import structure_key
from flowscope.runtime.planning.partial_run import PartialRun, Pattern
from flowscope.runtime.planning.plan_cache import PlanCache
from flowscope.runtime.planning.planner import Planner
from flowscope.runtime.session import checks, engine, reruns, resource_lookup as states
from flowscope.runtime.session.callables import made_callable
from flowscope.runtime.session.controls import Controls
from flowscope.runtime.state.containers import Container
from flowscope.runtime.state.queue_state import QueueState
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.step.step import deadline_after
from flowscope.runtime.threads.freed_memory import keep_freed_memory
from flowscope.runtime.trace import clock_kernels as clock_kernels
from flowscope.runtime.trace.step_trace import StepTrace, Tracer
from flowscope.runtime.trace.tracers import tell_fetched
from flowscope.runtime.waits.gate_states import Preparation

if TYPE_CHECKING:
    from flowscope.debug import Debugger, Explanation, Variables
    from flowscope.runtime.planning.placement import Move, Placement
    from flowscope.runtime.session.remote import Remote, SessionTarget
    from flowscope.runtime.session.rounds import Rounds
    from flowscope.tracing import Recording

#: What makes a session's debugger; a higher floor fills it.
debuggers: list[Callable[..., Any]] = []

_ATOMS = frozenset({Tensor, Operation, str})


class Session(Controls):
    """Runs operations of a graph and keeps the values of its variables.

        with fs.Session() as sess:
            print(sess.run(y, {x: [[1.0, 2.0]]}))

    Several threads may run steps of one session at the same time.

    Args:
        target: "" for this process; else a cluster (`fs.cluster.connect`), or its `target`.
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
        self,
        target: str | bytes | SessionTarget = "",
        graph: Graph | None = None,
        config: ConfigProto | None = None,
    ) -> None:
        checks.check_arguments(graph, config, target)
        super().__init__(default.get_default_graph() if graph is None else graph, engine.current())
        keep_freed_memory()
        self.config = config or ConfigProto()
        pool = self.engine.pool
        make_tasks = pool.tasks if self.config.overlaps else None
        self.devices: tuple[Device, ...] = local_devices(self.config, pool.parallel_for, make_tasks)
        #: The cluster that it runs on; None for this process.
        self.cluster = checks.cluster_of(target, self.engine, self.config) if target else None
        self._remote = None if self.cluster is None else self._join(self.cluster)
        if self.config.intra_op_parallelism_threads:
            from flowscope.runtime.threads import blas  # at need: it looks at all loaded libraries

            blas.limit_threads(self.config.intra_op_parallelism_threads)
            self.engine.pool.limit(self.config.intra_op_parallelism_threads)
        self._container = Container()
        growth = self.engine.growth_of(self.graph)
        own = [d for d in self.devices if not (self._remote and self._remote.is_elsewhere(d.name))]
        self._planner = Planner(self.graph, self.config, own, self._state, growth, self._remote)
        self._calls = self._planner.calls
        self._patterns = PlanCache(self.config.plan_cache_size, Pattern.count_nodes)
        self._contexts: list[AbstractContextManager[Any]] = []
        #: Who wants its steps traced.
        self.tracers: tuple[Tracer, ...] = ()
        #: Has some steps traced for `RunMetadata.cost_graph`; None for none.
        self._cost_model = _cost_model(self.config)
        if self._cost_model is not None:
            self.tracers = (self._cost_model,)
        #: Sessions are numbered as they are made.
        self.number = self.engine.opened(self)

    def _join(self, cluster: SessionTarget) -> Remote:
        """Makes this process a task of a cluster; takes the devices of the others."""
        remote = cluster.open(self)
        for device in self.devices:
            device.belong_to(remote.task)
        self.devices = (*self.devices, *remote.devices)
        return remote

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

        Example:
            >>> fs.Session().run({"three": fs.constant(1.0) + 2.0})
            {'three': np.float32(3.0)}
        """
        __tracebackhide__ = True
        config = self.config
        if (
            options is not None
            or run_metadata is not None
            or config.operation_timeout_in_ms
            or self.tracers
        ):
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
            apart = flatten_feeds(feed_dict)
            if apart is not None:
                return self.run(fetches, apart)
            call = self._call(fetches, feed_dict or (), config.mode)
        if feed_dict:
            feeds = tuple([c(v) for c, v in zip(call.converters, feed_dict.values(), strict=True)])
            values = self._step(call, feeds)
        else:
            values = self._step(call, ())
        return values[0] if call.single else call.rebuild(values)

    def _run_observed(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        """Runs with a timeout, or tells about the run."""
        __tracebackhide__ = True
        start = time.perf_counter_ns()
        checks.check_options(options, run_metadata)
        deadline = self._deadline(options)
        checks.check_feed_dict(feed_dict)
        apart = flatten_feeds(feed_dict)
        given = feed_dict or {} if apart is None else apart
        misses = self._calls.misses
        mode = (options and options.mode) or self.config.mode
        call = self._call(fetches, given, mode, deadline)
        was_cached = misses == self._calls.misses
        values = tuple(given.values())
        return self._observed(call, values, options, run_metadata, start, was_cached, deadline)

    def _observed(
        self,
        call: PreparedCall,
        given: tuple[Any, ...],
        options: RunOptions | None,
        run_metadata: RunMetadata | None,
        start: int,
        was_cached: bool,
        deadline: tuple[int, int] | None,
        rounds: Rounds | None = None,
    ) -> Any:
        __tracebackhide__ = True
        tracers = [t for t in self.tracers if t.wants(call.plan)]
        trace: StepTrace | None = None
        if tracers or (options is not None and options.trace_level):
            trace = call.trace_from(start)
            start = trace.called
        try:
            feeds = tuple([c(v) for c, v in zip(call.converters, given, strict=True)])
            step_start = time.perf_counter_ns()
            traced = call
            if trace is not None:
                trace.fed = step_start
                traced = call.traced(trace)
            values = self._step(traced, feeds, deadline=deadline, rounds=rounds)
            step_ns = time.perf_counter_ns() - step_start
            result = values[0] if call.single else call.rebuild(values)
            tell_fetched(self.tracers, trace, call.plan, self.steps, values)
        finally:
            if trace is not None:
                trace.done = time.perf_counter_ns()
                for tracer in tracers:
                    tracer.take(trace)
                trace.fetched = ()
        if run_metadata is not None:
            run_metadata.plan = call.plan
            wants_graphs = options is not None and options.output_partition_graphs
            run_metadata.partition_graphs = [call.plan.program.text()] if wants_graphs else []
            run_metadata.cost_graph = None
            if trace is not None and self._cost_model in tracers:
                from flowscope.runtime.trace.cost_model import (
                    cost_graph_of,  # few sessions have one
                )

                run_metadata.cost_graph = cost_graph_of(trace)
            run_metadata.step_stats = StepStats(
                total_ns=time.perf_counter_ns() - start,
                step_ns=step_ns,
                plan_was_cached=was_cached,
                feeds=stats(call.plan.request.feeds, given, feeds),
                fetched_bytes=sum(nbytes(v) for v in values),
                trace=trace,
            )
        return result

    def _deadline(self, options: RunOptions | None = None) -> tuple[int, int] | None:
        """Returns when a call of the user's that begins now is to end; see `Step.deadline`."""
        own = options.timeout_in_ms if options is not None else 0
        return deadline_after(own or self.config.operation_timeout_in_ms)

    def _call(
        self, fetches: Any, feeds: Any, mode: Mode, deadline: tuple[int, int] | None = None
    ) -> PreparedCall:
        __tracebackhide__ = True
        self._check_open()
        key = checks.key_of(fetches, feeds, mode)
        call = self._planner.known(key)
        if call is None:
            given = tuple(feeds.values()) if isinstance(feeds, Mapping) else ()
            try:
                with Preparation(self.gate, deadline, begins_step=True):
                    call = self._planner.call(key, fetches, key[1], mode, given)
            except (CancelledError, DeadlineExceededError) as e:
                self._note_end(e)
                raise
        reruns.initialize(self, call)
        return call

    # -- variables ------------------------------------------------------------------------------

    def variable_state(self, handle: Tensor) -> VariableState:
        """Returns where the value of the variable with this handle is kept."""
        device = self._planner.placements.get(handle.op.id, "")
        definition = handle.op.definition
        if self.graph.is_reshaped(handle.op):
            definition = definition.opened()
        return self._planner.state_at(definition, device)  # type: ignore[no-any-return]

    def _state(self, handle: Any) -> Any:
        container, name = self._container, handle.container
        if name:
            container = self.engine.containers.named(name)
        return states.state_of(self.graph, container, handle)

    @staticmethod
    def reset(
        target: str | bytes | SessionTarget = "",
        containers: Iterable[str] | None = None,
        config: Any = None,
    ) -> None:
        """Drops the values in the named containers (all by default); with a target, its workers'.

        Sessions stay open, unlike in TensorFlow: they find these variables without a value.
        """
        checks.check_arguments(None, config)
        if isinstance(containers, str):
            raise DTypeError(f"expected a list of containers' names, got {containers!r}")
        current = engine.current()
        cluster = checks.cluster_of(target, current, config or ConfigProto()) if target else None
        (current.containers if cluster is None else cluster).reset(containers)

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
        return made_callable(self, fetches, feed_list, accept_options)

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
        step = partial(self._step, deadline=self._deadline())
        return handle.go_on(fetches, flatten_feeds(feed_dict) or feed_dict or {}, step)

    def plan(self, fetches: Any, feeds: Any = ()) -> Plan:
        """Returns the plan of `run(fetches, ...)` with these feeds, without running it."""
        return self._call(fetches, feeds, self.config.mode).plan

    # -- devices --------------------------------------------------------------------------------

    def placement(self, fetches: Any, feeds: Any = (), anew: bool = False) -> Placement:
        """Returns where the operations of `run(fetches, ...)` run, why, and what it costs there.

        Args:
            fetches: As in `run`.
            feeds: What is fed: tensors, or values by tensor, whose shapes costs then start from.
                Without values the shapes count that were fed when a plan was made last.
            anew: Where the session places by cost: whether operations that have a place already
                are placed again, by the costs of now. Steps run so from then on.

        Returns:
            A tuple of records with `name`, `type`, `requested`, `device`, `reason` and
            `candidates`; its `predicted_s`, `moved` and `text()` tell about all of them.
        """
        from flowscope.runtime.planning.placement import placement

        with Preparation(self.gate, self._deadline()):
            return placement(self, fetches, feeds, anew)

    def predict_move(self, op_or_scope: Any, device: Any, fetches: Any, feeds: Any = ()) -> Move:
        """Predicts how `move` changes the steps of some fetches; changes nothing.

        Args:
            op_or_scope, device: As in `move`.
            fetches, feeds: As in `placement`.

        Returns:
            Predicted seconds of a step before and after, the bytes of variables that go along, and
            `refused`: why it cannot be, or None.
        """
        from flowscope.runtime.planning.placement import predict_move

        with Preparation(self.gate, self._deadline()):
            return predict_move(self, op_or_scope, device, fetches, feeds)

    def move(self, op_or_scope: Any, device: Any) -> Move:
        """Moves operations to another device, as if they were built there.

        Plans that have them are made anew when they are used next; steps that run finish on theirs.
        A variable takes along its value and what touches it. Where a notebook cell is run again,
        what its code asks for counts.

        Args:
            op_or_scope: An operation, tensor or variable, its name, or the name of a scope; a list
                of these moves as a whole. With a branch or a loop goes what is in it.
            device: A name that fits a device of the session.

        Returns:
            What was predicted for the plan that was made last of those that have the operations.

        Raises:
            InvalidArgumentError: if there is no such device or operation, or if a kernel, another
                wish or what operations share forbids it; nothing is changed then.
        """
        from flowscope.runtime.planning.placement import move

        with Preparation(self.gate, self._deadline()):
            return move(self, op_or_scope, device)

    @property
    def plan_cache(self) -> PlanCacheInfo:
        """How the cache of plans does: a program that plans in each step is slow."""
        calls = self._calls
        started = self.steps + self._failed
        return PlanCacheInfo(
            max(0, started - calls.misses), calls.misses, calls.size, calls.max_size
        )

    @property
    def placements(self) -> dict[int, str]:
        """Device of each operation that was planned, by id."""
        return self._planner.placements

    @property
    def queues(self) -> dict[int, QueueState]:
        """The queues that steps use, by the ids of the operations of their handles."""
        return dict(self._planner.queues)

    @property
    def planner(self) -> Planner:
        """What plans for it."""
        return self._planner

    @property
    def is_debugged(self) -> bool:
        """Whether somebody has asked for its debugger."""
        return "debug" in vars(self)

    @cached_property
    def debug(self) -> Debugger:
        """Breakpoints, and what can be seen and done where steps are held at them."""
        providers.load("debuggers")
        found: Debugger = debuggers[-1](self)
        return found

    def explain(self, op: Any, recording: Recording | None = None) -> Explanation:
        """Explains an operation in short sentences, with the values of a step.

            print(sess.explain("loss"))

        What its op type computes, its inputs and outputs with their values, what became of it in
        the latest plan, its device, its cost, the line that made it, its gradient, and what the
        loop around it does with it. Values are those of the step that is held, else those that
        `Debugger.record` kept last; variables and constants are always known.

        Args:
            op: An operation, tensor or variable of the graph, or its name.
            recording: What `fs.profile` recorded: the cost is then what was measured.

        Raises:
            NotFoundError: if the graph has nothing of this name.
            GraphError: if it belongs to another graph.
            DTypeError: if it is something else.
        """
        return self.debug.explain(op, recording)

    def variables(self, scope: str | None = None, statistics: bool = False) -> Variables:
        """Returns the variables of the graph with what the session keeps of them.

            print(sess.variables("encoder", statistics=True))

        An optimizer's slots stand behind the variable that they accompany. Variables on workers of
        a cluster are asked of these; who does not answer is said. A step that runs is not held up,
        and no value is seen that is half written.

        Args:
            scope: A regular expression that names must match from their beginnings.
            statistics: Whether numbers of the values are told, too: how many are finite, least,
                mean and largest one, and a histogram; of large values, of some elements that lie
                evenly in them. A value of over 4 MB on a worker is not looked at.
        """
        with Preparation(self.gate, self._deadline()):
            return self.debug.variables(scope, statistics)

    # -- life -----------------------------------------------------------------------------------

    @property
    def sess_str(self) -> str:
        """The target."""
        return "" if self.cluster is None else self.cluster.target

    @property
    def lost_tasks(self) -> frozenset[str]:
        """The tasks of its cluster that had values of the session and were lost since it began."""
        return frozenset() if self._remote is None else frozenset(self._remote.lost_tasks)

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

        Steps of other threads raise CancelledError at a safepoint, or end; later ones are refused.
        """
        self._closed = True
        self.engine.closed(self)
        self.gate.request("close")
        if self._remote is not None:
            self._remote.close()
        self._calls.drop()
        self._patterns.drop()
        if not self.gate.inside:
            self._container.clear()  # otherwise a step may still read: it goes when that ends
        self._container = Container()

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


def _cost_model(config: ConfigProto) -> Tracer | None:
    if config.graph_options.build_cost_model <= 0:
        return None
    from flowscope.runtime.trace.cost_model import CostModel  # few sessions have one

    return CostModel(config.graph_options)


__all__ = ["Session"]
