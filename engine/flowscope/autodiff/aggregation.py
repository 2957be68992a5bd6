"""Sums of cotangents: dense ones are added, slices alone are put behind one another."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from flowscope.control.blocks import aggregation_method
from flowscope.control.lists import sum_of_lists
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import int64, variant
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
    """How several cotangents of one tensor are summed.

    Attributes:
        ADD_N, DEFAULT: By one `AddN` of all: each cotangent is kept until the last one is there.
        EXPERIMENTAL_TREE: In pairs, each cotangent as soon as it is there: a running sum and one
            cotangent are kept. It takes one pass over the memory more per cotangent.
        EXPERIMENTAL_ACCUMULATE_N: The same: the running sum is one buffer wherever nobody else
            reads it.

    The cotangents are added in one order, so that the bits of the sum are the same. Slices
    (`IndexedSlices`) are joined at the end by all methods.

    Source: TensorFlow 1.15, `tf.AggregationMethod`.
    """

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


@contextmanager
def aggregating(method: int | None) -> Iterator[None]:
    """Sets how the cotangents are summed that the block makes.

    Raises:
        InvalidArgumentError: unless this is a method of `AggregationMethod`, or None.
    """
    if method is not None and method not in (0, 1, 2):
        raise InvalidArgumentError(
            f"expected an aggregation_method of fs.AggregationMethod, got {method!r}"
        )
    before = aggregation_method.set(method or AggregationMethod.DEFAULT)
    try:
        yield
    finally:
        aggregation_method.reset(before)


def sums_early(cotangent: Cotangent) -> bool:
    """True if a cotangent is added to the sum of those before it when it arrives."""
    is_dense = isinstance(cotangent, Tensor) and cotangent.spec.dtype is not variant
    return is_dense and aggregation_method.get() != AggregationMethod.ADD_N


def summed(parts: Sequence[Cotangent]) -> Cotangent:
    """Returns the sum of one cotangent or more: slices only if all are slices."""
    if len(parts) == 1:
        return parts[0]
    slices = [p for p in parts if isinstance(p, IndexedSlices)]
    if len(slices) == len(parts):
        return _joined(slices)
    dense = [convert_to_tensor(p) for p in parts]
    if dense[0].spec.dtype is variant:
        return sum_of_lists(dense)
    if aggregation_method.get() == AggregationMethod.ADD_N:
        return add_n(dense)
    return reduce(lambda total, part: add_n([total, part]), dense)


def _joined(parts: Sequence[IndexedSlices]) -> IndexedSlices:
    indices = [p.indices for p in parts]
    if len({i.spec.dtype for i in indices}) > 1:
        indices = [cast(i, int64) for i in indices]
    shapes = [p.dense_shape for p in parts if p.dense_shape is not None]
    values = concat([p.values for p in parts], 0)
    return IndexedSlices(values, concat(indices, 0), next(iter(shapes), None))


__all__ = [
    "AggregationMethod",
    "Cotangent",
    "UnconnectedGradients",
    "aggregating",
    "summed",
    "sums_early",
]
