"""Sparse tensors sorted, reshaped, transposed, sliced, split and joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import range as range_
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import (
    add,
    greater_equal,
    less,
    logical_and,
    maximum,
    minimum,
    multiply,
    subtract,
)
from flowscope.ops.math.reductions import reduce_all, reduce_max
from flowscope.ops.sparse.index_ops import (
    SparseConcatShape,
    SparseFillEmptyRows,
    SparseOrder,
    SparseResetShape,
    SparseReshape,
)
from flowscope.ops.sparse.sparse_tensor import SparseTensor, as_sparse

__all__ = [
    "sparse_concat",
    "sparse_fill_empty_rows",
    "sparse_reorder",
    "sparse_reset_shape",
    "sparse_reshape",
    "sparse_retain",
    "sparse_slice",
    "sparse_split",
    "sparse_transpose",
]


def _rank(x: SparseTensor) -> int:
    if x.rank is None:
        raise expected("a sparse tensor of known rank", repr(x))
    return x.rank


def shaped(x: SparseTensor, shape: Any) -> SparseTensor:
    """Returns x with what is known of its shape."""
    x.set_shape(shape)
    return x


# -- dense and back -------------------------------------------------------------------------------


# -- order and shape ------------------------------------------------------------------------------


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor with its coordinates in row-major order.

    Raises:
        InvalidArgumentError: if a coordinate is outside the shape.
    """
    x = as_sparse(sp_input)
    name = name or "SparseReorder"
    places, order = apply_many(SparseOrder(), x.indices, x.dense_shape, name=name)
    return shaped(SparseTensor(places, gather(x.values, order), x.dense_shape), x.shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Returns the same elements in another shape, in which one -1 is worked out."""
    x = as_sparse(sp_input)
    new = cast(convert_to_tensor(shape, preferred_dtype=dtypes.int64), dtypes.int64)
    places, sizes = apply_many(SparseReshape(), x.indices, x.dense_shape, new, name=name)
    return SparseTensor(places, x.values, sizes)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor with its axes in another order, by default reversed.

    Args:
        sp_input: A sparse tensor.
        perm: Where each axis of the result comes from.
        name: Name scope of the operations.
    """
    x = as_sparse(sp_input)
    with x.graph.name_scope(name or "SparseTranspose"):
        if perm is None:
            perm = list(reversed(range(_rank(x))))
        order = convert_to_tensor(perm, preferred_dtype=dtypes.int32)
        places, sizes = gather(x.indices, order, axis=1), gather(x.dense_shape, order)
        turned = SparseTensor(places, x.values, sizes)
        if order.spec.constant is not None and x.shape.ndims is not None:
            turned.set_shape([x.shape[int(i)] for i in np.asarray(order.spec.constant)])
        return sparse_reorder(turned)


def expand_dims(sp_input: Any, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor with a new axis of length 1, the last by default."""
    x = as_sparse(sp_input)
    rank = _rank(x)
    at = positive_axis(-1 if axis is None else axis, rank + 1)
    with x.graph.name_scope(name or "expand_dims"):
        left, right = x.indices[:, :at], x.indices[:, at:]
        column = cast(expand_axes(multiply(range_(shape_of(x.indices)[0]), 0), (-1,)), dtypes.int64)
        one = constant([1], dtypes.int64)
        sizes = concat([x.dense_shape[:at], one, x.dense_shape[at:]], 0)
        return SparseTensor(concat([left, column, right], 1), x.values, sizes)


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """Returns the same elements in a larger shape, by default in the smallest that holds them.

    Args:
        sp_input: A sparse tensor.
        new_shape: Shape of the same rank, at least as large along each axis.
    """
    x = as_sparse(sp_input)
    if new_shape is None:
        # A row of -1 gives an empty tensor the shape 0.
        least = multiply(expand_axes(x.dense_shape, (0,)), 0)
        ends = concat([x.indices, subtract(least, 1)], 0)
        sizes = add(reduce_max(ends, 0), convert_to_tensor(1, dtypes.int64))
    else:
        wished = cast(convert_to_tensor(new_shape, preferred_dtype=dtypes.int64), dtypes.int64)
        sizes = apply(SparseResetShape(), x.dense_shape, wished)
    return SparseTensor(x.indices, x.values, sizes)


# -- parts ----------------------------------------------------------------------------------------


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Returns a sparse tensor with only those of its elements for which `to_retain` is true."""
    x = as_sparse(sp_input)
    kept = reshape(where(convert_to_tensor(to_retain)), [-1])
    made = SparseTensor(gather(x.indices, kept), gather(x.values, kept), x.dense_shape)
    return shaped(made, x.shape)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Returns the block of a sparse tensor that begins at `start` and is at most `size` large."""
    x = as_sparse(sp_input)
    with x.graph.name_scope(name or "SparseSlice"):
        first = cast(convert_to_tensor(start, preferred_dtype=dtypes.int64), dtypes.int64)
        most = cast(convert_to_tensor(size, preferred_dtype=dtypes.int64), dtypes.int64)
        left = maximum(subtract(x.dense_shape, first), convert_to_tensor(0, dtypes.int64))
        sizes = minimum(most, left)
        is_in = logical_and(greater_equal(x.indices, first), less(x.indices, add(first, sizes)))
        kept = sparse_retain(x, reduce_all(is_in, 1))
        return SparseTensor(subtract(kept.indices, first), kept.values, sizes)


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: Any = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Returns `num_split` blocks of a sparse tensor along an axis; the first are one longer where
    the axis does not divide evenly.

    Args:
        keyword_required: Nothing: the arguments are given by name.
        sp_input: A sparse tensor.
        num_split: How many blocks.
        axis: The axis.
        name: Name scope of the operations.
        split_dim: Old name of `axis`.
    """
    place = split_dim if axis is None else axis
    if keyword_required is not None or sp_input is None or not num_split or place is None:
        raise InvalidArgumentError("expected sp_input=..., num_split=... and axis=... by name")
    x = as_sparse(sp_input)
    rank = _rank(x)
    at = positive_axis(int(place), rank)
    with x.graph.name_scope(name or "SparseSplit"):
        length = x.dense_shape[at]
        few, longer = length // num_split, length % num_split
        blocks = []
        for i in range(num_split):
            number = convert_to_tensor(i, dtypes.int64)
            begin = add(multiply(few, i), minimum(longer, number))
            size = add(few, cast(less(number, longer), dtypes.int64))
            start = [begin if a == at else 0 for a in range(rank)]
            sizes = [size if a == at else x.dense_shape[a] for a in range(rank)]
            blocks.append(sparse_slice(x, convert_to_tensor(start, dtypes.int64), sizes))
        return blocks


def sparse_concat(
    axis: Any,
    sp_inputs: Any,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Returns sparse tensors joined along an axis.

    Args:
        axis: The axis.
        sp_inputs: Sparse tensors of one rank and dtype.
        name: Name scope of the operations.
        expand_nonconcat_dim: Whether the other axes may differ in length; the largest is taken.
        concat_dim: Old name of `axis`.
        expand_nonconcat_dims: Another name of `expand_nonconcat_dim`.
    """
    parts = [as_sparse(x) for x in sp_inputs]
    if not parts:
        raise expected("one sparse tensor at least", "none")
    if len(parts) == 1:
        return parts[0]
    at = positive_axis(int(concat_dim if axis is None else axis), _rank(parts[0]))
    expands = bool(expand_nonconcat_dim or expand_nonconcat_dims)
    with parts[0].graph.name_scope(name or "SparseConcat"):
        shapes = [x.dense_shape for x in parts]
        sizes = apply(SparseConcatShape(at, expands), *shapes)
        mask = constant(np.arange(_rank(parts[0])) == at)
        offset, places = multiply(sizes, 0), []
        for x in parts:
            places.append(add(x.indices, offset))
            offset = add(offset, where(mask, x.dense_shape, multiply(sizes, 0)))
        whole = SparseTensor(concat(places, 0), concat([x.values for x in parts], 0), sizes)
        return sparse_reorder(whole)


def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Returns a sparse tensor with an element in every row, and which rows were empty.

    Args:
        sp_input: A sparse tensor of rank 2.
        default_value: What stands first in rows that were empty.
        name: Name of the operation.
    """
    x = as_sparse(sp_input)
    default = reshape(convert_to_tensor(default_value, x.dtype), [1])
    with x.graph.name_scope(name or "SparseFillEmptyRows"):
        places, origin, is_empty = apply_many(SparseFillEmptyRows(), x.indices, x.dense_shape)
        values = gather(concat([x.values, default], 0), origin)
        return shaped(SparseTensor(places, values, x.dense_shape), x.shape), is_empty
