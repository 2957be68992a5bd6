"""Confusion matrices: how often each class was taken for which."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import as_dtype
from flowscope.ops.array.arrays import ones_like
from flowscope.ops.array.gathering import scatter_nd
from flowscope.ops.array.joining import stack
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import add, maximum
from flowscope.ops.math.reductions import reduce_max
from flowscope.ops.objectives.weights import flat, same_ranks

__all__ = ["confusion_matrix"]


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """Returns a matrix: in row i and column j, how often class i was taken for class j.

    Args:
        labels: True classes, integers from 0 on.
        predictions: Classes that were predicted, of the same shape.
        num_classes: Number of classes; by default as many as occur.
        dtype: Element type.
        name: Name scope of the operations.
        weights: What each example counts, of the same shape; 1 by default.

    Raises:
        InvalidArgumentError: if a class is not in [0, num_classes).
    """
    y, p, _ = same_ranks(labels, predictions)
    with y.graph.name_scope(name or "confusion_matrix"):
        true, found = (flat(cast(t, dtypes.int64)) for t in (y, p))
        if num_classes is None:
            count = add(maximum(reduce_max(true), reduce_max(found)), 1)
        else:
            count = cast(convert_to_tensor(num_classes), dtypes.int64)
        to = as_dtype(dtype)
        shares = (
            ones_like(true, to) if weights is None else flat(cast(convert_to_tensor(weights), to))
        )
        return scatter_nd(stack([true, found], 1), shares, stack([count, count]))
