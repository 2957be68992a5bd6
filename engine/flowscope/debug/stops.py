"""Stops: a step that is held, what is alive there, and how it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from flowscope.debug.order import Order, Place
from flowscope.debug.statistics import Picture, Statistics, picture, statistics
from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.graph.current_step import current_step
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import of_numpy
from flowscope.graph.values.shapes import text as shape_text
from flowscope.ops.core.send_recv import Send, Transfer
from flowscope.plan.analysis.locations import LoopAt, StepLocation, StopPoint
from flowscope.plan.ir.structured import loop_name
from flowscope.plan.ir.tensor_map import TensorAt
from flowscope.plan.plan import Plan
from flowscope.runtime.session.remote import asked, is_array
from flowscope.runtime.session.replayer import Replayer, ReplayPosition
from flowscope.runtime.waits.predicates import END_OF_STEP, NEXT_ITERATION, NEXT_OP

if TYPE_CHECKING:
    from flowscope.debug.culprit import Culprit
    from flowscope.debug.debugger import Debugger
    from flowscope.runtime.planning.planner import Planner
    from flowscope.runtime.step.step import Step
    from flowscope.runtime.waits.gate import Gate

#: "alive": its value can be seen; "not yet": it is still to be computed; "gone": nothing needed it
#: any more; "absent": it has no value in this plan.
State = Literal["alive", "not yet", "gone", "absent"]


class Debugged(Protocol):
    """What runs the steps that are held: a session, or a replay of one of its steps."""

    graph: Graph
    gate: Gate

    @property
    def planner(self) -> Planner: ...  # noqa: D102
    @property
    def debug(self) -> Debugger: ...  # noqa: D102


@frozen
class StoppedTensor:
    """A tensor as it is at a stop.

    Attributes:
        name: The tensor's name.
        state: Whether it has a value now.
        why: What to know of it, as a sentence: since when it is gone, what it is the same as.
        statistics: Numbers of its elements; None where it has no value.
    """

    name: str
    state: State
    why: str
    statistics: Statistics | None


class Stop:
    """A step that is held. Made by `Debugger.stops`, `wait` and `on_stop`.

    What is alive may be looked at as long as the step stands there; arrays are copies. Nothing of
    it is kept when the step goes on.

    Args:
        session: The session, or the replay.
        step: The step.

    Attributes:
        step: The number of the run in its session; None before it has one.
        breakpoint: The breakpoint that it is held at; None for a pause or a move.
    """

    def __init__(self, session: Debugged, step: Step) -> None:
        self._session = session
        self._step = step
        self._number = step.stops
        self.step = step.number
        self.breakpoint = step.met
        with self._there() as here:
            #: As it stands in the plan: (loops around, node that comes next).
            self._where: StepLocation | None = None if here is None else here.where()

    def _there(self) -> AbstractContextManager[StopPoint | None]:
        return self._session.gate.at_stop(self._step, self._number)

    # -- where it is ----------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """What tells it from all other stops of the session."""
        return f"{id(self._step):x}.{self._number}"

    @property
    def is_past(self) -> bool:
        """Whether it is a step of the past that is computed again."""
        return isinstance(self._session, Replayer)

    @property
    def is_there(self) -> bool:
        """Whether the step still stands there."""
        return self._step.stops == self._number and self._step.held > 0

    @property
    def op(self) -> Operation | None:
        """The operation that runs next; None at the end of an iteration or of the step."""
        node = None if self._where is None else self._where.node
        return node.origins[0].operation if node is not None and node.origins else None

    @property
    def device(self) -> str:
        """The device on which that runs, of a worker too; of a transfer the one that receives.

        "" where `op` is None.
        """
        node = None if self._where is None else self._where.node
        if node is not None and isinstance(node.op, Send):
            return node.op.recv_device
        return "" if node is None else node.device

    @property
    def transfer(self) -> tuple[str, str] | None:
        """What is sent next, and the device that sends it; None where that is no transfer."""
        node = None if self._where is None else self._where.node
        if node is None or not isinstance(node.op, Transfer | Send):
            return None
        return node.inputs[0].label, node.op.send_device

    @property
    def iterations(self) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around, from the outermost."""
        return tuple([at.iteration for at in self.loops])

    @property
    def frame(self) -> str:
        """The loops around with their iterations: "outer:3/inner:0"; "" outside of loops."""
        return "/".join(f"{loop_name(at.node)}:{at.iteration}" for at in self.loops)

    @property
    def plan(self) -> Plan:
        """The plan of the step."""
        return self._step.plan

    @property
    def loops(self) -> tuple[LoopAt, ...]:
        """The loops around, from the outermost."""
        return () if self._where is None else self._where.loops

    def __repr__(self) -> str:
        node = None if self._where is None else self._where.node
        at = f'before "{node.name}"' if node is not None else "at the end of an iteration"
        if self._where is None:
            at = "between two operations"
        kind = "replay of step" if self.is_past else "step"
        text = f"<fs.Stop of {kind} {self.step} {at}" + (f" in {self.frame}" if self.frame else "")
        if not self.device.startswith(("/job:localhost", "/job:client")) and self.device:
            text += f" on {self.device}"
        if self.breakpoint is not None:
            text += f", breakpoint {self.breakpoint.number}"
        return text + ">"

    # -- values ---------------------------------------------------------------------------------

    def values(self) -> dict[str, Statistics]:
        """The live values: names of tensors, with their numbers of elements.

        Tensors that share a value are one entry, by the name of the first. Constants are always
        alive and are not among them: `look` tells of them.
        """
        found: dict[str, Statistics] = {}
        tensors = self._step.plan.tensors
        with self._there() as here:
            for identity, array in ({} if here is None else here.values()).items():
                if tensors.is_constant(identity):
                    continue
                keys = tensors.tensors_of(identity)
                owners = [(self._operations.get(op), i) for op, i, _ in keys]
                names = [op.outputs[i].name for op, i in owners if op is not None]
                if names and is_array(array):
                    found[names[0]] = asked(statistics, array)
        return found

    def value(self, tensor: Tensor | Operation | str, index: Any = ()) -> Any:
        """Returns a copy of a tensor's value, or of a part of it.

        Args:
            tensor: A tensor, or its name; an operation stands for its first output.
            index: What is taken of it, such as `np.s_[0, :10]`: only that is copied.

        Raises:
            FailedPreconditionError: if it has no value here: the message says why.
        """
        with self._there() as here:
            array = self._found(self._tensor(tensor), here)
            return asked(partial(_part, index), array)

    @property
    def _operations(self) -> Mapping[int, Operation]:
        return self._step.plan.operations

    def picture(self, tensor: Tensor | Operation | str, index: Any = ()) -> Picture | None:
        """Returns a tensor's value as rows of grey levels; None of strings and of nothing."""
        with self._there() as here:
            array = self._found(self._tensor(tensor), here)
            found: Picture | None = asked(partial(_picture, index), array)
            return found

    def look(self, tensor: Tensor | Operation | str) -> StoppedTensor:
        """The state of a tensor here: alive, not made yet, freed since some operation, absent."""
        tensor = self._tensor(tensor)
        with self._there() as here:
            alive = {} if here is None else here.values()
            for at in self._step.plan.locate(tensor):
                array = self._array(at, alive)
                if array is not None:
                    why = "" if at.kind == "value" else at.why
                    return StoppedTensor(tensor.name, "alive", why, asked(statistics, array))
        return self._absent(tensor)

    def _array(self, at: TensorAt, alive: dict[object, Any]) -> Any:
        if at.kind == "constant":
            return at.constant
        found = None if at.value is None else alive.get(at.value.identity)
        return found if is_array(found) else None

    def _absent(self, tensor: Tensor) -> StoppedTensor:
        order = Order(self._step.plan.program)
        answers = self._step.plan.locate(tensor)
        for at in answers:
            if at.value is None:
                continue
            reader = order.last_reader(at.value)
            if at.value.node is None:  # a parameter of a loop's body, or a feed
                last = None if reader is None else order.place_of_node(reader)
                if reader and last is not None and not order.is_before(self._place(order), last):
                    return StoppedTensor(tensor.name, "gone", f'gone since "{reader.name}"', None)
                return StoppedTensor(tensor.name, "not yet", "it is a value of a loop's body", None)
            place = order.place_of_node(at.value.node)
            if place is not None and order.is_untaken(self._place(order), place):
                return StoppedTensor(tensor.name, "absent", "its branch is not taken", None)
            if place is None or order.is_before(self._place(order), place):
                return StoppedTensor(tensor.name, "not yet", at.why, None)
            since = f'gone since "{reader.name}"' if reader else "nothing needed it any more"
            return StoppedTensor(tensor.name, "gone", since, None)
        return StoppedTensor(tensor.name, "absent", answers[0].why, None)

    def _place(self, order: Order) -> Place:
        node = None if self._where is None else self._where.node
        loops = [at.node for at in self.loops]
        return order.place(node, loops[-1] if loops else None)

    def _found(self, tensor: Tensor, here: StopPoint | None) -> Any:
        alive = {} if here is None else here.values()
        for at in self._step.plan.locate(tensor):
            array = self._array(at, alive)
            if array is not None:
                return array
        look = self._absent(tensor)
        raise FailedPreconditionError(f'"{tensor.name}" has no value here: {look.why}')

    def _tensor(self, tensor: Tensor | Operation | str) -> Tensor:
        return tensor_of(self._session.graph, tensor)

    def culprit(self, computes: bool = True) -> Culprit | None:
        """Returns the operation that made the value for which a watchpoint holds the step.

        Where its inputs are gone, and the step is recorded (`Debugger.record`, `stop_at_nan`), the
        step is computed again up to it.

        Args:
            computes: Whether it may be computed again.

        Returns:
            None where no watchpoint holds it, and where no operation is known.
        """
        return self._session.debug.culprit(self, computes)

    # -- replacing ------------------------------------------------------------------------------

    def replace(self, tensor: Tensor | Operation | str, value: Any) -> None:
        """Gives a tensor another value, for all that runs from here on.

        What follows is what a run gives in which the tensor is fed, as far as nothing has read it
        yet: stand behind the operation (`break_after`). What has run has run.

        Args:
            tensor: A tensor that is alive, or its name.
            value: An array of the tensor's dtype and shape; it is copied.

        Raises:
            InvalidArgumentError: if dtype or shape do not fit.
            FailedPreconditionError: if it has no value here, is a constant, or shares its value
                with a tensor that would not change if this one were fed.
        """
        tensor = self._tensor(tensor)
        array = _checked(tensor, value)
        with self._there() as here:
            self._found(tensor, here)
            for at in self._step.plan.locate(tensor):
                self._check_own(tensor, at)
                assert at.value is not None
                if here is None or not here.replace(at.value.identity, array):
                    raise FailedPreconditionError(
                        f'"{tensor.name}" cannot be replaced here: it is used outside of the code '
                        'that stands here; run with fs.ConfigProto(mode="op")'
                    )

    def _check_own(self, tensor: Tensor, at: TensorAt) -> None:
        """Refuses a value that is shared with what the tensor does not lead to."""
        told = 'run with fs.ConfigProto(mode="op"), which merges nothing, to replace it alone'
        if at.kind == "constant" or tensor.spec.constant is not None:
            raise FailedPreconditionError(
                f'"{tensor.name}" is known before the step, and others were computed with it: feed '
                "it, or make it a variable"
            )
        if at.kind == "same":
            raise FailedPreconditionError(
                f'"{tensor.name}" has no value of its own: {at.why}; {told}'
            )
        assert at.value is not None
        for op, index, _ in self._step.plan.tensors.tensors_of(at.value.identity):
            owner = self._operations.get(op)
            other = tensor if owner is None else owner.outputs[index]
            if other is not tensor and not self._leads_to(tensor, other):
                raise FailedPreconditionError(
                    f'"{tensor.name}" shares its value with "{other.name}", which would change '
                    f"too; {told}"
                )

    def _leads_to(self, tensor: Tensor, other: Tensor) -> bool:
        """Whether another tensor that has the same value hands this one on."""
        stack, seen = [other], {other}
        while stack:
            for t in stack.pop().op.inputs:
                if t is tensor:
                    return True
                if t not in seen:
                    seen.add(t)
                    stack.append(t)
        return False

    # -- going on -------------------------------------------------------------------------------

    def resume(self) -> None:
        """Lets all steps of the session go on."""
        self._session.gate.request("resume")

    def step_op(self) -> None:
        """Lets this step run one more operation; others that are held stay so."""
        self._session.gate.run_until(NEXT_OP.of(self._step))

    def step_iteration(self) -> None:
        """Lets this step run until the next iteration of a loop ends."""
        self._session.gate.run_until(NEXT_ITERATION.of(self._step))

    def step_out(self) -> None:
        """Lets this step run until the innermost loop that it is in has ended."""
        self._session.gate.step_out(self._step)

    def step_run(self) -> None:
        """Lets this step run to its end, and holds it there."""
        self._session.gate.run_until(END_OF_STEP.of(self._step.whole))

    def step_back(self) -> Stop:
        """Returns a stop before the operation that ran last: the step is computed again up to it.

        The step itself stays where it is; what is returned is a stop of its replay, which can be
        stepped on and back too, with the values as they were. It needs `Debugger.record` before the
        step began.

        Raises:
            FailedPreconditionError: if the step was not recorded, or cannot be computed again.
            NotFoundError: if nothing has run yet.
        """
        return self._session.debug.back(self)

    @property
    def position(self) -> ReplayPosition | None:
        """Where it is in whichever plan of its program; None at the end of the step."""
        return None if self._where is None else ReplayPosition.of(self._where)

    def stop(self) -> None:
        """Ends this step: it raises CancelledError; variables are as its last whole update left
        them.
        """
        self._session.gate.stop_step(self._step)

    @property
    def is_own_thread(self) -> bool:
        """Whether this thread runs the step."""
        return current_step() is self._step


