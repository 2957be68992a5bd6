"""What the functions that run cells along time have in common."""

from __future__ import annotations

from typing import Any

from flowscope import nest
from flowscope.control.tracing import Composite
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, int32
from flowscope.ops.array.arrays import shape
from flowscope.ops.array.selection import where
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.host.checks import assert_equal
from flowscope.rnn.cell import tensors_of

__all__ = [
    "batch_size_of",
    "check_structure",
    "first_state",
    "lengths_of",
    "one_dtype",
    "passed_through",
]


def batch_size_of(tensors: list[Tensor], axis: int) -> Any:
    """Returns the batch size: an integer where one tensor knows it, else a tensor.

    Raises:
        InvalidArgumentError: if they contradict, or one has no such axis.
    """
    for t in tensors:
        if t.spec.shape is not None and len(t.spec.shape) <= axis:
            raise InvalidArgumentError(f'expected inputs of a batch, got {t.spec} ("{t.name}")')
    known = {t.name: t.spec.shape[axis] for t in tensors if t.spec.shape is not None}
    sizes = {n for n in known.values() if n is not None}
    if len(sizes) > 1:
        raise InvalidArgumentError(f"expected inputs of one batch size, got {known}")
    return sizes.pop() if sizes else shape(tensors[0])[axis]


def first_state(cell: Any, initial_state: Any, batch_size: Any, dtype: Any) -> Any:
    """Returns the state to begin with: what was given, or the cell's own.

    Raises:
        InvalidArgumentError: if neither a state nor a dtype is given.
        DTypeError: if the state has another structure than the cell's.
    """
    if initial_state is not None:
        sizes = len(nest.flatten(cell.state_size))
        state = nest.flatten(tensors_of(initial_state))
        if len(state) != sizes:
            raise DTypeError(
                f"expected an initial_state in the structure of {cell.state_size}, the cell's "
                f"state_size, got {initial_state!r}"
            )
        return nest.pack_sequence_as(cell.state_size, state)
    if dtype is None:
        raise InvalidArgumentError(
            "expected an initial_state, or a dtype to make zeros of, got neither"
        )
    if hasattr(cell, "get_initial_state"):
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def one_dtype(dtype: Any, state: Any) -> DType:
    """Returns the dtype of the outputs: the one given, or the state's.

    Raises:
        InvalidArgumentError: if none is given and the state has several.
    """
    if dtype is not None:
        return as_dtype(dtype)
    found: set[DType] = {t.dtype for t in nest.flatten(state)}
    if len(found) != 1:
        raise InvalidArgumentError(
            f"expected a dtype for the outputs: the state has {sorted(d.name for d in found)}"
        )
    (only,) = found
    return only


def lengths_of(sequence_length: Any, batch_size: Any) -> Tensor | None:
    """Returns the sequences' lengths as int32; their number is checked.

    Raises:
        InvalidArgumentError: if they are no vector of the batch size.
    """
    if sequence_length is None:
        return None
    lengths = cast(convert_to_tensor(sequence_length), int32)
    dims = lengths.spec.shape
    if dims is not None and len(dims) != 1:
        raise InvalidArgumentError(
            f'expected a vector [batch] as sequence_length, got {lengths.spec} ("{lengths.name}")'
        )
    if isinstance(batch_size, int) and dims is not None and dims[0] is not None:
        if dims[0] != batch_size:
            raise InvalidArgumentError(
                f"expected a sequence_length for each of the {batch_size} rows, got {dims[0]}"
            )
        return identity(lengths, "sequence_length")
    text = "expected a sequence_length for each row of the batch"
    check = assert_equal(shape(lengths)[0], batch_size, message=text)
    with lengths.graph.control_dependencies([check]):
        return identity(lengths, "sequence_length")


def passed_through(is_over: Tensor, before: Any, after: Any) -> Any:
    """Returns `after`, and for rows that are over, `before`.

    Scalars and tensor arrays have no rows: they are always `after`.
    """

    def chosen(old: Any, new: Any) -> Any:
        if isinstance(old, Composite) or old.spec.shape == ():
            return new
        found = where(is_over, old, new)
        found.set_shape(old.shape)
        return found

    return nest.map_structure(chosen, before, after)


def check_structure(what: str, expected: Any, found: Any) -> None:
    """Checks that a cell or a user's function returned the right structure.

    Raises:
        DTypeError, InvalidArgumentError: if the structures differ.
    """
    try:
        nest.assert_same_structure(expected, found)
    except InvalidArgumentError as e:
        raise type(e)(f"expected {what} in the structure of {expected!r}: {e.message}") from None
