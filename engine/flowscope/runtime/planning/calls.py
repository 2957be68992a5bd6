"""Calls: all that can be worked out before a step, kept per (fetches, feeds, mode)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.current_step import current_step
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import where
from flowscope.plan.executables.back_ends import Function
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTests
from flowscope.plan.ir.invocation import Probe
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan
from flowscope.runtime.planning.feeds import Converter
from flowscope.runtime.planning.fetches import Rebuild
from flowscope.runtime.state.queue_transactions import QueueUse
from flowscope.runtime.state.resources import uninitialized

if TYPE_CHECKING:
    from flowscope.runtime.session.remote import RemoteFunction
    from flowscope.runtime.step.split import SplitFunction
    from flowscope.runtime.trace.stamp_buffers import StampedCode
    from flowscope.runtime.trace.step_trace import StepTrace


def identity(function: Callable[..., Any]) -> Callable[..., Any]:
    """What stands around a plan's function where nothing does."""
    return function


#: A place that is no position in a region: before the first operation.
_BEFORE_FIRST = -3


def with_breakpoints(function: Function, tests: BreakTests) -> Function:
    """Returns the same function; the step knows its feeds while it runs, flags are told.

    Args:
        function: Runs a plan, and asks at breakpoints.
        tests: What it asks.
    """

    flagged = tests.flagged

    def noted(
        gate: Any, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        step = current_step()
        step.feeds = feeds
        try:
            if tests.fed is not None and tests.fed(step):
                gate.request("pause")
                gate.hold(_BEFORE_FIRST)
            if flagged is None:
                return function(gate, run, feeds, resources)
            with np.errstate(divide="call", over="call", invalid="call", call=flagged):
                return function(gate, run, feeds, resources)
        finally:
            step.feeds = ()

    return noted


class PreparedCall:
    """A plan with all that running it in one session needs.

    Attributes:
        plan: The plan.
        edits: How many edits of the graph it has seen: none of them concerns the plan.
        function: Runs the plan: (gate, run, feeds, resources) -> values for the user.
        by_op: The same one operation at a time, where somebody steps through it.
        converters: One per feed.
        rebuild: Makes the user's structure from the fetched values.
        single: Whether the fetch is one tensor, whose value is the result.
        resources: The state that the function gets.
        required: Of it, what must have a value before the step.
        is_checked: Whether the required variables were seen initialised.
        queues: What its steps may do to queues, None where they use none.
        on_device: What puts a function of the plan on its device.
        wrap: What stands around a function of the plan in this session: that, and what notes steps.
        trace: Where a traced run of it notes what it does; None for most.
        stamped: The code that reads a clock, once the plan was traced.
        uses_blas: Whether a kernel of the plan multiplies matrices.
        tests: The breakpoints of the plan, at which `function` asks.
        elsewhere: Runs a plan that has partitions in other processes; None for most.
        split: Runs the partitions of the plan on threads of their own; None where one thread runs
            all of it.
    """

    __slots__ = (
        "__weakref__",
        "by_op",
        "converters",
        "edits",
        "elsewhere",
        "function",
        "is_checked",
        "on_device",
        "plan",
        "queues",
        "rebuild",
        "required",
        "resources",
        "single",
        "split",
        "stamped",
        "tests",
        "trace",
        "uses_blas",
        "wrap",
    )

    def __init__(
        self,
        plan: Plan,
        edits: int,
        converters: tuple[Converter, ...],
        rebuild: Rebuild,
        single: bool,
        resources: tuple[Any, ...],
        required: tuple[Any, ...],
        queues: QueueUse | None = None,
        on_device: Callable[[Callable[..., Any]], Callable[..., Any]] = identity,
    ) -> None:
        self.plan = plan
        self.edits = edits
        self.function: Callable[..., tuple[Any, ...]] = plan.executable.function
        self.by_op: Callable[..., tuple[Any, ...]] = plan.executable.by_op
        self.converters = converters
        self.rebuild = rebuild
        self.single = single
        self.resources = resources
        self.required = required
        self.queues = queues
        self.tests = NO_TESTS
        self.elsewhere: RemoteFunction | None = None
        self.split: SplitFunction | None = None
        self.is_checked = not required
        self.uses_blas = any(node.op.uses_blas for node in plan.program.walk())
        self.on_device = self.wrap = on_device
        self.trace: StepTrace | None = None
        self.stamped: StampedCode | None = None

    def trace_from(self, called: int) -> StepTrace:
        """Returns the trace of a run, for `traced`; makes the code that reads a clock at need.

        Args:
            called: When the step was asked for.
        """
        from flowscope.runtime.trace.step_trace import StepTrace  # most programs are not traced

        trace = StepTrace(self.plan, called, by_op=any(self.tests.names))
        if self._apart is None:
            self.stamped = trace.compile(self.stamped)
        return trace

    def traced(self, trace: StepTrace) -> PreparedCall:
        """Returns the same for one run, which is traced."""
        made = self._copied()
        made.trace = trace
        apart = self._apart
        if apart is None:
            made.function = trace.traced(self._wrapped)
        else:
            made.function = trace.traced_apart(self.wrap, apart)
        return made

    @property
    def _apart(self) -> RemoteFunction | SplitFunction | None:
        """What runs its partitions apart; None where one function runs the plan."""
        return (self.elsewhere or self.split) if self.tests is NO_TESTS else None

    def probed(self, probe: Probe, tests: BreakTests) -> PreparedCall:
        """Returns the same one operation at a time: a probe is told of each, and tests are asked.

        Args:
            probe: Is told of each invocation.
            tests: What is asked in the place of its breakpoints.
        """
        made = self._copied()
        made.tests = tests
        made.function = made._wrapped(self.plan.executable.probed(probe))
        return made

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function of the plan that asks at its breakpoints, as this session runs it."""
        return self.wrap(
            with_breakpoints(function, self.tests) if any(self.tests.names) else function
        )

    def _copied(self) -> PreparedCall:
        made = object.__new__(PreparedCall)  # `copy` takes ten times as long
        for name in PreparedCall.__slots__[1:]:
            setattr(made, name, getattr(self, name))
        return made

    def is_current(self, graph: Graph) -> bool:
        """Whether the plan is not stale: no operation of it was edited since it was made."""
        edits = graph.edits
        if self.edits != edits:
            edited = graph.edited_since(self.edits)
            if any(op.id in self.plan.operations for op in edited):
                return False
            self.edits = edits
        return True

    def count_nodes(self) -> int:
        """Returns how many nodes its plan has, those of blocks too."""
        return sum(1 for _ in self.plan.program.walk())

    def check_initialized(self) -> None:
        """Raises FailedPreconditionError if variables that are read first have no value yet."""
        check_initialized(self.required, self.plan.required)
        self.is_checked = True


def check_initialized(states: Sequence[Any], handles: Sequence[Node]) -> None:
    """Raises FailedPreconditionError if a variable has no value; it names the first one's line."""
    missing = [(s, h) for s, h in zip(states, handles, strict=True) if not s.is_initialized]
    if missing:
        made = missing[0][1].origins[0]
        error = uninitialized([state for state, _ in missing])
        raise error.located(op=made, **where(made))


@frozen
class PlanCacheInfo:
    """How a session's cache of plans does.

    Attributes:
        hits: Runs that found their plan.
        misses: Runs (and other calls) that had to plan.
        size: Plans that are kept.
        max_size: So many are kept at most; those that were not used for longest go first.
    """

    hits: int
    misses: int
    size: int
    max_size: int
