"""Replayers: a step computed again from what it was computed from, as often as one likes.

The program is the step's own, from before plans simplify: each operation runs by itself, so that
each has its values, and gives the bits that it gave. Variables are others, with the values that
they had; the session's do not change. A replay has a gate of its own: it can be held and stepped
while the session runs on, or is held itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Crossing
from flowscope.plan.analysis.locations import StepLocation, StopPoint
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTests
from flowscope.plan.ir.invocation import Probe
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan
from flowscope.runtime.planning.calls import PreparedCall
from flowscope.runtime.planning.planner import Planner
from flowscope.runtime.session.controls import Controls
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.step.step import Step
from flowscope.runtime.step.step_inputs import StepInputs
from flowscope.runtime.waits.predicates import Predicate

if TYPE_CHECKING:
    from flowscope.runtime.session.session import Session

#: So long a replay that is to be held is waited for.
_PATIENCE_S = 3600.0


@frozen
class ReplayPosition:
    """Where a step stands, in whichever plan of its program.

    Attributes:
        op: The number of the operation that comes next, of a transfer that of the operation whose
            value it brings; None at the end of an iteration.
        path: The calls that the operation is in.
        loops: The numbers of the loops around, from the outermost, with those of their iterations.
        transfer: The name of a transfer that comes next; "" for an operation of the graph.
    """

    op: int | None
    path: tuple[str, ...]
    loops: tuple[tuple[int, int], ...]
    transfer: str = ""

    @staticmethod
    def of(where: StepLocation) -> ReplayPosition:
        """Returns the position of a step that stands somewhere."""
        node = where.node
        loops = tuple([(_number(at.node), at.iteration) for at in where.loops])
        if node is None:
            return ReplayPosition(None, (), loops)
        return ReplayPosition(_number(node), node.path, loops, _transfer(node))

    def is_of(self, node: Node) -> bool:
        """Whether it is before a node."""
        is_op = _number(node) == self.op and node.path == self.path
        return is_op and _transfer(node) == self.transfer

    def is_at(self, here: StopPoint) -> bool:
        """Whether a step stands there."""
        node = here.node
        number = None if node is None else _number(node)
        return number == self.op and ReplayPosition.of(here.where()) == self


def _number(node: Node) -> int:
    """Returns the number of the operation that a node is; -1 for none."""
    return node.origins[0].id if node.origins else -1


def _transfer(node: Node) -> str:
    """Returns the name of a transfer; "" of other nodes."""
    return node.name if isinstance(node.op, Crossing) else ""


class Replayer(Controls):
    """Computes one step again.

    Args:
        session: The session that ran it.
        inputs: What it is computed from.

    Attributes:
        inputs: As above.
        planner: Plans for it; its plan is the only one.
        call: What is run.
    """

    def __init__(self, session: Session, inputs: StepInputs) -> None:
        super().__init__(session.graph, session.engine)
        self.inputs = inputs
        self._states = {
            handle: (VariableState(name, dims), value)
            for handle, (name, dims, value) in inputs.variables.items()
        }
        growth = session.engine.growth_of(session.graph)
        config, devices = session.config, session.devices
        self.planner = Planner(session.graph, config, devices, self._state, growth)
        self.planner.wrap(self._as_it_ran)
        self.call: PreparedCall = self.planner.replayed(inputs.plan)
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._is_over = False

    def _state(self, handle: Any) -> VariableState:
        return self._states[handle][0]

    def _as_it_ran(self, plan: Plan, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function that draws the random numbers that were drawn."""
        return lambda gate, _, feeds, resources: function(gate, self.inputs.run, feeds, resources)

    # -- running ----------------------------------------------------------------------------------

    def compute(self, probe: Probe, tests: BreakTests = NO_TESTS) -> tuple[Any, ...]:
        """Computes the step to its end; returns the fetched values.

        Args:
            probe: Is told of each invocation.
            tests: What is asked before and after operations.
        """
        __tracebackhide__ = True
        self.let_go()
        return self._from_begin(self.call.probed(probe, tests))

    def _from_begin(self, call: PreparedCall) -> tuple[Any, ...]:
        __tracebackhide__ = True
        for state, value in self._states.values():
            state.value = value
        return self._step(call, self.inputs.feeds, self.inputs.number)

    def held(
        self,
        is_met: Callable[[StopPoint], bool] | None,
        tests: BreakTests = NO_TESTS,
        probe: Probe | None = None,
    ) -> Step | None:
        """Computes the step, on a thread of its own, until it stands where it shall.

        Args:
            is_met: Whether it stands there; asked before each operation and behind each iteration,
                which takes long. None where `tests` say so.
            tests: What is asked before and after operations.
            probe: Is told of each invocation.

        Returns:
            The step, which is held; None where it has come to its end before.

        Raises:
            OpError: What the step fails with before.
        """
        self.let_go()
        if is_met is not None:
            self.gate.run_until(Predicate(is_met, is_by_op=True))
        self._is_over = False
        call = self.call if tests is NO_TESTS else self.call.probed(probe or _to_nobody, tests)
        work = partial(self._run, call)
        self._thread = threading.Thread(target=work, name="flowscope replay", daemon=True)
        self._thread.start()
        try:
            self.gate.wait_until_held(_PATIENCE_S, is_over=lambda: self._is_over)
        except BaseException:
            self.let_go()
            raise
        found = self.gate.held_steps()
        if found and found[0].here is not None:
            return found[0]
        error = self._error
        self.let_go()
        if error is not None:
            raise error
        return None

    def _run(self, call: PreparedCall) -> None:
        try:
            self._from_begin(call)
        except Exception as e:
            self._error = e
        self._is_over = True
        self.gate.wake()

    def let_go(self) -> None:
        """Ends the computation that is held, if one is."""
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            for step in self.gate.inside:
                self.gate.stop_step(step)
            thread.join()
        self.gate.request("resume")
        self._error = None


def _to_nobody(node: Node, iterations: tuple[int, ...], outputs: Any) -> None:
    """Is told of invocations, and tells nobody."""


__all__ = ["ReplayPosition", "Replayer"]
