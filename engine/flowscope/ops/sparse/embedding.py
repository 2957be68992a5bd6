"""Rows of a table, several per example, combined into one (SPEC O11)."""

from __future__ import annotations

from typing import Any

from flowscope.graph import dtypes
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.expected import expected
from flowscope.graph.operation import Tensor
from flowscope.ops.array.arrays import ones, zeros_like
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.segments import unsorted_segment_sum
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import (
    add,
    div_no_nan,
    greater,
    greater_equal,
    logical_and,
    multiply,
    sqrt,
)
from flowscope.ops.math.reductions import reduce_max, reduce_prod
from flowscope.ops.sparse.arithmetic import sparse_tensor_dense_matmul
from flowscope.ops.sparse.forms import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from flowscope.ops.sparse.lookup import embedding_lookup
from flowscope.ops.sparse.places import SparseUnique
from flowscope.ops.sparse.sparse_tensor import SparseTensor, as_sparse

__all__ = ["embedding_lookup_sparse", "safe_embedding_lookup_sparse"]

_COMBINERS = ("sum", "mean", "sqrtn")


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Tensor:
    """Returns, for each example, the rows that its ids name, added up.

    Each row is looked up once, whatever the number of ids that name it, and the gradient reaches
    only these rows.

    Args:
        params: A table or its parts, see `embedding_lookup`.
        sp_ids: Sparse integers [examples, any]: numbers of rows.
        sp_weights: Sparse weights at the same places; None for 1.
        partition_strategy: How rows are dealt out to the parts.
        name: Name scope of the operations.
        combiner: "sum", "mean" (the default: divided by the sum of the weights) or "sqrtn"
            (divided by the root of the sum of their squares).
        max_norm: Rows are scaled down to this Euclidean norm at most.

    Raises:
        InvalidArgumentError: if the combiner is unknown.
    """
    how = combiner or "mean"
    if how not in _COMBINERS:
        raise expected(f"a combiner of {_COMBINERS}", repr(combiner))
    ids = as_sparse(sp_ids)
    check_kind(ids.dtype, "iu", "integer ids")
    with ids.graph.name_scope(name or "embedding_lookup_sparse"):
        different, which = _unique(cast(ids.values, dtypes.int64))
        rows = embedding_lookup(params, different, partition_strategy, max_norm=max_norm)
        weights = ones(shape_of(ids.values), rows.dtype)
        if sp_weights is not None:
            weights = cast(as_sparse(sp_weights).values, rows.dtype)
        return _combined(rows, ids.indices[:, 0], which, weights, how)


def _unique(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the different ids, ascending, and which of them each one is."""
    start = constant([0], dtypes.int64)
    length = add(reduce_max(concat([start, ids], 0), keepdims=True), constant(1, dtypes.int64))
    rows, which = apply_many(SparseUnique(), expand_axes(ids, (-1,)), length)
    return reshape(rows, [-1]), which


def _combined(rows: Tensor, example: Tensor, which: Tensor, weights: Tensor, how: str) -> Tensor:
    sizes = shape_of(rows)
    start = constant([-1], dtypes.int64)
    count = add(reduce_max(concat([start, example], 0)), constant(1, dtypes.int64))
    height = cast(sizes[0], dtypes.int64)
    # A matrix with a row per example: its product with the table's rows adds them up at once.
    picks = SparseTensor(stack([example, which], 1), weights, stack([count, height]))
    total = sparse_tensor_dense_matmul(picks, reshape(rows, [sizes[0], reduce_prod(sizes[1:])]))
    if how != "sum":
        share = multiply(weights, weights) if how == "sqrtn" else weights
        divisor = unsorted_segment_sum(share, example, count)
        divisor = sqrt(divisor) if how == "sqrtn" else divisor
        total = div_no_nan(total, expand_axes(divisor, (-1,)))
    out = reshape(total, concat([expand_axes(count, (0,)), cast(sizes[1:], dtypes.int64)], 0))
    if rows.spec.shape is not None:
        out.set_shape([None, *rows.spec.shape[1:]])
    return out


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """Returns combined rows as `embedding_lookup_sparse`, whatever the ids and weights.

    Ids below 0, and (unless rows are added up) weights up to 0, do not count. Examples without any
    id get the row of `default_id`, or zeros.

    Args:
        embedding_weights: A table or its parts.
        sparse_ids: Sparse integers [..., any].
        sparse_weights: Sparse weights at the same places.
        combiner: "sum", "mean" or "sqrtn".
        default_id: Number of the row for examples without any.
        name: Name scope of the operations.
        partition_strategy: How rows are dealt out to the parts.
        max_norm: Rows are scaled down to this Euclidean norm at most.
    """
    ids = as_sparse(sparse_ids)
    weights = None if sparse_weights is None else as_sparse(sparse_weights)
    with ids.graph.name_scope(name or "safe_embedding_lookup_sparse"):
        outer = ids.dense_shape[:-1]
        flat = stack([reduce_prod(outer), ids.dense_shape[-1]])
        ids = sparse_reshape(ids, flat)
        keeps = greater_equal(ids.values, zeros_like(ids.values))
        if weights is not None:
            weights = SparseTensor(ids.indices, weights.values, ids.dense_shape)
            if combiner != "sum":
                keeps = logical_and(keeps, greater(weights.values, zeros_like(weights.values)))
            weights = sparse_retain(weights, keeps)
        ids = sparse_retain(ids, keeps)
        default = convert_to_tensor(default_id or 0, ids.dtype)
        ids, is_empty = sparse_fill_empty_rows(ids, default)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, constant(1, weights.dtype))
        found = embedding_lookup_sparse(
            embedding_weights, ids, weights, partition_strategy, None, combiner, max_norm
        )
        if default_id is None:
            found = where(is_empty, zeros_like(found), found)
        tail = cast(shape_of(found)[1:], dtypes.int64)
        return reshape(found, concat([outer, tail], 0))