def tensor_of(graph: Graph, tensor: Tensor | Operation | str) -> Tensor:
    """Returns the tensor that is meant: an operation stands for its first output.

    Raises:
        InvalidArgumentError: if the operation has none.
    """
    found: Tensor | Operation = graph.as_graph_element(tensor)
    if isinstance(found, Tensor):
        return found
    if not found.outputs:
        raise InvalidArgumentError(f'"{found.name}" has no output: it has no value')
    return found.outputs[0]


def _part(index: Any, array: Any) -> Any:
    """Returns a copy of a part of an array."""
    return np.array(np.asarray(array)[index])[()]


def _picture(index: Any, array: Any) -> Picture | None:
    return picture(np.asarray(array)[index])


def _checked(tensor: Tensor, value: Any) -> Any:
    """Returns a copy of an array that can take a tensor's place."""
    array = np.array(value, order="C")
    spec = tensor.spec
    if of_numpy(array.dtype) is not spec.dtype:
        raise InvalidArgumentError(
            f'"{tensor.name}": expected an array of {spec.dtype.name}, got {array.dtype}'
        )
    if spec.shape is not None and not _fits(array.shape, spec.shape):
        raise InvalidArgumentError(
            f'"{tensor.name}": expected the shape {shape_text(spec.shape)}, got '
            f"{shape_text(array.shape)}"
        )
    return array[()]


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        b is None or a == b for a, b in zip(shape, wanted, strict=True)
    )


__all__ = ["Debugged", "State", "Stop", "StoppedTensor", "tensor_of"]
