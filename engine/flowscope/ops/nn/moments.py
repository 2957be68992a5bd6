"""Moments: means and variances along axes, and the sums that they are made of."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import size_of
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.shaping import shape_of, squeeze_axes
from flowscope.ops.core.axes import as_axes, positive_axes
from flowscope.ops.core.casting import cast, widened
from flowscope.ops.core.declare import op_function
from flowscope.ops.math.dynamic_axes import from_the_front
from flowscope.ops.math.elementwise import (
    add,
    div_no_nan,
    multiply,
    reciprocal,
    square,
    squared_difference,
    subtract,
)
from flowscope.ops.math.reductions import reduce_mean, reduce_prod, reduce_sum

__all__ = ["moments", "normalize_moments", "sufficient_statistics", "weighted_moments"]


def _kept(keepdims: bool | None, keep_dims: bool | None) -> bool:
    return bool(keep_dims if keepdims is None else keepdims)


@op_function("x", scope="moments")
def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance along axes.

    Args:
        x: A tensor; short floating-point numbers are summed in float32.
        axes: The axes.
        shift: A hint for precision: the mean is always taken off first.
        keep_dims: Old name of `keepdims`.
        keepdims: Whether the reduced axes stay, of length 1.

    Example:
        >>> mean, variance = fs.nn.moments(fs.constant([1.0, 3.0]), [0])
        >>> fs.Session().run([mean, variance])
        [np.float32(2.0), np.float32(1.0)]
    """
    places = as_axes(axes)
    wide = widened(x)
    mean = reduce_mean(wide, places, keepdims=True, name="mean")
    # The mean is the best centre, so the variance does not depend on it to first order.
    squares = squared_difference(wide, mean)
    variance = reduce_mean(squares, places, keepdims=True, name="variance")
    if not _kept(keepdims, keep_dims):
        mean, variance = squeeze_axes(mean, places), squeeze_axes(variance, places)
    if wide is x:
        return mean, variance
    return cast(mean, x.dtype), cast(variance, x.dtype)


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance along axes, in which elements count as often as their weights say.

    Args:
        x: A tensor.
        axes: The axes.
        frequency_weights: Weights, broadcast to x's shape.
        name: Name scope of the operations.
        keep_dims: Old name of `keepdims`.
        keepdims: Whether the reduced axes stay, of length 1.
    """
    x = convert_to_tensor(x)
    weights = convert_to_tensor(
        frequency_weights, None if isinstance(frequency_weights, Tensor) else x.dtype
    )
    places = as_axes(axes)
    with x.graph.name_scope(name or "weighted_moments"):
        weights = cast(weights, x.dtype)
        wide, weights = widened(x), widened(weights)
        weighted = multiply(weights, wide)
        spread = add(weights, multiply(wide, 0.0))
        total = reduce_sum(spread, places, keepdims=True, name="sum_of_weights")
        mean = div_no_nan(reduce_sum(weighted, places, keepdims=True), total)
        distances = multiply(weights, squared_difference(wide, mean))
        variance = div_no_nan(reduce_sum(distances, places, keepdims=True), total)
        if not _kept(keepdims, keep_dims):
            mean, variance = squeeze_axes(mean, places), squeeze_axes(variance, places)
        if wide is x:
            return mean, variance
        return cast(mean, x.dtype), cast(variance, x.dtype)


@op_function("x", scope="sufficient_statistics")
def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Sums from which mean and variance follow; see `normalize_moments`.

    Args:
        x: A tensor.
        axes: The axes.
        shift: A number near the mean, which makes the sums more exact.
        keep_dims: Old name of `keepdims`.
        keepdims: Whether the reduced axes stay, of length 1.

    Returns:
        How many elements, the sum of their distances to the shift, the sum of the squares of those,
        and the shift (or None).
    """
    places = as_axes(axes)
    keep = _kept(keepdims, keep_dims)
    counts = _count(x, places)
    distances, squares = x, square(x)
    if shift is not None:
        shift = convert_to_tensor(shift, None if isinstance(shift, Tensor) else x.dtype, "shift")
        distances, squares = subtract(x, shift), squared_difference(x, shift)
    return (
        counts,
        reduce_sum(distances, places, keepdims=keep, name="mean_ss"),
        reduce_sum(squares, places, keepdims=keep, name="var_ss"),
        shift,
    )


def _count(x: Tensor, places: tuple[int, ...] | None) -> Tensor:
    """Returns how many elements are reduced to one, in x's dtype."""
    dims = x.spec.shape
    if dims is not None:
        chosen = dims if places is None else [dims[i] for i in positive_axes(places, len(dims))]
        n = size_of(tuple(chosen))
        if n is not None:
            return convert_to_tensor(n, x.dtype)
    sizes = shape_of(x)
    if places is not None:
        sizes = gather(sizes, from_the_front(places, x))
    return cast(reduce_prod(sizes), x.dtype)


@op_function("mean_ss variance_ss", scope="normalize")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance from `sufficient_statistics`."""
    divisor = reciprocal(convert_to_tensor(counts, mean_ss.dtype), name="divisor")
    if shift is None:
        mean = offset = multiply(mean_ss, divisor, name="mean")
    else:
        offset = multiply(mean_ss, divisor, name="shifted_mean")
        mean = add(offset, convert_to_tensor(shift, mean_ss.dtype), name="mean")
    return mean, subtract(multiply(variance_ss, divisor), square(offset), name="variance")
