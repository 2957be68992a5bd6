"""Histories: chosen tensors over steps and iterations, and what steps can be computed again from.

The newest are kept, within a bound in bytes. A tensor is taken as a breakpoint takes it: code asks
behind the operation that makes it, and what is asked copies the value and never holds the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowscope.debug.statistics import Statistics, statistics
from flowscope.errors import FailedPreconditionError
from flowscope.graph.current_step import current_step
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.host_values import on_host
from flowscope.plan.analysis.locations import iterations_in
from flowscope.plan.ir.breakpoints import BreakTest
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.tensor_map import TensorAt
from flowscope.plan.plan import Plan
from flowscope.runtime.step.step_inputs import InputRecorder, refusal

#: Runs a plan: (gate, run, feeds, resources) -> its outputs.
Function = Callable[..., tuple[Any, ...]]
#: What a value takes besides its elements.
_OVERHEAD = 200
#: Asked before or after a node, by its name.
Sides = Mapping[str, list[BreakTest]]


class RecordedValue(NamedTuple):
    """A value that a tensor had.

    Attributes:
        step: The number of the run in its session.
        iterations: The numbers of the iterations of the loops around, from the outermost.
        value: The value.
    """

    step: int
    iterations: tuple[int, ...]
    value: Any

    @property
    def statistics(self) -> Statistics:
        """Numbers of its elements."""
        return statistics(self.value)


class History:
    """What is kept of the steps of a session; made by `Debugger.record`.

    Attributes:
        tensors: The tensors whose values are kept.
        max_bytes: So much is kept at most: the oldest goes first.
        inputs: What steps can be computed again from.
    """

    def __init__(self, tensors: Sequence[Tensor], max_bytes: int, end: Callable[[], None]) -> None:
        self.tensors = tuple(tensors)
        self.max_bytes = max_bytes
        self.inputs = InputRecorder(max_bytes)
        self._end = end
        self._kept: dict[Tensor, deque[RecordedValue]] = {t: deque() for t in tensors}
        self._order: deque[Tensor] = deque()
        self._absent: dict[Tensor, str] = {}
        self._value_bytes = 0
        #: Grows with everything that is kept.
        self.version = 0

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the steps that can be computed again, the oldest first."""
        return self.inputs.steps

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept; what is also a variable's value now takes none besides."""
        return self.inputs.nbytes + self._value_bytes

    def values(self, tensor: Tensor | Operation | str) -> tuple[RecordedValue, ...]:
        """Returns the values that are kept of a tensor, the oldest first.

        Args:
            tensor: One of `tensors`, or its name; an operation stands for its first output.

        Raises:
            FailedPreconditionError: if it is none of them, or had no value in the steps that ran.
        """
        name = tensor if isinstance(tensor, str) else tensor.name
        found = next((t for t in self.tensors if name in (t.name, t.op.name)), None)
        if found is None:
            raise FailedPreconditionError(
                f'"{name}" is not recorded: name it in `sess.debug.record`, or replay a step'
            )
        if not self._kept[found] and found in self._absent:
            raise FailedPreconditionError(f'"{name}" has no value: {self._absent[found]}')
        with self.inputs.lock:
            return tuple(self._kept[found])

    def newest(self, tensor: Tensor) -> RecordedValue | None:
        """Returns the newest value that is kept of a tensor; None where there is none."""
        with self.inputs.lock:
            kept = self._kept.get(tensor)
            return kept[-1] if kept else None

    def remove(self) -> None:
        """Ends the recording; what was kept stays until this object goes."""
        self._end()

    def __repr__(self) -> str:
        steps = self.steps
        told = f"{steps[0]} to {steps[-1]}" if steps else "none"
        lines = [f"<fs.History of steps {told}, {self.nbytes} of {self.max_bytes} bytes>"]
        for tensor, kept in self._kept.items():
            why = self._absent.get(tensor, "") if not kept else ""
            lines.append(f"  {tensor.name}: {len(kept)} values" + (f": {why}" if why else ""))
        return "\n".join(lines)

    # -- what steps tell --------------------------------------------------------------------------

    def around(self, plan: Plan, function: Function) -> Function:
        """Returns the function of a plan, which keeps what each step is computed from."""
        why = refusal(plan)
        positions = {t: i for i, t in enumerate(plan.request.feeds)}
        known = [(t, at) for t in self.tensors for at in plan.locate(t) if _is_known(at)]

        def run(gate: Any, run: Any, feeds: Any, resources: Any) -> tuple[Any, ...]:
            with self.inputs.lock:
                self.inputs.begin(plan, why, run, feeds, resources)
                self._trim()
            for tensor, at in known:
                value = at.constant if at.kind == "constant" else feeds[positions[tensor]]
                self._take(tensor, (), value, run[-1])
            return function(gate, run, feeds, resources)

        return run

    def tests(self, plan: Plan) -> tuple[Sides, Sides]:
        """The tests that a plan's code makes before and after nodes."""
        before: dict[str, list[BreakTest]] = {}
        after: dict[str, list[BreakTest]] = {}
        for tensor in self.tensors:
            answers = plan.locate(tensor)
            for at in answers:
                if at.value is None or _is_known(at):
                    continue
                node, index = at.value.node, at.value.index
                side = after
                if node is None:
                    side = before
                    node, index = first_reader(plan, at)
                if node is not None:
                    side.setdefault(node.name, []).append(self._test(tensor, index))
            if all(at.kind == "absent" for at in answers) and tensor.op.id in plan.operations:
                self._absent[tensor] = answers[0].why
        return before, after

    def _test(self, tensor: Tensor, index: int) -> BreakTest:
        def test(run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> bool:
            if values[index] is not None:
                number = current_step().number
                self._take(tensor, iterations_in(run, counts), values[index], number)
            return False

        return test

    def _take(self, tensor: Tensor, iterations: tuple[int, ...], value: Any, step: int) -> None:
        array = np.array(on_host(value))[()]
        with self.inputs.lock:
            self.version += 1
            self._kept[tensor].append(RecordedValue(step, iterations, array))
            self._order.append(tensor)
            self._value_bytes += _size(array)
            self._trim()

    def _trim(self) -> None:
        """Forgets the oldest until what is left is within the bound."""
        while self.nbytes > self.max_bytes and self._order:
            if not self.inputs.drop_oldest():
                oldest = self._kept[self._order.popleft()].popleft()
                self._value_bytes -= _size(oldest.value)


def _is_known(at: TensorAt) -> bool:
    """Whether a tensor is known before the step."""
    return at.kind in ("constant", "fed")


def _size(array: Any) -> int:
    return getattr(array, "nbytes", len(array) if isinstance(array, bytes) else 0) + _OVERHEAD


def first_reader(plan: Plan, at: TensorAt) -> tuple[Node | None, int]:
    """Returns the first node that reads a parameter of a body, and as which of its inputs."""
    assert at.value is not None
    for node in plan.program.walk():
        for i, value in enumerate(node.inputs):
            if value.identity is at.value.identity and not node.op.is_handle:
                return node, i
    return None, 0


__all__ = ["History", "RecordedValue", "first_reader"]
