"""Sessions: where graphs run. `Session.run` is one step of a cached plan."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np

from flowscope.errors import (
    DTypeError,
    GraphError,
    InvalidArgumentError,
    OpError,
)
from flowscope.graph import default
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor, runner
from flowscope.graph.summary import counted
from flowscope.graph.written.definition import GraphDef
from flowscope.ops.state import ReadVariable
from flowscope.plan.plan import Mode, Plan, Request, make_plan
from flowscope.runtime import interrupt
from flowscope.runtime.config import ConfigProto, RunMetadata, RunOptions
from flowscope.runtime.devices import Device, local_devices
from flowscope.runtime.failures import located_failure
from flowscope.runtime.feeds import Converter, converter, without_slices
from flowscope.runtime.fetches import Flattened, Rebuild, structure_key
from flowscope.runtime.gate import Gate
from flowscope.runtime.generators import generator
from flowscope.runtime.resources import Container, VariableState, uninitialized

_ATOMS = frozenset({Tensor, Operation, str})
#: All sessions that are not closed, for views that look for one.
open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_session_numbers = itertools.count()
#: Named containers: they belong to the process and outlive sessions.
_named_containers: dict[str, Container] = {}


class Call:
    """One cached (fetches, feeds, mode): the plan and all that can be worked out before a step."""

    __slots__ = (
        "converters",
        "edits",
        "function",
        "is_checked",
        "names",
        "plan",
        "rebuild",
        "required",
        "resources",
        "single",
    )

    def __init__(
        self,
        plan: Plan,
        edits: int,
        converters: tuple[Converter, ...],
        rebuild: Rebuild,
        single: bool,
        resources: tuple[VariableState, ...],
        required: tuple[VariableState, ...],
    ) -> None:
        self.plan = plan
        #: How many edits of the graph it has seen: none of them concerns the plan.
        self.edits = edits
        self.function = plan.function
        self.converters = converters
        self.rebuild = rebuild
        #: Whether the fetch is one tensor, whose value is the result.
        self.single = single
        self.resources = resources
        self.required = required
        #: Whether the required variables were seen initialised: they stay so.
        self.is_checked = not required

    def is_current(self, graph: Graph) -> bool:
        """Whether the plan is not stale: no operation of it was edited since it was made."""
        edits = graph.edits
        if self.edits != edits:
            if not self.plan.operations.isdisjoint(graph.edited_since(self.edits)):
                return False
            self.edits = edits
        return True


class Session:
    """Runs operations of a graph and keeps the values of its variables.

        with fs.Session() as sess:
            print(sess.run(y, {x: [[1.0, 2.0]]}))

    Args:
        target: "" for this process.
        graph: The graph; the default graph if None.
        config: Options.

    Attributes:
        graph: The graph.
        steps: Steps that were finished.
        busy_ns: Nanoseconds spent in them, without those they were paused.
        gate: Pauses, continues and stops steps.
    """

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        _check_arguments(target, graph, config)
        self.graph = graph if graph is not None else default.get_default_graph()
        self.config = config or ConfigProto()
        self.devices: tuple[Device, ...] = local_devices(self.config.device_count)
        self.gate = Gate()
        self.steps = 0
        self.busy_ns = 0
        self.running = 0
        #: Device of each operation that was planned, by id.
        self.placements: dict[int, str] = {}
        self._container = Container()
        self._calls: dict[Any, Call] = {}
        self._closed = False
        #: Sessions are numbered as they are made.
        self.number = next(_session_numbers)
        self._runs = itertools.count()
        #: Stands in for the graph's seed while none is set: two sessions draw different numbers.
        self._entropy = int.from_bytes(os.urandom(8))
        self._planning = threading.Lock()
        self._contexts: list[AbstractContextManager[Any]] = []
        open_sessions.add(self)

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
                the graph would compute.
            options: Options of this run.
            run_metadata: Filled with what the run can tell about itself.

        Returns:
            The same structure with arrays in place of tensors (NumPy scalars for rank 0) and None
            in place of operations. The arrays are the caller's own.

        Raises:
            InvalidArgumentError: if a fetch or feed does not fit, or an operation fails.
            FailedPreconditionError: if a variable has no value yet, before anything runs.
            CancelledError: if the step was stopped.
        """
        __tracebackhide__ = True
        try:
            fetch_key = fetches if type(fetches) in _ATOMS else structure_key(fetches)
            mode = self.config.mode if options is None else options.mode or self.config.mode
            feed_key = tuple(feed_dict) if feed_dict else ()
            key = (fetch_key, feed_key, mode)
            call = self._calls.get(key)
        except TypeError:
            raise _bad_key(fetches, feed_dict) from None
        if call is None or (call.edits != self.graph.edits and not call.is_current(self.graph)):
            apart = without_slices(feed_dict)
            if apart is not None:
                return self.run(fetches, apart, options, run_metadata)
            call = self._plan(key, fetches, feed_dict or {}, mode)
        if feed_dict:
            feeds = tuple([c(v) for c, v in zip(call.converters, feed_dict.values(), strict=True)])
            values = self._step(call, feeds)
        else:
            values = self._step(call, ())
        if run_metadata is not None:
            run_metadata.plan = call.plan
        return values[0] if call.single else call.rebuild(values)

    def _step(self, call: Call, feeds: tuple[Any, ...]) -> tuple[Any, ...]:
        """Runs one step: the hot path. Nothing here that could be done once."""
        __tracebackhide__ = True
        gate = self.gate
        on_main = interrupt.enter(gate)
        self.running += 1
        start = time.perf_counter_ns() - gate.held_ns
        try:
            if gate.raised:
                gate.hold(-1, ())
            if self._closed:
                raise GraphError("this session is closed")
            if not call.is_checked:
                _check_initialized(call)
            number = next(self._runs)
            with np.errstate(all="ignore"):
                values = call.function(
                    gate, (self.graph.seed, self._entropy, number), feeds, call.resources
                )
            if gate.raised:
                gate.hold(-2, ())
        except Exception as e:
            error, cause = located_failure(e, call.plan)
            raise error from cause
        finally:
            self.busy_ns += time.perf_counter_ns() - gate.held_ns - start
            self.running -= 1
            if on_main:
                interrupt.leave()
        self.steps += 1
        return values

    def _plan(self, key: Any, fetches: Any, feed_dict: Any, mode: Mode) -> Call:
        __tracebackhide__ = True
        if self._closed:
            raise GraphError("this session is closed")
        if not isinstance(feed_dict, Mapping):
            raise _bad_key(fetches, feed_dict)
        if not len(self.graph):
            raise GraphError("the session's graph is empty: add operations to it, then run them")
        edits = self.graph.edits
        flat = Flattened(self.graph, fetches)
        fed = [self._fed(k) for k in feed_dict]
        if len(set(fed)) < len(fed):
            raise InvalidArgumentError("a tensor is fed twice")
        with self._planning:
            request = Request(
                flat.tensors,
                flat.targets,
                fed,
                mode=mode,
                devices=[d.spec for d in self.devices],
                soft_placement=self.config.allow_soft_placement,
                read=ReadVariable,
            )
            plan = make_plan(request, self.devices[0].xp, generator)
            placed = {op.id: n.device for n in plan.program.nodes for op in n.origins}
            self.placements.update(placed)
        if self.config.log_device_placement:
            for node in plan.program.nodes:
                print(f"{node.name}: {node.op.type}: {node.device} ({node.reason})")
        states = {h: self._state(h.op) for h in (*plan.region.handles, *plan.required)}
        call = Call(
            plan,
            edits,
            tuple(converter(t) for t in fed),
            flat.rebuild,
            not isinstance(fetches, list | tuple | Mapping) and len(flat.tensors) == 1,
            tuple(states[h] for h in plan.region.handles),
            tuple(states[h] for h in plan.required),
        )
        self._calls[key] = call
        return call

    def _fed(self, key: Any) -> Tensor:
        handle = getattr(key, "handle", None)
        try:
            tensor: Tensor = self.graph.as_graph_element(
                handle if isinstance(handle, Tensor) else key, allow_operation=False
            )
        except OpError as e:
            raise DTypeError(f"cannot feed {key!r}: {e.message}") from None
        if not self.graph.is_feedable(tensor):
            raise InvalidArgumentError(
                f'"{tensor.name}" stands inside a control-flow body and cannot be fed'
            )
        return tensor

    def _state(self, handle: Any) -> VariableState:
        container = self._container
        if handle.container:
            container = _named_containers.setdefault(handle.container, Container())
        return container.variable(handle.shared_name, handle.shape)

    # -- variables ------------------------------------------------------------------------------

    def variable_state(self, handle: Tensor) -> VariableState:
        """Returns where the value of the variable with this handle is kept."""
        return self._state(handle.op.definition)

    @staticmethod
    def reset(target: str = "", containers: Any = None, config: Any = None) -> None:
        """Drops the values in the named containers (all named ones by default)."""
        del target, config
        for name in list(_named_containers) if containers is None else containers:
            container = _named_containers.pop(name, None)
            if container is not None:
                container.clear()

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
        feed_list = list(feed_list or ())
        call = self._call(fetches, feed_list)

        def run(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            nonlocal call
            del options
            if call.edits != self.graph.edits and not call.is_current(self.graph):
                call = self._call(fetches, feed_list)
            converters = call.converters
            if len(values) != len(converters):
                raise InvalidArgumentError(f"expected {len(converters)} values, got {len(values)}")
            feeds = tuple([c(v) for c, v in zip(converters, values, strict=True)])
            out = call.rebuild(self._step(call, feeds))
            if accept_options and run_metadata is not None:
                run_metadata.plan = call.plan
            return out

        return run

    def plan(self, fetches: Any, feeds: Any = ()) -> Plan:
        """Returns the plan of `run(fetches, ...)` with these feeds, without running it."""
        return self._call(fetches, feeds).plan

    def _call(self, fetches: Any, feeds: Any) -> Call:
        key = (structure_key(fetches), tuple(feeds), self.config.mode)
        call = self._calls.get(key)
        if call is None or not call.is_current(self.graph):
            call = self._plan(key, fetches, dict.fromkeys(feeds), self.config.mode)
        return call

    # -- control --------------------------------------------------------------------------------

    def pause(self) -> None:
        """Makes the running step wait at its next safepoint, or the next step before it starts."""
        self.gate.request("pause")

    def resume(self) -> None:
        """Lets paused steps go on."""
        self.gate.request("resume")

    def stop(self) -> None:
        """Ends the running step, or the next one, at a safepoint: it raises CancelledError."""
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
        """Returns the devices."""
        return list(self.devices)

    def as_default(self) -> AbstractContextManager[Session]:
        """Returns a context manager that makes this the default session.

        The default graph stays what it is; `with session:` changes both, and closes the session.
        """
        return default.use_session(self)

    def close(self) -> None:
        """Ends the session: its variables' values and plans are dropped."""
        self._closed = True
        self._calls.clear()
        self._container.clear()
        open_sessions.discard(self)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __enter__(self) -> Session:
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
            counted(len(self._calls), "plan"),
        ]
        if self._closed or self.gate.state != "open":
            parts.append("closed" if self._closed else self.gate.state)
        return f"<fs.{type(self).__name__}: {', '.join(parts)}>"


