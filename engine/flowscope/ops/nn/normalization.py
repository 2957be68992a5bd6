"""Normalisation: of batches, of the responses of neighbours, of lengths; moments; dropout."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.dtypes import DType
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import size_of
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.shaping import shape_of, squeeze_axes
from flowscope.ops.core.axes import as_axes, positive_axes
from flowscope.ops.core.broadcasting import as_shape
from flowscope.ops.core.build import apply_many, unary
from flowscope.ops.core.casting import cast, conj, real, widened
from flowscope.ops.core.table import check_kind
from flowscope.ops.math.elementwise import (
    add,
    div_no_nan,
    floor,
    maximum,
    multiply,
    negative,
    realdiv,
    reciprocal,
    rsqrt,
    square,
    squared_difference,
    subtract,
)
from flowscope.ops.math.reductions import reduce_mean, reduce_prod, reduce_sum
from flowscope.ops.math.run_time_axes import from_the_front
from flowscope.ops.nn.normalization_ops import LRN, FusedBatchNormV3
from flowscope.ops.random.normal_and_uniform import random_uniform

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "dropout",
    "fused_batch_norm",
    "l2_normalize",
    "local_response_normalization",
    "lrn",
    "moments",
    "normalize_moments",
    "sufficient_statistics",
    "weighted_moments",
]


def _kept(keepdims: bool | None, keep_dims: bool | None) -> bool:
    return bool(keep_dims if keepdims is None else keepdims)


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
        name: Name scope of the operations.
        keep_dims: Old name of `keepdims`.
        keepdims: Whether the reduced axes stay, of length 1.
    """
    x = convert_to_tensor(x)
    places = as_axes(axes)
    with x.graph.name_scope(name or "moments"):
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


def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Returns what mean and variance can be worked out from; see `normalize_moments`.

    Args:
        x: A tensor.
        axes: The axes.
        shift: A number near the mean, which makes the sums more exact.
        keep_dims: Old name of `keepdims`.
        name: Name scope of the operations.
        keepdims: Whether the reduced axes stay, of length 1.

    Returns:
        How many elements, the sum of their distances to the shift, the sum of the squares of those,
        and the shift (or None).
    """
    x = convert_to_tensor(x)
    places = as_axes(axes)
    keep = _kept(keepdims, keep_dims)
    with x.graph.name_scope(name or "sufficient_statistics"):
        counts = _count(x, places)
        distances, squares = x, square(x)
        if shift is not None:
            shift = convert_to_tensor(
                shift, None if isinstance(shift, Tensor) else x.dtype, "shift"
            )
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


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance from `sufficient_statistics`."""
    sums, squares = convert_to_tensor(mean_ss), convert_to_tensor(variance_ss)
    with sums.graph.name_scope(name or "normalize"):
        divisor = reciprocal(convert_to_tensor(counts, sums.dtype), name="divisor")
        if shift is None:
            mean = offset = multiply(sums, divisor, name="mean")
        else:
            offset = multiply(sums, divisor, name="shifted_mean")
            mean = add(offset, convert_to_tensor(shift, sums.dtype), name="mean")
        return mean, subtract(multiply(squares, divisor), square(offset), name="variance")


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """Returns (x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be None.

    Source: Ioffe & Szegedy 2015.
    """
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "batchnorm"):
        factor = rsqrt(add(variance, variance_epsilon))
        if scale is not None:
            factor = multiply(factor, scale)
        shift = negative(multiply(mean, factor))
        if offset is not None:
            shift = add(offset, shift)
        return add(multiply(x, cast(factor, x.dtype)), cast(shift, x.dtype))


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: Any = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """Returns `batch_normalization` with the old arguments.

    Args:
        t: A tensor, or under the name `input`.
        m: Its mean, or under the name `mean`.
        v: Its variance, or under the name `variance`.
        beta: What is added.
        gamma: What is multiplied, if `scale_after_normalization`.
        variance_epsilon: A small number.
        scale_after_normalization: See gamma.
        name: Name scope of the operations.
        input: See t.
        mean: See m.
        variance: See v.
    """
    pairs = (t, input), (m, mean), (v, variance)
    x, mean, variance = [new if old is None else old for old, new in pairs]
    if any(v is None for v in (x, mean, variance, beta, variance_epsilon)):
        raise InvalidArgumentError("expected t, m, v, beta and variance_epsilon, got fewer")
    scale = gamma if scale_after_normalization else None
    return batch_normalization(x, mean, variance, beta, scale, variance_epsilon, name)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str | None = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns images normalised per channel, and moving averages of the channels' moments.

    Args:
        x: Images or volumes.
        scale: What each channel is multiplied with, float32 for short x.
        offset: What is added.
        mean: The channels' moving means: used as they are outside of training.
        variance: The channels' moving variances, in the same way.
        epsilon: A small number that is added to variances.
        data_format: "NHWC", "NCHW", "NDHWC" or "NCDHW".
        is_training: Whether the batch's own moments are used, and averaged.
        name: Name of the operation.
        exponential_avg_factor: How much a batch counts in the averages.

    Returns:
        The images, and the moving means and variances: the batch's own if its factor is 1.

    Raises:
        InvalidArgumentError: if mean or variance are missing where they are needed.
    """
    x = convert_to_tensor(x)
    short = dtypes.float32 if x.dtype.size <= 2 else x.dtype
    factor = float(exponential_avg_factor)
    needed = not is_training or factor != 1.0
    if needed and (mean is None or variance is None):
        raise InvalidArgumentError(
            "expected mean and variance where is_training is False or exponential_avg_factor is "
            "not 1, got none"
        )
    if not needed and (mean is None or variance is None):
        mean = variance = convert_to_tensor([], short)
    per_channel = [_of(v, short) for v in (scale, offset, mean, variance)]
    # As the original does for the sake of graphics cards.
    op = FusedBatchNormV3(max(epsilon, 1.001e-5), factor, data_format or "NHWC", bool(is_training))
    y, new_mean, new_variance, *_ = apply_many(op, x, *per_channel, name=name)
    return y, new_mean, new_variance


def _of(value: Any, dtype: DType) -> Tensor:
    return convert_to_tensor(value, None if isinstance(value, Tensor) else dtype)


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Returns each element divided by (bias + alpha * sum of neighbours' squares) ** beta.

    Args:
        input: Images; the neighbours of an element are those in the channels beside its own.
        depth_radius: How many channels to each side.
        bias: See above.
        alpha: See above.
        beta: See above.
        name: Name of the operation.

    Source: Krizhevsky, Sutskever & Hinton 2012, section 3.3.
    """
    return unary(LRN(int(depth_radius), float(bias), float(alpha), float(beta)), input, name)


