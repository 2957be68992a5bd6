"""How users' Python functions become the blocks of branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flowscope import nest
from flowscope.control.blocks import Function
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops.flow import identity


class Composite:
    """Base of objects that travel through branches and loops as tensors: tensor arrays, say."""

    def to_flow(self) -> Tensor:
        """Returns the tensor that stands for it."""
        raise NotImplementedError

    def from_flow(self, tensor: Tensor) -> Any:
        """Returns an object like this one, for another tensor."""
        raise NotImplementedError


def to_tensor(value: Any) -> Tensor:
    """Returns what a user gave or returned as a tensor."""
    if isinstance(value, Composite):
        return value.to_flow()
    if isinstance(value, IndexedSlices):
        return convert_to_tensor(value)
    return convert_to_tensor(value)


def from_tensors(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """Returns tensors in the form of a structure, in which some stand for composites."""
    leaves = [
        like.from_flow(t) if isinstance(like, Composite) else t
        for like, t in zip(nest.flatten(structure), tensors, strict=True)
    ]
    return nest.pack_sequence_as(structure, leaves)


@contextmanager
def building(function: Function, scope: str) -> Iterator[None]:
    """Adds operations to a function's block; drops the function if that fails."""
    graph = function.graph
    try:
        with graph.enter_block(function.block), graph.name_scope(scope):
            yield
    except BaseException:
        graph.functions.pop(function.name, None)
        raise


def result(value: Any, what: str, ran: Any) -> Tensor:
    """Returns one result of a user's function as a tensor of the block that is being built.

    Args:
        value: A tensor, what can be made one, or an operation.
        what: What returned it, for messages.
        ran: What stands for an operation: a value that is there once it has run.
    """
    if value is None:
        raise InvalidArgumentError(f"{what} returned None: expected tensors or operations")
    if isinstance(value, Operation):
        with value.graph.control_dependencies([value]):
            return identity(ran)
    try:
        return to_tensor(value)
    except DTypeError as e:
        raise DTypeError(f"{what} returned {value!r}: {e.message}") from None


def call(function: Callable[..., Any], what: str, *args: Any) -> Any:
    """Returns what a user's function returns.

    Raises:
        DTypeError: if it cannot be called.
    """
    if not callable(function):
        raise DTypeError(f"expected a function as {what}, got {function!r}")
    return function(*args)


def waits_outside(graph: Graph, functions: Sequence[Function]) -> list[Operation]:
    """Returns operations outside that those of some blocks wait for; the owner has to."""
    blocks = [f.block for f in functions]
    found = [
        c
        for b in blocks
        for op in b.operations
        for c in op.control_inputs
        if c.block is not b and not any(x.encloses(c.block) for x in blocks)
    ]
    return list(dict.fromkeys(found))


__all__ = [
    "Composite",
    "building",
    "call",
    "from_tensors",
    "result",
    "to_tensor",
    "waits_outside",
]
