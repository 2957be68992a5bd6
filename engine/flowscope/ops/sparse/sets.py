"""Sets of numbers or strings: the elements along the last axis, one set per place before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import text
from flowscope.ops.array.arrays import fill
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core.broadcasting import as_sizes
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.sparse.conversion import from_dense
from flowscope.ops.sparse.index_ops import check_indices
from flowscope.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor

__all__ = ["set_difference", "set_intersection", "set_size", "set_union"]


def _check(indices: Spec, values: Spec, shape: Spec) -> None:
    check_kind(values.dtype, "ius")
    rank = check_indices(indices, shape, values)
    if rank is not None and rank < 1:
        raise expected("sets of rank 1 at least", "a scalar")


def _groups(indices: Array, shape: Array) -> tuple[tuple[int, ...], Array]:
    """Returns the shape before the last axis, and in which place of it each element lies."""
    sizes = as_sizes(shape)
    if indices.size and not ((indices >= 0) & (indices < np.asarray(sizes))).all():
        raise InvalidArgumentError(f"expected coordinates inside {text(sizes)}")
    before = sizes[:-1]
    if not before:
        return before, np.zeros(len(indices), np.int64)
    return before, np.ravel_multi_index(tuple(indices[:, :-1].T), before)


@frozen
class SetSize(Op, is_differentiable=False, devices=("CPU",)):
    """How many different elements each set has.

    Shapes: indices [n, rank], values [n], shape [rank] -> shape without its last number
    """

    validate_indices: bool = True

    def infer(self, indices: Spec, values: Spec, shape: Spec) -> Spec:
        _check(indices, values, shape)
        dims = shape.shape_value()
        return Spec(dtypes.int32, None if dims is None else dims[:-1])

    def kernel(self, xp: ArrayModule, indices: Array, values: Array, shape: Array) -> Array:
        before, places = _groups(indices, shape)
        ranks = np.unique(values, return_inverse=True)[1].reshape(-1)
        pairs = np.unique(np.stack([places, ranks]), axis=1)
        sizes = np.bincount(pairs[0], minlength=int(np.prod(before)))
        return sizes.astype(np.int32).reshape(before)[()]


@frozen
class SetOperation(Op, is_differentiable=False, devices=("CPU",)):
    """A sparse tensor of sets: what two sets have together, in common, or one alone, in order.

    Attributes: `kind` is "union", "intersection", "a-b" or "b-a".
    Shapes: indices [n, rank], values [n], shape [rank], twice -> [k, rank], [k], [rank]
    """

    kind: str
    validate_indices: bool = True

    def infer(
        self, indices: Spec, values: Spec, shape: Spec, indices2: Spec, values2: Spec, shape2: Spec
    ) -> Any:
        _check(indices, values, shape)
        _check(indices2, values2, shape2)
        check_same(values, values2)
        ranks = [check_indices(*pair) for pair in ((indices, shape), (indices2, shape2))]
        if None not in ranks and ranks[0] != ranks[1]:
            raise expected("two of one rank", ranks[0], ranks[1])
        rank = ranks[1] if ranks[0] is None else ranks[0]
        return (
            Spec(dtypes.int64, (None, rank)),
            Spec(values.dtype, (None,)),
            Spec(dtypes.int64, (rank,)),
        )

    def kernel(
        self,
        xp: ArrayModule,
        indices: Array,
        values: Array,
        shape: Array,
        indices2: Array,
        values2: Array,
        shape2: Array,
    ) -> Any:
        before, places = _groups(indices, shape)
        other, places2 = _groups(indices2, shape2)
        if before != other:
            raise expected("the same sizes but for the last", before, other)
        known, ranks = np.unique(np.concatenate([values, values2]), return_inverse=True)
        keys = np.concatenate([places, places2]) * max(len(known), 1) + ranks.reshape(-1)
        a, b = keys[: len(values)], keys[len(values) :]
        operations: dict[str, Callable[[Array, Array], Array]] = {
            "union": np.union1d,
            "intersection": np.intersect1d,
            "a-b": np.setdiff1d,
            "b-a": lambda a, b: np.setdiff1d(b, a),
        }
        found = operations[self.kind](a, b)
        groups, chosen = np.divmod(found, max(len(known), 1))
        counts = np.bincount(groups, minlength=int(np.prod(before)))
        starts = np.cumsum(counts) - counts
        columns: list[Array] = [*np.unravel_index(groups, before or (1,))] if before else []
        columns.append(np.arange(len(found)) - starts[groups])
        most = int(counts.max()) if counts.size else 0
        out = np.stack(columns, 1).astype(np.int64).reshape(len(found), len(before) + 1)
        return out, known[chosen], np.array([*before, most], np.int64)


def _sparse(value: Any) -> SparseTensor:
    """Returns a sparse tensor; of a dense one all elements, zeros too."""
    found = convert_to_tensor_or_sparse_tensor(value)
    if isinstance(found, SparseTensor):
        return found
    every = from_dense(fill(shape_of(found), 1))
    return SparseTensor(every.indices, reshape(found, [-1]), every.dense_shape)


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """Returns how many different elements each set has: int32, of a's shape but for the last axis.

    Args:
        a: A `SparseTensor` of integers or strings.
        validate_indices: True or False: coordinates are always checked.
    """
    sparse = _sparse(a)
    op = SetSize(bool(validate_indices))
    return apply(op, sparse.indices, sparse.values, sparse.dense_shape)


def _operation(kind: str, a: Any, b: Any, validate_indices: bool) -> SparseTensor:
    parts = [t for s in (_sparse(a), _sparse(b)) for t in (s.indices, s.values, s.dense_shape)]
    return SparseTensor(*apply_many(SetOperation(kind, bool(validate_indices)), *parts))


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns the elements that both sets have, sorted, per place before the last axis.

    Args:
        a: Sets of integers or strings: the elements along the last axis, dense or sparse.
        b: The same; the shapes agree but for the last axis.
        validate_indices: True or False: coordinates are always checked.

    Raises:
        InvalidArgumentError: if the shapes do not agree.
    """
    return _operation("intersection", a, b, validate_indices)


def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """Returns the elements that only a has (only b, if not `aminusb`); see `set_intersection`."""
    return _operation("a-b" if aminusb else "b-a", a, b, validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns the elements that either set has; see `set_intersection`."""
    return _operation("union", a, b, validate_indices)