lrn = local_response_normalization


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Returns x / sqrt(max(sum(|x|^2), epsilon)) along an axis (or several)."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "l2_normalize"):
        wide = widened(x)
        squares = real(multiply(wide, conj(wide))) if x.dtype.is_complex else square(wide)
        total = reduce_sum(squares, dim if axis is None else axis, keepdims=True)
        scale = rsqrt(maximum(total, epsilon))
        return cast(multiply(wide, cast(scale, wide.dtype)), x.dtype)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Returns `x` with elements set to 0 at random, the others scaled up so that the mean stays.

    Args:
        x: A floating-point tensor.
        keep_prob: The probability that an element is kept.
        noise_shape: Shape of the random choices, broadcast to x's; x's own by default, and where it
            says None.
        seed: Seed of the op.
        name: Name scope of the operations.
        rate: 1 - keep_prob, in its place.

    Raises:
        InvalidArgumentError: unless one of keep_prob and rate is given, and is a probability.
    """
    x = convert_to_tensor(x)
    if (keep_prob is None) == (rate is None):
        raise InvalidArgumentError("expected one of keep_prob and rate, got both or none")
    check_kind(x.dtype, "f")
    keep = 1 - rate if keep_prob is None else keep_prob
    known = get_static_value(keep)
    if known is not None:
        if not 0 < known <= 1:
            raise InvalidArgumentError(f"expected a keep_prob in (0, 1], got {known}")
        if known == 1:
            return x  # type: ignore[no-any-return]
    with x.graph.name_scope(name or "dropout"):
        keep = convert_to_tensor(keep, None if isinstance(keep, Tensor) else x.dtype)
        chance = random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
        return multiply(realdiv(x, keep), floor(add(chance, keep)))


def _noise_shape(x: Tensor, noise_shape: Any) -> Tensor:
    """Returns the shape of the random choices, with x's sizes in place of None."""
    if noise_shape is None:
        return shape_of(x)
    if isinstance(noise_shape, list | tuple) and any(d is None for d in noise_shape):
        sizes = shape_of(x)
        noise_shape = [sizes[i] if d is None else d for i, d in enumerate(noise_shape)]
    return as_shape(noise_shape, None, "noise_shape")
