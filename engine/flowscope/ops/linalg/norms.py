"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.array.shaping import expand_axes, squeeze_axes, transpose
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.casting import cast, widened
from flowscope.ops.core.declare import op_function
from flowscope.ops.linalg.spectra import svd
from flowscope.ops.math.elementwise import abs, pow, realdiv
from flowscope.ops.math.reductions import reduce_euclidean_norm, reduce_max, reduce_sum

__all__ = ["norm"]


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns the norm of vectors, or of matrices.

    Args:
        tensor: A tensor of numbers.
        ord: Of vectors: "euclidean" (or 2), 1, infinity or any p > 0. Of matrices: "euclidean" (or
            "fro"), 1 (the largest sum of a column), infinity (of a row) or 2 (the largest singular
            value).
        axis: The axis of the vectors, or two axes of the matrices; None: all is one vector.
        keepdims: Whether the reduced axes stay, of length 1.
        name: Name scope of the operations.
        keep_dims: Old name of `keepdims`.

    Returns:
        Real numbers; but the Euclidean norm of complex ones is complex, as in TensorFlow.

    Example:
        >>> fs.Session().run(fs.norm([3.0, 4.0]))
        np.float32(5.0)
    """
    x, keep = convert_to_tensor(tensor), bool(keepdims or keep_dims)
    is_matrix = isinstance(axis, list | tuple) and len(axis) == 2
    if ord in ("euclidean", "fro", 2, 2.0) and not (is_matrix and ord in (2, 2.0)):
        return reduce_euclidean_norm(x, axis, keep, name or "norm")
    if not isinstance(ord, int | float) or ord <= 0:
        raise expected("'euclidean' or a positive number", repr(ord))
    with x.graph.name_scope(name or "norm"):
        if is_matrix:
            return _matrix_norm(x, ord, axis, keep)
        if ord == 1:
            return reduce_sum(abs(x), axis, keep)
        if math.isinf(ord):
            return reduce_max(abs(x), axis, keep)
        wide = widened(x)
        return cast(
            pow(reduce_sum(pow(abs(wide), float(ord)), axis, keep), 1.0 / ord), x.dtype.real_dtype
        )


def _matrix_norm(x: Tensor, ord: float, axis: Any, keep: bool) -> Tensor:
    rank = x.spec.rank
    if rank is None or ord not in (1, 2, math.inf):
        raise expected(
            "a known rank, and 'fro', 'euclidean', 1, 2 or infinity for the norm of a matrix",
            f"{ord!r} of {x.spec}",
        )
    rows, columns = (positive_axis(int(a), rank) for a in axis)
    if ord in (1, math.inf):
        inner, outer = (rows, columns) if ord == 1 else (columns, rows)
        most = reduce_max(reduce_sum(abs(x), inner, True), outer, True)
        return most if keep else _without(most, (rows, columns))
    front = [i for i in range(rank) if i not in (rows, columns)]
    largest = reduce_max(svd(transpose(x, [*front, rows, columns]), compute_uv=False), -1)
    return expand_axes(largest, tuple(sorted((rows, columns)))) if keep else largest


def _without(x: Tensor, axes: tuple[int, int]) -> Tensor:
    return squeeze_axes(x, axes)


@op_function("tensor", scope="normalize")
def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns the tensor divided by its norm, and the norm; see `norm` for the arguments."""
    size = norm(tensor, ord, axis, keepdims=True)
    return realdiv(tensor, cast(size, tensor.dtype)), size
