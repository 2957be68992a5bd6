"""Rows of a table, which may lie in several parts (SPEC O11)."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.dtypes import int32
from flowscope.graph.expected import expected
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import TensorShape
from flowscope.ops.array.arrays import range as range_of, rank, shape, size
from flowscope.ops.array.clipping import clip_by_norm
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import reshape
from flowscope.ops.array.stitching import dynamic_partition, dynamic_stitch
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import floordiv, maximum, mod
from flowscope.ops.state.partitioned_variable import PartitionedVariable

__all__ = ["embedding_lookup"]


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
    part, row = _dealt(tables, flat, strategy)
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


def _dealt(tables: list[Tensor], ids: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """Returns, per id, the number of the part and that of the row in it."""
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
