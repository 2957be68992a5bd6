"""Rows of a table, which may lie in several parts: one per id, or several, combined."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import int32
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import TensorShape
from flowscope.ops.array.arrays import ones, range as range_of, rank, shape, size, zeros_like
from flowscope.ops.array.clipping import clip_by_norm
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.segments import unsorted_segment_sum
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of
from flowscope.ops.array.stitching import dynamic_partition, dynamic_stitch
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import (
    add,
    div_no_nan,
    floordiv,
    greater,
    greater_equal,
    logical_and,
    maximum,
    mod,
    multiply,
    sqrt,
)
from flowscope.ops.math.reductions import reduce_max, reduce_prod
from flowscope.ops.sparse.arithmetic import sparse_tensor_dense_matmul
from flowscope.ops.sparse.array_ops import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from flowscope.ops.sparse.index_ops import SparseUnique
from flowscope.ops.sparse.sparse_tensor import SparseTensor, as_sparse
from flowscope.ops.state.partitioned_variable import PartitionedVariable

__all__ = ["embedding_lookup", "embedding_lookup_sparse", "safe_embedding_lookup_sparse"]

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


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Returns the rows that `ids` name, of a table in one part or several.

    Each part is looked up by itself, so a row's gradient reaches only its part, and stays sparse.

    Args:
        params: A tensor or variable, a list of parts, or a `PartitionedVariable`.
        ids: Integers: numbers of rows in the whole table.
        partition_strategy: How rows are dealt out to the parts. "mod": row i lies in part i modulo
            their number. "div": one part after another, the first ones a row longer where the rows
            do not divide evenly: what partitioners do along the first axis.
        name: Name scope of the operations.
        validate_indices: True or False: they are always checked.
        max_norm: Rows are scaled down to this Euclidean norm at most.

    Raises:
        InvalidArgumentError: if there is no part, the strategy is unknown, or a row does not exist.

    Example:
        >>> fs.Session().run(fs.nn.embedding_lookup(fs.constant([[1.0], [2.0], [3.0]]), [2, 0]))
        array([[3.],
               [1.]], dtype=float32)
    """
    del validate_indices
    is_many = isinstance(params, list | tuple | PartitionedVariable)
    parts = list(params) if is_many else [params]
    if not parts:
        raise expected("one part of a table at least", "none")
    places = convert_to_tensor(ids, preferred_dtype=int32)
    with places.graph.name_scope(name or "embedding_lookup"):
        if len(parts) == 1:
            return _clipped(gather(parts[0], places), places, max_norm)
        return _sharded(parts, places, partition_strategy, max_norm)


def _sharded(parts: list[Any], ids: Tensor, strategy: str, max_norm: Any) -> Tensor:
    tables = [convert_to_tensor(p) for p in parts]
    flat = reshape(ids, [-1])
    part, row = _part_and_row(tables, flat, strategy)
    part = cast(part, int32)
    rows = dynamic_partition(row, part, len(tables))
    origins = dynamic_partition(range_of(size(flat)), part, len(tables))
    found = []
    for given, table, r in zip(parts, tables, rows, strict=True):
        with ids.graph.colocate_with(getattr(given, "op", table.op)):
            found.append(_clipped(gather(given, r), r, max_norm))
    whole = dynamic_stitch(origins, found)
    tail = shape(tables[0])[1:]
    out = reshape(whole, concat([shape(ids), tail], 0))
    out.set_shape(TensorShape(ids.spec.shape).concatenate(_tail(tables)))
    return out


def _tail(tables: list[Tensor]) -> TensorShape:
    tails = [TensorShape(t.spec.shape)[1:] for t in tables]
    merged: TensorShape = tails[0]
    for t in tails[1:]:
        merged = merged.merge_with(t)
    return merged


def _part_and_row(tables: list[Tensor], ids: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """Returns, per id, which part of the table its row is in, and which row of the part it is."""
    n = len(tables)
    if strategy == "mod":
        return mod(ids, n), floordiv(ids, n)
    if strategy != "div":
        raise expected('partition_strategy "mod" or "div"', repr(strategy))
    lengths = [cast(shape(t)[0], ids.dtype) for t in tables]
    total = lengths[0]
    for length in lengths[1:]:
        total = total + length
    few, longer = floordiv(total, n), mod(total, n)
    in_longer = ids < longer * (few + 1)
    rest = ids - longer
    part = maximum(floordiv(ids, few + 1), floordiv(rest, maximum(few, 1)))
    row = where(in_longer, mod(ids, few + 1), mod(rest, maximum(few, 1)))
    return part, row


def _clipped(rows: Tensor, ids: Tensor, max_norm: Any) -> Tensor:
    if max_norm is None:
        return rows
    first, last = ids.spec.rank, rows.spec.rank
    known = first is not None and last is not None
    axes: Any = list(range(first, last)) if known else range_of(rank(ids), rank(rows))  # type: ignore[arg-type]
    clipped: Tensor = clip_by_norm(rows, max_norm, axes)
    return clipped
