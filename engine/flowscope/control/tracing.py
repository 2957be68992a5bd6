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
from flowscope.ops.core.flow import identity
from flowscope.ops.host.checks import ensure_shape
from flowscope.ops.sparse.sparse_tensor import SparseTensor


class Composite:
    """Base of objects that travel through branches and loops as tensors: tensor arrays, say."""

    def to_flow(self) -> Tensor:
        """Returns the tensor that stands for it."""
        raise NotImplementedError

    def from_flow(self, tensor: Tensor) -> Any:
        """Returns an object like this one, for another tensor."""
        raise NotImplementedError

    def common(self, other: Any) -> Any:
        """Returns an object like this one, of which holds what holds of both."""
        raise NotImplementedError

    def lasting(self, after: Any) -> Any:
        """Returns itself, or an object like it of which holds what an iteration leaves true."""
        raise NotImplementedError


#: What stands for several tensors.
_SPARSE = (IndexedSlices, SparseTensor)


def parts(value: Any) -> list[Tensor]:
    """Returns the tensors that a leaf of what a user gave or returned stands for.

    That is one, but for slices and sparse tensors: values, indices and dense shape.
    """
    if isinstance(value, Composite):
        return [value.to_flow()]
    if isinstance(value, _SPARSE):
        found = [value.values, value.indices, value.dense_shape]
        return [t for t in found if t is not None]
    return [convert_to_tensor(value)]


def _count(leaf: Any) -> int:
    return len(parts(leaf)) if isinstance(leaf, _SPARSE) else 1


def _leaf(like: Any, tensors: list[Tensor]) -> Any:
    if isinstance(like, Composite):
        return like.from_flow(*tensors)
    if isinstance(like, SparseTensor):
        values, indices, dense_shape = tensors
        return SparseTensor(indices, values, dense_shape)
    return IndexedSlices(*tensors) if isinstance(like, IndexedSlices) else tensors[0]


def from_tensors(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """Returns tensors in the form of a structure, in which some stand for composites."""
    rest = list(tensors)
    leaves = []
    for like in nest.flatten(structure):
        n = _count(like)
        leaves.append(_leaf(like, rest[:n]))
        del rest[:n]
    return nest.pack_sequence_as(structure, leaves)


def kind(leaf: Any) -> str:
    """The name of a leaf in messages: "a tensor", "a SparseTensor", ..."""
    is_special = isinstance(leaf, Composite | IndexedSlices | SparseTensor)
    return f"fs.{type(leaf).__name__}" if is_special else "a tensor"


def matched(leaf: Any, like: Any) -> Any:
    """Returns a leaf as what stands where `like` does: slices become dense for a tensor.

    Raises:
        DTypeError: if one is a sparse tensor or an array, and the other is not.
    """
    has_shape = not isinstance(leaf, IndexedSlices) or len(parts(leaf)) == _count(like)
    if kind(leaf) == kind(like) and has_shape:
        return leaf
    if isinstance(leaf, IndexedSlices) and kind(like) == "a tensor":
        return convert_to_tensor(leaf)
    without = "" if has_shape else ", one of them without a dense_shape"
    raise DTypeError(f"expected {kind(like)}, got {kind(leaf)}{without}")


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


def results(value: Any, what: str, ran: Any) -> list[Tensor]:
    """Returns one result of a user's function as tensors of the block that is being built.

    Args:
        value: A tensor, what can be made one, a composite, or an operation.
        what: What returned it, for messages.
        ran: What stands for an operation: a value that is there once it has run.
    """
    if value is None:
        raise InvalidArgumentError(f"{what} returned None: expected tensors or operations")
    if isinstance(value, Operation):
        if ran is None:
            raise DTypeError(
                f'{what} returned the operation "{value.name}": expected tensors; operations of a '
                "body run though nothing returns them"
            )
        with value.graph.control_dependencies([value]):
            return [identity(ran)]
    try:
        return parts(value)
    except DTypeError as e:
        raise DTypeError(f"{what} returned {value!r}: {e.message}") from None


def scalar(pred: Tensor) -> Tensor:
    """Returns a predicate that a step checks to be a scalar, where that is not known before."""
    return ensure_shape(pred, ()) if pred.spec.shape is None else pred


def call(function: Callable[..., Any], what: str, *args: Any) -> Any:
    """The result of a user's function.

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
    "kind",
    "matched",
    "parts",
    "results",
    "scalar",
    "waits_outside",
]
