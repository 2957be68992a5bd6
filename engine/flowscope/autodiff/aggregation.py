"""Sums of cotangents: dense ones are added, slices alone are put behind one another."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from flowscope.control.lists import sum_of_lists
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.dtypes import int64, variant
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Tensor
from flowscope.ops.array.joining import concat
from flowscope.ops.core.casting import cast
from flowscope.ops.math.arithmetic import add_n

#: What flows backward along an edge.
Cotangent = Tensor | IndexedSlices


class UnconnectedGradients(enum.Enum):
    """What `gradients` returns for an x that has no influence on ys."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """How several cotangents are summed: TensorFlow's names, all for flowscope's one way."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def check_method(method: int | None) -> None:
    """Raises InvalidArgumentError unless this is a method of `AggregationMethod`, or None."""
    if method is not None and method not in (0, 1, 2):
        raise InvalidArgumentError(
            f"expected an aggregation_method of fs.AggregationMethod, got {method!r}"
        )


def summed(parts: Sequence[Cotangent]) -> Cotangent:
    """Returns the sum of one cotangent or more: slices only if all are slices."""
    if len(parts) == 1:
        return parts[0]
    slices = [p for p in parts if isinstance(p, IndexedSlices)]
    if len(slices) == len(parts):
        return _joined(slices)
    dense = [convert_to_tensor(p) for p in parts]
    return sum_of_lists(dense) if dense[0].spec.dtype is variant else add_n(dense)


def _joined(parts: Sequence[IndexedSlices]) -> IndexedSlices:
    indices = [p.indices for p in parts]
    if len({i.spec.dtype for i in indices}) > 1:
        indices = [cast(i, int64) for i in indices]
    shapes = [p.dense_shape for p in parts if p.dense_shape is not None]
    values = concat([p.values for p in parts], 0)
    return IndexedSlices(values, concat(indices, 0), next(iter(shapes), None))


__all__ = ["AggregationMethod", "Cotangent", "UnconnectedGradients", "check_method", "summed"]
