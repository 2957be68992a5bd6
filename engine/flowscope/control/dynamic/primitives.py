"""The primitives of dynamic control flow: what branches and loops become when a plan is lowered.

A *frame* is one execution of a loop, an *iteration* one pass through its body. Values carry the
frame and iteration that they belong to, and may be *dead*: what was not taken. Only the token
executor runs these ops (`flowscope.executor`), which does all that they do itself: they have no
kernels.

Source: Yu et al. 2018, "Dynamic control flow in large-scale machine learning"; outputs as in
TensorFlow 1.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.control.lists import element_spec, list_spec
from flowscope.control.specs import outside
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import bool_, int32
from flowscope.graph.values.shapes import Dims
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.core.build import apply_many
from flowscope.ops.math.elementwise import equal


@frozen
class Primitive(Op, abstract=True):
    """Base class of the ops that move values between branches, frames and iterations."""

    is_differentiable: ClassVar[bool] = False

    @property
    def is_pure(self) -> bool:
        """Never merged and never folded: what they do depends on frames and dead values."""
        return False

    @property
    def has_effect(self) -> bool:
        """They do nothing beyond their outputs."""
        return False


@frozen
class Switch(Primitive, host_inputs=(1,)):
    """Hands `data` to one of two outputs, the other one is dead.

    Outputs: output_false, output_true. Both are dead where `data` or `pred` is.
    Raises: DTypeError or InvalidArgumentError if `pred` is no bool scalar.
    """

    is_differentiable: ClassVar[bool] = True
    views: ClassVar[Any] = (0,)

    def infer(self, data: Spec, pred: Spec) -> Any:
        _check_pred(pred)
        return outside(data), outside(data)

    def grad(self, g: Any, y: Any, data: Tensor, pred: Tensor) -> Any:
        # A cotangent may be alive where its side is not: it is a constant, say.
        zeros = zeros_like(data)
        sides = [apply_many(Switch(), zeros if c is None else c, pred)[i] for i, c in enumerate(g)]
        return apply_many(Merge(), *sides)[0], None


@frozen
class Merge(Primitive, host_outputs=(1,)):
    """Hands on the first of its inputs that is alive; dead once all of them are.

    Outputs: output, value_index (int32: which input it was).
    Raises: DTypeError if the inputs' dtypes differ, InvalidArgumentError if there is none.
    """

    is_differentiable: ClassVar[bool] = True
    takes_back_edge: ClassVar[bool] = True
    views: ClassVar[Any] = (0,)

    def infer(self, *inputs: Spec) -> Any:
        if not inputs:
            raise InvalidArgumentError("expected at least one input, got none")
        first = inputs[0]
        for i, spec in enumerate(inputs):
            if spec.dtype is not first.dtype:
                raise DTypeError(f"input 0 is {first.dtype}, but input {i} is {spec.dtype}")
        shape = first.shape
        for spec in inputs[1:]:
            shape = _common(shape, spec.shape)
        return Spec(first.dtype, shape, variable=first.variable), Spec(int32, ())

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        return tuple([apply_many(Switch(), g[0], equal(y[1], i))[1] for i in range(len(inputs))])


@frozen
class Enter(Primitive):
    """Hands its input to the first iteration of a frame, and starts the frame if it is the first.

    Attributes:
        frame_name: Names the frame within the iteration around it.
        is_constant: Whether every iteration gets the value: it does not change in the loop.
        parallel_iterations: At most so many iterations are on their way at once, at least 1.

    Raises: InvalidArgumentError if `parallel_iterations` is less than 1.
    """

    frame_name: str
    is_constant: bool = False
    parallel_iterations: int = 10
    views: ClassVar[Any] = (0,)

    def infer(self, data: Spec) -> Spec:
        if not self.frame_name:
            raise InvalidArgumentError("expected a frame_name, got ''")
        if self.parallel_iterations < 1:
            raise InvalidArgumentError(
                f"expected parallel_iterations of at least 1, got {self.parallel_iterations}"
            )
        return outside(data)


@frozen
class Exit(Primitive):
    """Hands its input out of the frame, to the iteration around it."""

    views: ClassVar[Any] = (0,)

    def infer(self, data: Spec) -> Spec:
        return outside(data)


@frozen
class NextIteration(Primitive):
    """Hands its input to the next iteration of the frame; nothing where it is dead."""

    makes_back_edge: ClassVar[bool] = True
    views: ClassVar[Any] = (0,)

    def infer(self, data: Spec) -> Spec:
        return outside(data)


@frozen
class LoopCond(Primitive, host_inputs=(0,), host_outputs=(0,)):
    """Its input: whether a loop runs another iteration.

    Raises: DTypeError or InvalidArgumentError if it is no bool scalar.
    """

    def infer(self, pred: Spec) -> Spec:
        _check_pred(pred)
        return outside(pred)


@frozen
class ControlTrigger(Primitive):
    """Nothing; alive even where what it waits for is dead."""

    def infer(self) -> Any:
        return ()


@frozen
class ListPush(Op):
    """A list with one more element at its end: (list, element) -> list."""

    template: ClassVar[str | None] = "({1}, {0})"
    views: ClassVar[Any] = (0, 1)
    is_differentiable: ClassVar[bool] = False

    def infer(self, rest: Spec, x: Spec) -> Spec:
        element_spec(rest)
        return list_spec(x)

    def kernel(self, xp: ArrayModule, rest: Any, x: Array) -> Any:
        return (x, rest)


@frozen
class ListPop(Op):
    """The last element of a list, and the list before it."""

    template: ClassVar[str | None] = "{0}"
    views: ClassVar[Any] = (0,)
    is_differentiable: ClassVar[bool] = False

    def infer(self, x: Spec) -> Any:
        return outside(element_spec(x)), outside(x)

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        return None

    def kernel(self, xp: ArrayModule, x: Any) -> Any:
        return x


def _check_pred(pred: Spec) -> None:
    if pred.dtype is not bool_:
        raise DTypeError(f"expected a bool as pred, got {pred}")
    if pred.shape not in (None, ()):
        raise InvalidArgumentError(f"expected a scalar as pred, got {pred}")


def _common(a: Dims, b: Dims) -> Dims:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])


__all__ = [
    "ControlTrigger",
    "Enter",
    "Exit",
    "ListPop",
    "ListPush",
    "LoopCond",
    "Merge",
    "NextIteration",
    "Primitive",
    "Switch",
]
