"""What a step is computed from, kept so that it can be computed again.

Feeds, the number of the run (random operations are counted by it) and the values that variables had
before the step give every inner value again, bit-equal. A variable's value is kept by a lease: the
next writer leaves the buffer alone and writes to another one. Feeds are copied, as they lie in
memory: the user may change them afterwards.

Not every step follows from these alone. One that takes from a queue, waits for a lock, uses a
table, calls a Python function or reads the clock is not kept, nor one beside which another step
wrote a variable that it uses: what is noted then is why. What is printed is printed again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from flowscope.errors import FailedPreconditionError
from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.ops.host.checks import AssertTrue
from flowscope.ops.host.printing import Printing, PrintLine
from flowscope.ops.host.py_functions import EagerPyFunc, HostFunc, PyFunc
from flowscope.ops.host.timing import Timestamp
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.plan.analysis.effects import is_worldly
from flowscope.plan.plan import Plan
from flowscope.runtime.state.resources import VariableState

#: The newest steps of which it is known why they are not kept.
_MOST_REASONS = 1000


@frozen
class StepInputs:
    """What a step was computed from.

    Attributes:
        number: The number of the run in its session.
        plan: What was run.
        run: What generators are made from; see `flowscope.plan.codegen.function`.
        feeds: The values that were fed, in the order of the plan's feeds.
        variables: Names, dimensions and values before the step, by the ops of their handles; None
            for a variable that had no value.
    """

    number: int
    plan: Plan
    run: tuple[Any, int, int]
    feeds: tuple[Any, ...]
    variables: Mapping[Any, tuple[str, Any, Any]]

    def arrays(self) -> Iterator[Any]:
        """Yields what takes memory."""
        yield from self.feeds
        for *_, value in self.variables.values():
            if value is not None:
                yield value


def refusal(plan: Plan) -> str:
    """Returns why steps of a plan cannot be computed again; "" where they can."""
    for node in plan.program.walk():
        op = node.op
        if node.blocks:
            continue  # what is in them is walked too
        if isinstance(op, HostFunc | PyFunc | EagerPyFunc):
            return f'"{node.name}" calls a Python function, which may answer otherwise next time'
        if isinstance(op, Timestamp):
            return f'"{node.name}" reads the clock'
        if op.is_blocking or (op.is_handle and not isinstance(op, VarHandleOp)):
            what = "a queue, a lock or a table, which other steps change"
            return f'"{node.name}" ({op.type}) uses {what}'
        if isinstance(op, VarHandleOp) and op.container:
            return f'"{node.name}" is kept in a container, where other sessions may write it'
        if is_worldly(node) and not isinstance(op, AssertTrue | Printing | PrintLine):
            return f'"{node.name}" ({op.type}) acts on the world outside'
    return ""


class InputRecorder:
    """Keeps what the newest steps of a session were computed from, within a bound in bytes.

    Args:
        most_bytes: Buffers that several steps share count once.

    Attributes:
        nbytes: Bytes of what is kept.
        lock: Is held while something of that changes.
    """

    def __init__(self, most_bytes: int) -> None:
        self.lock = threading.RLock()
        self._most = most_bytes
        self.nbytes = 0
        self._kept: deque[StepInputs] = deque()
        #: Buffers that are kept, by their numbers in memory, with how many steps use them.
        self._uses: dict[int, int] = {}
        self._reasons: dict[int, str] = {}

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the steps that are kept, the oldest first."""
        return tuple([one.number for one in list(self._kept)])

    def find(self, number: int) -> StepInputs | None:
        """The inputs of a step; None where they are not kept."""
        return next((one for one in list(self._kept) if one.number == number), None)

    def variables_before(self, number: int) -> dict[str, Any]:
        """Values that variables had before a step, by name; None for one that had none.

        A variable that the step does not use has the value that it has before the next step that
        does, as long as all steps between are kept.

        Raises:
            FailedPreconditionError: The step is not kept.
        """
        found: dict[str, Any] = {}
        expected = number
        for one in list(self._kept):
            if one.number < number:
                continue
            if one.number != expected:
                break
            for name, _, value in one.variables.values():
                found.setdefault(name, value)
            expected += 1
        if expected == number:
            raise FailedPreconditionError(f"step {number} is not kept: {self.why_not(number)}")
        return found

    def why_not(self, number: int) -> str:
        """Returns why a step is not kept."""
        told = self._reasons.get(number)
        return told or "it was not recorded, or newer steps have taken its place"

    # -- keeping ----------------------------------------------------------------------------------

    def begin(self, plan: Plan, why: str, run: Any, feeds: Any, resources: Any) -> None:
        """Keeps what the step that begins on this thread is computed from.

        Args:
            plan: What is run.
            why: Why it could not be computed again: see `refusal`.
            run, feeds, resources: See `flowscope.plan.codegen.function`.
        """
        step = current_step()
        for other in step.gate.inside:
            if other is not step:
                self._overlap(step, other)
        number = run[-1]
        if number in self._reasons:
            return
        if why:
            self._refuse(number, why)
            return
        found = dict(zip([h.op for h in plan.handles], map(_before, resources), strict=True))
        self._keep(StepInputs(number, plan, run, tuple(map(copied, feeds)), found))

    def _overlap(self, step: Any, other: Any) -> None:
        """Refuses steps that run beside each other, where one writes what the other one uses."""
        for one, writer in ((step, other), (other, step)):
            shared = _written(writer) & {id(_state(s)) for s in one.call.resources}
            if shared and one.number is not None:
                self._refuse(one.number, "another step has written its variables while it ran")
                self._drop(one.number)

    def _refuse(self, number: int, why: str) -> None:
        self._reasons[number] = why
        for old in [*self._reasons][:-_MOST_REASONS]:
            del self._reasons[old]

    def _keep(self, inputs: StepInputs) -> None:
        self._kept.append(inputs)
        for array in inputs.arrays():
            count = self._uses[id(array)] = self._uses.get(id(array), 0) + 1
            self.nbytes += getattr(array, "nbytes", 0) if count == 1 else 0
        while self.nbytes > self._most and self._kept:
            oldest = self._kept[0]
            if oldest is inputs:
                self._refuse(
                    inputs.number, f"it is computed from {self.nbytes} bytes, more than may be kept"
                )
            self._release(oldest)

    def _drop(self, number: int) -> None:
        found = self.find(number)
        if found is not None:
            self._release(found)

    def drop_oldest(self) -> bool:
        """Forgets the oldest step but for the newest; returns whether there was one."""
        if len(self._kept) < 2:
            return False
        self._release(self._kept[0])
        return True

    def _release(self, inputs: StepInputs) -> None:
        self._kept.remove(inputs)
        for array in inputs.arrays():
            self._uses[id(array)] -= 1
            if not self._uses[id(array)]:
                del self._uses[id(array)]
                self.nbytes -= getattr(array, "nbytes", 0)


def _state(resource: Any) -> Any:
    """Returns the state behind what a step gets, which may see it from a device."""
    return getattr(resource, "state", resource)


def _before(resource: Any) -> tuple[str, Any, Any]:
    state = _state(resource)
    value = VariableState.current(state) if state.is_initialized else None
    return state.name, state.dims, value


def _written(step: Any) -> set[int]:
    """Returns the states that a step may write, by their numbers in memory."""
    plan = step.plan
    written = {h for n in plan.program.walk() if n.writes_state for h in n.handles}
    pairs = zip(plan.handles, step.call.resources, strict=True)
    return {id(_state(r)) for h, r in pairs if h in written}


def copied(array: Any) -> Any:
    """Returns a copy that lies in memory as the array does: that may tell in the last bits."""
    if not isinstance(array, np.ndarray):
        return array
    if array.flags.forc or not array.size:
        return array.copy(order="K")
    ends = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    below = -sum(min(0, end) for end in ends)
    above = sum(max(0, end) for end in ends) + array.itemsize
    buffer = np.empty(below + above, np.uint8)
    made = np.ndarray(array.shape, array.dtype, buffer, below, array.strides)
    made[...] = array
    return made


__all__ = ["InputRecorder", "StepInputs", "copied", "refusal"]
