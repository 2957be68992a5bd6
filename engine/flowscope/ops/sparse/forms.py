"""Sparse tensors in other forms and shapes: dense, sorted, sliced, joined, transposed."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph import dtypes
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.expected import expected, expected_dtype
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Tensor
from flowscope.ops.array.arrays import ones_like, range as range_, zeros
from flowscope.ops.array.gathering import gather, gather_nd
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of
from flowscope.ops.array.uniques import setdiff1d
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import (
    add,
    greater_equal,
    less,
    logical_and,
    maximum,
    minimum,
    multiply,
    not_equal,
    subtract,
)
from flowscope.ops.math.reductions import reduce_all, reduce_max
from flowscope.ops.sparse.places import (
    SparseConcatShape,
    SparseFillEmptyRows,
    SparseOrder,
    SparseResetShape,
    SparseReshape,
    SparseToDense,
)
from flowscope.ops.sparse.sparse_tensor import SparseTensor, as_sparse

__all__ = [
    "sparse_concat",
    "sparse_fill_empty_rows",
    "sparse_mask",
    "sparse_merge",
    "sparse_reorder",
    "sparse_reset_shape",
    "sparse_reshape",
    "sparse_retain",
    "sparse_slice",
    "sparse_split",
    "sparse_tensor_to_dense",
    "sparse_to_dense",
    "sparse_to_indicator",
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


@op_function("sparse_values")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Returns a dense tensor with values at indices, and a default value elsewhere.

    Args:
        sparse_indices: Integers: one position, or a vector or the rows of a matrix of positions.
        output_shape: Shape of the result.
        sparse_values: One value for all, or a vector of values.
        default_value: The value elsewhere.
        validate_indices: Whether positions out of order or repeated are an error.
    """
    if sparse_values.dtype.kind in "sb" and isinstance(default_value, int) and not default_value:
        default_value = "" if sparse_values.dtype.kind == "s" else False
    return apply(
        SparseToDense(bool(validate_indices)),
        convert_to_tensor(sparse_indices, preferred_dtype=dtypes.int32),
        convert_to_tensor(output_shape, preferred_dtype=dtypes.int32),
        sparse_values,
        convert_to_tensor(default_value, sparse_values.dtype),
        name=name,
    )


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Returns a sparse tensor as a dense one.

    Args:
        sp_input: A sparse tensor.
        default_value: The value where it has none, by default 0 (or "", or False).
        validate_indices: Whether coordinates out of order or repeated are an error.
        name: Name of the operation.
    """
    x = as_sparse(sp_input)
    default = 0 if default_value is None else default_value
    out = sparse_to_dense(x.indices, x.dense_shape, x.values, default, validate_indices, name)
    if x.shape.ndims is not None:
        out.set_shape(x.shape)
    return out


@op_function("tensor", scope="dense_to_sparse")
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Returns the elements of a dense tensor that are not zero as a sparse tensor."""
    zero = constant("", dtypes.string) if tensor.dtype.kind == "s" else zeros([], tensor.dtype)
    places = where(not_equal(tensor, zero))
    made = SparseTensor(places, gather_nd(tensor, places), cast(shape_of(tensor), dtypes.int64))
    return shaped(made, tensor.shape)


def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = dtypes.float32,
    name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Returns a sparse identity matrix."""
    columns = num_rows if num_columns is None else num_columns
    n = min(num_rows, columns)
    places = np.stack([np.arange(n), np.arange(n)], 1)
    values = np.ones(n, dtypes.as_dtype(dtype).np_dtype)
    return SparseTensor(
        constant(places, dtypes.int64, name=name or "eye"), constant(values), [num_rows, columns]
    )


def sparse_to_indicator(sp_input: Any, vocab_size: int, name: str | None = None) -> Tensor:
    """Returns bools [..., vocab_size]: which integers each row of a sparse tensor holds."""
    x = as_sparse(sp_input)
    check_kind(x.dtype, "iu", "integers")
    with x.graph.name_scope(name or "SparseToIndicator"):
        truth = x.with_values(ones_like(x.values, dtypes.bool_))
        merged = sparse_merge(x, truth, vocab_size, already_sorted=True)
        return sparse_tensor_to_dense(merged, False, validate_indices=False)


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:  # fmt: skip
    """Returns the values at coordinates whose last one is replaced by ids.

    Args:
        sp_ids: A sparse tensor of integers, or a list of them: each gives an axis.
        sp_values: A sparse tensor with the same coordinates.
        vocab_size: Length of the new axis, or a list of them.
        name: Name scope of the operations.
        already_sorted: Whether the result is in row-major order without sorting.
    """
    many = isinstance(sp_ids, list | tuple) and not hasattr(sp_ids, "dense_shape")
    ids = [as_sparse(v) for v in (sp_ids if many else [sp_ids])]
    sizes = list(vocab_size) if many else [vocab_size]
    if len(sizes) != len(ids):
        raise expected(f"{len(ids)} sizes of vocabularies", len(sizes))
    values = as_sparse(sp_values)
    with values.graph.name_scope(name or "SparseMerge"):
        new = [expand_axes(cast(v.values, dtypes.int64), (-1,)) for v in ids]
        lengths = [reshape(cast(convert_to_tensor(n), dtypes.int64), [1]) for n in sizes]
        places = concat([ids[0].indices[:, :-1], *new], 1)
        shape = concat([ids[0].dense_shape[:-1], *lengths], 0)
        merged = SparseTensor(places, values.values, shape)
        return merged if already_sorted else sparse_reorder(merged)


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


def sparse_mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Returns slices without those whose index is among `mask_indices`."""
    if not isinstance(a, IndexedSlices):
        raise expected_dtype("fs.IndexedSlices", repr(a))
    with a.graph.name_scope(name or "sparse_mask"):
        kept, places = setdiff1d(a.indices, convert_to_tensor(mask_indices, a.indices.dtype))
        return IndexedSlices(gather(a.values, places), kept, a.dense_shape)
