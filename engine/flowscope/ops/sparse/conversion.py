"""Sparse tensors made of dense ones and back; indicators, identities, slices without some rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import ones_like, zeros
from flowscope.ops.array.gathering import gather, gather_nd
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of
from flowscope.ops.array.uniques import setdiff1d
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import (
    not_equal,
)
from flowscope.ops.sparse.array_ops import shaped, sparse_reorder
from flowscope.ops.sparse.index_ops import (
    SparseToDense,
)
from flowscope.ops.sparse.sparse_tensor import SparseTensor, as_sparse

__all__ = [
    "sparse_mask",
    "sparse_merge",
    "sparse_tensor_to_dense",
    "sparse_to_dense",
    "sparse_to_indicator",
]


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


def sparse_mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Returns slices without those whose index is among `mask_indices`."""
    if not isinstance(a, IndexedSlices):
        raise expected_dtype("fs.IndexedSlices", repr(a))
    with a.graph.name_scope(name or "sparse_mask"):
        kept, places = setdiff1d(a.indices, convert_to_tensor(mask_indices, a.indices.dtype))
        return IndexedSlices(gather(a.values, places), kept, a.dense_shape)
