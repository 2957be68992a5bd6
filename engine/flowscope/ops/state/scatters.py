"""Functions that change parts of a variable: by indices, by positions, by a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import int32
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import range as range_of, shape, zeros_like
from flowscope.ops.array.joining import stack
from flowscope.ops.array.shaping import reshape
from flowscope.ops.array.slicing import StridedSlice
from flowscope.ops.core.build import apply
from flowscope.ops.state import variable_ops as state

if TYPE_CHECKING:
    from flowscope.ops.state.variables import Variable

__all__ = [
    "batch_scatter_update",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
]


def _scatter(how: str, what: str, nd: bool = False) -> Callable[..., Tensor]:
    kind = f"nd_{how}" if nd else how

    def scatter(
        ref: Variable,
        indices: Any,
        updates: Any,
        use_locking: bool = False,
        name: str | None = None,
    ) -> Tensor:
        return apply(
            state.ScatterVariable(how, nd),
            ref.handle,
            convert_to_tensor(indices, preferred_dtype=int32),
            convert_to_tensor(updates, ref.dtype),
            name=name or "Scatter" + "".join(part.title() for part in kind.split("_")),
        )

    scatter.__name__ = scatter.__qualname__ = f"scatter_{kind}"
    places = "positions, spelled out by the last axis" if nd else "places along the first axis"
    scatter.__doc__ = f"""Returns the new value of `ref`; running it {what}, atomically.

    Args:
        ref: A variable.
        indices: Integers: {places}.
        updates: A value for each of them, of `ref`'s dtype.
        use_locking: Writes are always atomic.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if an index is out of range.
    """
    return scatter


scatter_update = _scatter("update", "sets slices of it")
scatter_add = _scatter("add", "adds to slices of it, once for each time that they are named")
scatter_sub = _scatter("sub", "subtracts from slices of it")
scatter_mul = _scatter("mul", "multiplies slices of it")
scatter_div = _scatter("div", "divides slices of it")
scatter_min = _scatter("min", "lowers slices of it to at most the updates")
scatter_max = _scatter("max", "raises slices of it to at least the updates")
scatter_nd_update = _scatter("update", "sets elements or slices of it", nd=True)
scatter_nd_add = _scatter("add", "adds to elements or slices of it", nd=True)
scatter_nd_sub = _scatter("sub", "subtracts from elements or slices of it", nd=True)
scatter_nd_min = _scatter("min", "lowers parts of it to at most the updates", nd=True)
scatter_nd_max = _scatter("max", "raises parts of it to at least the updates", nd=True)


def batch_scatter_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Returns the new value of `ref`; running it sets slices of each element of a batch.

    Args:
        ref: A variable, [batch..., n, ...].
        indices: Places along the axis behind the batch, [batch..., k].
        updates: A slice for each of them, [batch..., k, ...].
        use_locking: Writes are always atomic.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the rank of `indices` is not known, or an index is out of range.
    """
    del use_locking
    places = convert_to_tensor(indices, preferred_dtype=int32)
    rank = places.spec.rank
    if not rank:
        raise expected("indices of a known rank, at least 1", repr(places))
    with places.graph.name_scope(name or "BatchScatterUpdate"):
        sizes = shape(places, out_type=places.dtype)
        none = zeros_like(places)
        columns = [
            none + reshape(range_of(sizes[i]), [-1 if j == i else 1 for j in range(rank)])
            for i in range(rank - 1)
        ]
        return scatter_nd_update(ref, stack([*columns, places], axis=-1), updates)


class VariablePart(Tensor):
    """A part of a variable's value, `v[key]`: a tensor that can be assigned to."""

    __slots__ = ()

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Returns the variable's new value; running it sets the part.

        Args:
            value: A value of the part's shape, or a scalar.
            use_locking: Writes are always atomic.
            name: Name of the operation.
        """
        del use_locking
        (read, *given), key = self.op.inputs, self.op.definition
        op = state.AssignStridedSlice(key.key)  # type: ignore[attr-defined]
        new = convert_to_tensor(value, self.dtype)
        return apply(op, read.op.inputs[0], new, *given, name=name or "strided_slice_assign")


def part_of_variable(part: Tensor) -> Tensor:
    """Returns a part of a variable's value as one that can be assigned to, where it is one."""
    op = part.op
    if type(op.definition) is not StridedSlice or ("new",) in op.definition.key:
        return part
    op.outputs = [VariablePart(op, 0, part.spec)]
    return op.outputs[0]
