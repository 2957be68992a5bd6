"""How far sequences are from each other: Levenshtein's distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import text
from flowscope.ops.core.broadcasting import as_sizes
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_same
from flowscope.ops.sparse.index_ops import check_indices
from flowscope.ops.sparse.sparse_tensor import as_sparse

__all__ = ["edit_distance"]


@frozen
class EditDistance(Op, is_differentiable=False, devices=("CPU",)):
    """How many elements must be put in, taken out or changed to make one sequence the other.

    The sequences lie along the last axis of sparse tensors.

    Attributes: `normalize`: whether it is divided by the length of the second.
    Shapes: indices [n, rank], values [n], shape [rank], twice -> the larger shape but for the last
    Source: Wagner & Fischer 1974, "The string-to-string correction problem".
    """

    normalize: bool = True

    def infer(
        self, indices: Spec, values: Spec, shape: Spec, indices2: Spec, values2: Spec, shape2: Spec
    ) -> Spec:
        check_same(values, values2)
        parts = ((indices, shape, values), (indices2, shape2, values2))
        ranks = [check_indices(*three) for three in parts]
        if (None not in ranks and ranks[0] != ranks[1]) or 0 in ranks:
            raise expected("two of one rank, 1 at least", ranks[0], ranks[1])
        a, b = shape.shape_value(), shape2.shape_value()
        if a is None or b is None:
            rank = ranks[1] if ranks[0] is None else ranks[0]
            return Spec(dtypes.float32, None if rank is None else (None,) * (rank - 1))
        dims = [None if None in (m, n) else max(m, n) for m, n in zip(a, b)]  # type: ignore[type-var]
        return Spec(dtypes.float32, tuple(dims[:-1]))

    def kernel(
        self,
        xp: ArrayModule,
        indices: Array,
        values: Array,
        shape: Array,
        indices2: Array,
        values2: Array,
        shape2: Array,
    ) -> Array:
        sizes, sizes2 = as_sizes(shape), as_sizes(shape2)
        if len(sizes) != len(sizes2):
            raise expected("two of one rank", f"shapes {text(sizes)} and {text(sizes2)}")
        whole = tuple(max(m, n) for m, n in zip(sizes[:-1], sizes2[:-1]))
        out = np.zeros(whole, np.float32)
        a, b = dict(_sequences(indices, values, whole)), dict(_sequences(indices2, values2, whole))
        nothing = values[:0]
        for place in a.keys() | b.keys():
            one, other = a.get(place, nothing), b.get(place, nothing)
            distance = float(_distance(one, other))
            if self.normalize:
                distance = distance / len(other) if len(other) else np.inf
            out[place] = distance
        return out[()]


def _sequences(
    indices: Array, values: Array, sizes: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yields each sequence's place and elements, as they follow each other in row-major order."""
    if indices.size and not ((indices[:, :-1] >= 0) & (indices[:, :-1] < np.array(sizes))).all():
        raise InvalidArgumentError(f"expected coordinates inside {text(sizes)}")
    places = indices[:, :-1]
    changes = np.flatnonzero((places[1:] != places[:-1]).any(1)) + 1
    for first, last in zip([0, *changes], [*changes, len(values)]):
        if last > first:
            yield tuple(int(i) for i in places[first]), values[first:last]


def _distance(a: Array, b: Array) -> int:
    """Returns Levenshtein's distance, row by row of its table.

    Along a row an element is one more than its left neighbour at most: a running minimum of what
    is left when the steps are taken off.
    """
    steps = np.arange(len(b) + 1)
    row = steps
    for n, element in enumerate(a, 1):
        fresh = np.empty_like(row)
        fresh[0] = n
        np.minimum(row[:-1] + (b != element), row[1:] + 1, out=fresh[1:])
        row = np.minimum.accumulate(fresh - steps) + steps
    return int(row[-1])


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Returns how many elements must be put in, taken out or changed to make `truth` of another.

    Args:
        hypothesis: A `SparseTensor`, its coordinates in row-major order: sequences along the last
            axis.
        truth: Another of the same dtype and rank.
        normalize: Whether the distances are divided by the lengths of `truth`: inf where that is 0.
        name: Name of the operation.

    Returns:
        float32, of the shape before the last axis; 0 where both have no sequence.
    """
    a, b = as_sparse(hypothesis), as_sparse(truth)
    op = EditDistance(bool(normalize))
    parts = (a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape)
    return apply(op, *parts, name=name)
