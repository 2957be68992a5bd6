"""Stacks by hand: `raw_ops.StackV2` and its kin. A stack lives as long as the step that made it.

Gradients of loops keep what they need in lists (see `flowscope.control.lists`), which are values;
stacks are for programs that were written for TensorFlow's. Pushes and pops run in the order that
data and control inputs say.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import compatible


class StackValue:
    """Elements, the last one first."""

    __slots__ = ("elements", "is_closed", "max_size", "name")

    def __init__(self, name: str, max_size: int) -> None:
        self.name = name
        self.max_size = max_size
        self.elements: list[Any] = []
        self.is_closed = False

    def check(self) -> None:
        """Raises InvalidArgumentError if it is closed."""
        if self.is_closed:
            raise InvalidArgumentError(f"the stack {self.name!r} is closed")


class _StackOp(Op, abstract=True):
    is_stateful: ClassVar[bool] = True
    is_differentiable: ClassVar[bool] = False


@frozen
class NewStack(_StackOp, host_inputs=(0,)):
    """A new stack without elements.

    Attributes: `element` is their dtype, `stack_name` what messages call it.
    """

    element: DType
    stack_name: str = ""

    def infer(self, max_size: Spec) -> Spec:
        if not max_size.dtype.is_integer or not compatible((), max_size.shape):
            raise DTypeError(f"expected an integer scalar as max_size, got {max_size}")
        return Spec(dtypes.variant, (), variable=Spec(self.element, None))

    def kernel(self, xp: ArrayModule, max_size: Array) -> Any:
        return StackValue(self.stack_name, int(max_size))


class StackPush(_StackOp):
    """Puts an element on a stack, and hands it on.

    Raises: InvalidArgumentError if the stack is closed, or full.
    """

    views: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, handle: Spec, elem: Spec) -> Spec:
        if elem.dtype is not _element(handle).dtype:
            raise DTypeError(f"expected an element of {_element(handle).dtype}, got {elem.dtype}")
        return elem.like()

    def kernel(self, xp: ArrayModule, stack: Any, elem: Array) -> Array:
        stack.check()
        if 0 <= stack.max_size <= len(stack.elements):
            raise InvalidArgumentError(
                f"the stack {stack.name!r} overflowed its max_size ({stack.max_size})"
            )
        stack.elements.append(elem)
        return elem


@frozen
class StackPop(_StackOp):
    """Takes the last element off a stack.

    Raises: InvalidArgumentError if the stack is closed, or empty.
    """

    dtype: DType
    views: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, handle: Spec) -> Spec:
        if self.dtype is not _element(handle).dtype:
            raise DTypeError(f"the stack's elements are {_element(handle).dtype}, not {self.dtype}")
        return Spec(self.dtype, None)

    def kernel(self, xp: ArrayModule, stack: Any) -> Array:
        stack.check()
        if not stack.elements:
            raise InvalidArgumentError(f"the stack {stack.name!r} is empty, nothing can be popped")
        return stack.elements.pop()


class StackClose(_StackOp):
    """Drops a stack's elements; nothing can be done to it any more."""

    def infer(self, handle: Spec) -> tuple[Spec, ...]:
        _element(handle)
        return ()

    def kernel(self, xp: ArrayModule, stack: Any) -> None:
        stack.is_closed = True
        stack.elements.clear()


def _element(handle: Spec) -> Spec:
    if handle.dtype is not dtypes.variant or handle.variable is None:
        raise DTypeError(f"expected a stack, got {handle}")
    return handle.variable


__all__ = ["NewStack", "StackClose", "StackPop", "StackPush", "StackValue"]
