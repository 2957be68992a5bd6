"""The driver: gives the executor's machine kernels, a thread, a gate and the time.

It runs one step on the caller's thread, in the order in which units become ready: it lets the
machine advance, and where the gate is raised takes one invocation after the other, for between two
of them the step can be held. An operation that could wait but need not gives its outputs at once.
One that has to is begun and left alone: while nothing else is ready the thread waits at the gate,
so a stop, an interrupt and a deadline end the wait.

An update group that has begun is finished before the step can be held.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from threading import get_ident
from typing import Any

from flowscope.errors import CancelledError, DeadlineExceededError, InternalError
from flowscope.executor.frames import Iteration
from flowscope.executor.machine import Machine, ReadyUnit
from flowscope.executor.observe import StepPosition, Wait
from flowscope.executor.osr import resume
from flowscope.executor.static import ExecutorGraph, Unit, UnitKind
from flowscope.graph.current_step import current_step
from flowscope.graph.op import Op
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.ops.host.py_functions import HostFunc
from flowscope.plan.analysis.locations import DeoptState, RegionRun, StepLocation
from flowscope.plan.codegen.code import Code
from flowscope.plan.executables.execution import Execution
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTest
from flowscope.plan.ir.crossings import is_crossing
from flowscope.plan.ir.invocation import Draw, Invocation, InvocationError, Probe
from flowscope.plan.ir.kernels import own
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.structured import loop_name
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.step.dead_fetches import dead_fetch
from flowscope.runtime.step.failures import is_late, located
from flowscope.runtime.waits.crossings import awaited_device, crossing
from flowscope.runtime.waits.local_waits import circle

#: What computes an invocation: (step, unit, iteration, inputs) -> outputs; None if it has begun.
Handler = Callable[["_Step", Unit, Iteration, list[Any]], Any]


class Driver:
    """Runs a plan's units; same signature as generated code.

    Args:
        execution: The plan's units.
        modules: The array modules of its nodes.

    Attributes:
        graph: The executor's side of the plan.
        states: What handles stand for in this session, once a step has run.
        plain, special: What runs each unit, see `flowscope.executor.machine.MachineHost`.
    """

    def __init__(self, execution: Execution, modules: Modules) -> None:
        lowered = execution.lowered
        self.graph = ExecutorGraph(
            lowered.program, execution.bodies, execution.constants, lowered.loops
        )
        self.modules = modules
        self.execution = execution
        self._bound: tuple[Any, ...] | None = None
        self.states: dict[Node | None, Any] = {}
        self.special = [self._handler(u) for u in self.graph.units]
        #: What computes a unit with one output and nothing special about it: quicker.
        self.plain = [
            partial(u.body.invoker.kernel, u.body.invoker.xp)
            if u.body.invoker is not None and h is _kernel and _is_plain(u.node)
            else None
            for u, h in zip(self.graph.units, self.special, strict=True)
        ]
        #: Per unit what stands behind the handles of a region, once a step has run.
        self.regions: list[tuple[Any, ...]] = []
        self._known = [(i, execution.constants[v]) for i, v in self.graph.known]

    def __call__(
        self,
        gate: Any,
        run: Any,
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
        probe: Probe | None = None,
    ) -> tuple[Any, ...]:
        """Runs one step; see `flowscope.plan.codegen.function` for the arguments.

        With a `probe`, which is told of each invocation, it has to consist of single operations.
        """
        if resources is not self._bound:
            self.states = dict(zip(self.execution.region.handles, resources, strict=True))
            self.graph.bound(self.states)
            self.regions = [
                tuple([self.states[h] for h in u.body.handles]) for u in self.graph.units
            ]
            self._bound = resources
        state: DeoptState | None = None
        if self.execution.code is not None and not gate.is_by_op:
            found = self._optimistically(self.execution.code, gate, run, feeds, resources)
            if not isinstance(found, DeoptState):
                return found
            state = found
        step = _Step(self, gate, run, resources, probe)
        try:
            results = step.execute(feeds, state)
        except BaseException as e:
            failure = step.given_up(e)
            try:
                if failure is e:
                    raise
                raise failure from e
            finally:
                del failure  # its traceback holds this frame, and so what the step has made
        finally:
            step.end()
        return self._handed_out(step.machine, results)

    def _optimistically(
        self, code: Code, gate: Any, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
    ) -> tuple[Any, ...] | DeoptState:
        """Runs the step as one function; returns where it was left if something has to wait."""
        try:
            return code.function(gate, run, feeds, resources)
        except Exception as e:
            error = code.located(e)
            self.tell(error)
            if error is e:
                raise
            raise error from e

    def tell(self, error: Exception) -> None:
        """Tells all that the step may have waited for that it failed.

        That its time was over is no failure of what it does.
        """
        failed = error
        if isinstance(error, InvocationError):
            failed, cause = located(error)
            failed.__cause__ = cause
        if isinstance(failed, DeadlineExceededError) and is_late(failed, current_step()):
            return
        for node in self.blocking:
            state = self.states.get(node.inputs[0].node) if node.inputs else None
            if state is not None:
                node.op.failed(state, failed)

    @property
    def blocking(self) -> list[Node]:
        """The nodes that may wait for others."""
        return [u.node for u in self.graph.units if u.kind is UnitKind.BLOCKING]

    def _handler(self, unit: Unit) -> Handler:
        if unit.kind < UnitKind.KERNEL:
            return _none
        if is_crossing(unit.node.op):
            return crossing(unit.node)
        if unit.kind is UnitKind.BLOCKING:
            return _blocking(unit.node.op)
        if unit.body.code is not None:
            return _region
        return _UPDATES.get(unit.node.op.type) or _kernel

    def _handed_out(self, machine: Machine, results: list[Any]) -> tuple[Any, ...]:
        if machine.dead_fetches:
            raise dead_fetch(
                self.execution.lowered.program.fetches[machine.dead_fetches[0]],
                self.execution.operations,
            )
        for i, value in self._known:
            results[i] = value
        region = self.execution.region
        return tuple(
            own(o) if s and v.spec.shape != () else o
            for v, o, s in zip(region.outputs, results, region.shared, strict=True)
        )


class _Step:
    """One run of a plan's units.

    Attributes:
        machine: The machine.
        draw: Makes the generators of random nodes.
    """

    def __init__(
        self,
        driver: Driver,
        gate: Any,
        run: Any,
        resources: tuple[Any, ...],
        probe: Probe | None,
    ) -> None:
        self.driver = driver
        self.machine = Machine(driver.graph)
        self.gate = gate
        self.probe = probe
        self.plain, self.special = driver.plain, driver.special
        if probe is not None:
            self.plain = [None] * len(self.plain)
        self.tests = NO_TESTS
        self._take_tests()
        self.draw: Draw = partial(generator, run)
        self.resources = resources
        #: The region that runs, and what it is told of its run.
        self.region: ReadyUnit | None = None
        self.region_run = RegionRun(run, self._iterations, self._look)
        #: How many update groups have begun and not ended.
        self.updating = 0
        self.position = StepPosition(self.machine, self._waits, self._sample)
        #: Blocking operations on their way, and what gives them up: (unit, iteration, since).
        self._pending: dict[int, tuple[Unit, Iteration, float]] = {}
        self._give_up: dict[int, Callable[[], None]] = {}
        self._enders: list[Callable[[], None]] = []
        self.finished: deque[tuple[int, Any]] = deque()
        self._numbers = 0
        self._thread = get_ident()
        self._is_over = False

    # -- running --------------------------------------------------------------------------------

    def execute(self, feeds: tuple[Any, ...], state: DeoptState | None) -> list[Any]:
        """Runs the step to its end; returns the fetched values.

        Args:
            feeds: The values of the feeds.
            state: Where its code was left, None for a step that begins.
        """
        machine, gate = self.machine, self.gate
        if state is None:
            machine.start(feeds)
        else:
            plan = self.driver.execution
            resume(machine, plan.lowered, plan.constants, self.driver.modules, feeds, state)
        while True:
            if self.finished:
                self._take_finished()
            if not gate.raised:
                machine.watch = None
                self._advance()
                if self.finished:
                    continue
            invocation = machine.next()
            if invocation is not None:
                self._invoke(*invocation)
            elif self._pending:
                self._wait()
            else:
                break
        if not machine.is_finished:
            raise InternalError("the step has not ended, but nothing is ready and nothing runs")
        return machine.results

    def _advance(self) -> None:
        """Runs what is ready, until somebody wants something."""
        try:
            self.machine.advance(self)
        except InvocationError:
            raise
        except Exception as e:
            if self.machine.failed is None:
                raise
            raise self._failure(*self.machine.failed, e) from e

    def _invoke(self, unit: Unit, it: Iteration, inputs: list[Any]) -> None:
        """Runs one invocation, before which the step can be held."""
        if self.gate.raised and not self.updating:
            self._hold(unit, it, inputs)
        function = self.plain[unit.index]
        try:
            if function is not None:
                outputs: Any = (function(*inputs),)
            else:
                outputs = self.special[unit.index](self, unit, it, inputs)
        except InvocationError:
            raise
        except Exception as e:
            raise self._failure(unit, it, inputs, e) from e
        if outputs is not None:
            self.machine.done(unit, it, outputs)

    def _failure(
        self, unit: Unit, it: Iteration, inputs: list[Any], error: Exception
    ) -> InvocationError:
        return InvocationError(Invocation(unit.node, tuple(inputs), _around(self, it)), error)

    def _hold(self, unit: Unit, it: Iteration, inputs: list[Any]) -> None:
        """Lets the step be held before an invocation."""
        self.position.at(unit, it, inputs)
        is_by_op = self.gate.hold(unit.index, self.position)
        self.machine.watch = self._told if is_by_op else None
        self._take_tests()
        if not self.gate.raised:
            self.position.forget()

    def _take_tests(self) -> None:
        """Has the units ask at which there are breakpoints."""
        tests = self.gate.breakpoints()
        if tests is self.tests:
            return
        self.tests, driver = tests, self.driver
        self.plain, self.special = list(driver.plain), list(driver.special)
        if self.probe is not None:
            self.plain = [None] * len(self.plain)
        for unit in driver.graph.units:
            before, after = tests.before.get(unit.name), tests.after.get(unit.name)
            is_users = unit.kind >= UnitKind.KERNEL or unit.kind is UnitKind.BLOCKING
            if is_users and (before or after):
                self.plain[unit.index] = None
                self.special[unit.index] = _tested(driver.special[unit.index], before, after)

    def stand(
        self, unit: Unit, it: Iteration, inputs: list[Any], outputs: list[Any] | None
    ) -> None:
        """Holds the step at a breakpoint; in an update group once that has ended."""
        if self.updating:
            self.gate.request("pause")
            return
        self.position.at(unit, it, inputs, outputs)
        self.gate.hold(unit.index, self.position.at_breakpoint())
        self.position.inside(None, None, [])
        self._take_tests()

    def _told(self, unit: Unit, it: Iteration, is_dead: bool) -> None:
        for move in self.position.moved(unit, it, is_dead):
            self.gate.moves.append(move)

    def told(self, unit: Unit, it: Iteration, outputs: Any) -> None:
        """Tells the probe of an operation that has waited or could have."""
        if self.probe is not None:
            self.probe(unit.node, it.path, outputs)

    def _sample(self, sample: Any) -> None:
        """Tells a sample of the operations that come next, where no probe is told already."""
        if self.probe is not None:
            return
        rows, plain = sample.begin_rows(), list(self.plain)
        asked = self.plain = [None] * len(plain)

        def probe(node: Node, iterations: tuple[int, ...], outputs: Any) -> None:
            rows.probe(node, iterations, outputs)
            if rows.is_done:
                self.probe = None
                asked[:] = plain  # the machine has it at hand

        self.probe = probe

    def _iterations(self) -> tuple[int, ...]:
        """Returns the numbers of the iterations around the region that runs."""
        assert self.region is not None
        return self.region[1].path

    def _look(self) -> StepLocation:
        """Returns where the region is that runs."""
        assert self.region is not None
        self.position.inside(*self.region)
        return self.position.where()

    # -- waiting --------------------------------------------------------------------------------

    def begin(self, unit: Unit, it: Iteration, inputs: list[Any]) -> None:
        """Begins a blocking operation."""
        op = unit.node.op
        has_state = not isinstance(op, HostFunc)
        state, *values = inputs if has_state else (None, *inputs)
        self.wait_for(unit, it, lambda finish: op.begin(state, finish, *values))

    def wait_for(
        self, unit: Unit, it: Iteration, begin: Callable[[Callable[[Any], None]], Any]
    ) -> None:
        """Begins what an operation has to wait for; nothing else waits for it.

        Args:
            unit, it: The operation.
            begin: Is given the function that is to be told the outputs, or an error, on whichever
                thread; returns what gives the wait up.
        """
        number = self._numbers
        self._numbers += 1
        self._pending[number] = unit, it, time.monotonic()

        def finish(result: Any) -> None:
            if self._is_over:
                return
            self.finished.append((number, result))
            if get_ident() != self._thread:
                self.gate.wake()

        try:
            give_up = begin(finish)
        except BaseException:
            del self._pending[number]
            raise
        if unit.node.op.ends_with_step:
            self._enders.append(give_up)
        else:
            self._give_up[number] = give_up

    def _take_finished(self) -> None:
        while self.finished:
            number, result = self.finished.popleft()
            unit, it, _ = self._pending.pop(number)
            self._give_up.pop(number, None)
            if isinstance(result, BaseException):
                try:
                    raise self._failure(unit, it, [], result) from result  # type: ignore[arg-type]
                finally:
                    del result  # its traceback holds this frame
            self.told(unit, it, result)
            self.machine.done(unit, it, result)

    def _wait(self) -> None:
        self.position.inside(None, None, [])
        begin = time.perf_counter_ns()
        step = current_step()
        if step is not None:
            step.awaits = self  # until it goes on: not where the wait ends with an error
        self.gate.wait(lambda: bool(self.finished), self.position)
        if step is not None:
            step.awaits = None
            if step.call.trace is not None:
                step.call.trace.waited("wait", begin)

    def awaited(self) -> list[tuple[int, Node, Any, float]]:
        """Returns the numbers and nodes of what is on its way, their states and since when.

        The state is None where it is no queue or lock; from any thread.
        """
        states = self.driver.states
        return [
            (number, unit.node, states.get(unit.node.inputs[0].node) if unit.node.inputs else None,
             since)
            for number, (unit, _, since) in list(self._pending.items())
        ]  # fmt: skip

    # -- the end --------------------------------------------------------------------------------

    def given_up(self, error: BaseException) -> BaseException:
        """The error of the step; that of a deadline names what the step waited for.

        A deadline and a stop tell of a circle of waits.
        """
        found: BaseException = error
        if isinstance(error, DeadlineExceededError | CancelledError) and self._pending:
            is_late = isinstance(error, DeadlineExceededError)
            told = [f"it waited for {self._awaited()}"] if is_late else []
            told += filter(None, [circle(current_step())])
            if told:
                found = type(error)("; ".join([error.message, *told]))
        if isinstance(error, Exception):
            self.driver.tell(error)
        return found

    def _awaited(self) -> str:
        now = time.monotonic()
        shown = [
            f'"{unit.name}" ({unit.node.op.type}{_in(it)}, for {now - since:.2f} s, '
            f"on {self._resource_of(unit.node)})"
            for unit, it, since in list(self._pending.values())[:5]
        ]
        more = len(self._pending) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _waits(self) -> Iterator[Wait]:
        """Yields what waits for others, for those who look."""
        now = time.monotonic()
        for unit, it, since in self._pending.values():
            text = f'"{unit.name}" on {self._resource_of(unit.node)}'
            seconds = int(now - since)
            yield unit, it, text + (f" for {seconds} s" if seconds else "")

    def _resource_of(self, node: Node) -> str:
        if isinstance(node.op, HostFunc):
            return "its Python function"
        if isinstance(node.op, Send | Recv):
            return awaited_device(node.op)
        state = self.driver.states.get(node.inputs[0].node)
        return "what came into the loop" if state is None else str(state)

    def end(self) -> None:
        """Gives up what is still waiting, and what ends with the step."""
        self._is_over = True
        if (step := current_step()) is not None:
            step.forget_function()
            step.awaits = None
        for give_up in (*self._give_up.values(), *self._enders):
            give_up()
        # These refer to the step: without them its values go with the last reference to it.
        self._give_up.clear()
        self._enders.clear()
        self.machine.watch = None
        del self.region_run, self.position


# -- how units run ------------------------------------------------------------------------------
# What mypy is told to pass over here: a unit's function may be None, but not of one that runs.


def _none(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    raise InternalError(f"{unit} is the machine's own")


def _kernel(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    return unit.body.invoker(step.draw, it.path, inputs, step.probe)  # type: ignore[misc]


def _tested(handler: Handler, before: BreakTest | None, after: BreakTest | None) -> Handler:
    """A function that runs a unit and asks at the breakpoints before and after it."""

    def run(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
        if before is not None and before(None, it.path, inputs):
            step.stand(unit, it, inputs, None)
        outputs = handler(step, unit, it, inputs)
        if after is None or outputs is None:
            return outputs
        outputs = list(outputs)
        if after(None, it.path, outputs):
            step.stand(unit, it, [], outputs)
        return outputs

    return run


def _blocking(op: Op) -> Handler:
    attempt = op.attempt

    def run(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
        outputs = attempt(*inputs)
        if outputs is None:
            step.begin(unit, it, inputs)
        else:
            step.told(unit, it, outputs)
        return outputs

    return run


def _region(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    body = unit.body
    step.region = unit, it, inputs
    try:
        return body.function(  # type: ignore[misc]
            step.gate, step.region_run, inputs, step.driver.regions[unit.index]
        )
    except Exception as e:
        assert body.code is not None
        error = body.code.located(e, _around(step, it))
        if error is e:
            raise
        raise error from e


def _is_plain(node: Node) -> bool:
    """Whether calling its kernel with the inputs is all that an invocation is."""
    return len(node.outputs) == 1 and not node.op.is_random


def _begin_update(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    kept = _kernel(step, unit, it, inputs)
    step.updating += 1
    return kept


def _end_update(step: _Step, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    _kernel(step, unit, it, inputs)
    step.updating -= 1
    return ()


#: What begins and ends update groups.
_UPDATES: dict[str, Handler] = {"BeginUpdate": _begin_update, "EndUpdate": _end_update}


# -- errors -------------------------------------------------------------------------------------


def _around(step: _Step, it: Iteration) -> tuple[tuple[str, int], ...]:
    """Returns the loops around an iteration, and the numbers of their iterations."""
    found: list[tuple[str, int]] = []
    at: Iteration | None = it
    while at is not None and at.frame.parent is not None:
        name = at.frame.static.name
        made = step.machine.graph.loops.get(name)
        found.insert(0, (name if made is None else loop_name(made.node), at.number))
        at = at.frame.parent
    return tuple(found)


def _in(it: Iteration) -> str:
    return f", in {it.name}" if it.name else ""


__all__ = ["Driver"]