class InteractiveSession(Session):
    """A session that is the default one from now on, for notebooks: `x.eval()` uses it."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        self._before = default.install(self.graph, self)

    def close(self) -> None:
        """Ends the session and restores what was the default before it."""
        if not self._closed and default.get_default_session() is self:
            default.install(*self._before)
        super().close()

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _check_arguments(target: Any, graph: Any, config: Any) -> None:
    for name, value, wanted in (
        ("target", target, str),
        ("graph", graph, Graph),
        ("config", config, ConfigProto),
    ):
        if value is not None and not isinstance(value, wanted):
            raise DTypeError(f"expected a {wanted.__name__} as {name}, got {value!r}")
    if target:
        raise InvalidArgumentError(f'expected target "" (this process), got {target!r}')


def _check_initialized(call: Call) -> None:
    missing = [s.name for s in call.required if not s.is_initialized]
    if missing:
        raise uninitialized(missing)
    call.is_checked = True


def _bad_key(fetches: Any, feed_dict: Any) -> OpError:
    if feed_dict and not isinstance(feed_dict, Mapping):
        return DTypeError(
            f"expected feed_dict to be a dict of values by tensor, got {type(feed_dict).__name__}"
        )
    return DTypeError(
        "expected a tensor, an operation, a name or a structure of them to fetch, got "
        + type(fetches).__name__
    )


def _run_in_default(fetch: Any, feed_dict: Any, session: Any) -> Any:
    session = session or default.get_default_session()
    if session is None:
        raise GraphError("no default session: use `with sess.as_default():` or pass session=")
    if session.graph is not fetch.graph:
        raise GraphError("the default session runs another graph: pass session=")
    return session.run(fetch, feed_dict)


runner.append(_run_in_default)


@contextmanager
def container(name: str) -> Iterator[str]:
    """Keeps the variables made in the block in the named container, which outlives sessions."""
    graph = default.get_default_graph()
    before = graph.extras.get("container", "")
    graph.extras["container"] = name
    try:
        yield name
    finally:
        graph.extras["container"] = before


__all__ = ["InteractiveSession", "Session", "container", "open_sessions"]
