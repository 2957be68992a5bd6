"""Normalisation of batches, of neighbours' responses, and of vectors to length 1."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected
from flowscope.ops.core.build import apply_many, unary
from flowscope.ops.core.casting import cast, conj, real, widened
from flowscope.ops.core.declare import op_function
from flowscope.ops.math.elementwise import (
    add,
    maximum,
    multiply,
    negative,
    rsqrt,
    square,
)
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.nn.normalization_ops import LRN, FusedBatchNormV3

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "fused_batch_norm",
    "l2_normalize",
    "local_response_normalization",
    "lrn",
]


@op_function("x", scope="batchnorm")
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
        raise expected("t, m, v, beta and variance_epsilon", "fewer")
    scale = gamma if scale_after_normalization else None
    return batch_normalization(x, mean, variance, beta, scale, variance_epsilon, name)


@op_function("x")
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
        exponential_avg_factor: How much a batch counts in the averages.

    Returns:
        The images, and the moving means and variances: the batch's own if its factor is 1.

    Raises:
        InvalidArgumentError: if mean or variance are missing where they are needed.
    """
    short = dtypes.float32 if x.dtype.size <= 2 else x.dtype
    factor = float(exponential_avg_factor)
    needed = not is_training or factor != 1.0
    if needed and (mean is None or variance is None):
        raise expected(
            "mean and variance where is_training is False or exponential_avg_factor is not 1",
            "none",
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


@op_function("x", scope="l2_normalize")
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Returns x / sqrt(max(sum(|x|^2), epsilon)) along an axis (or several)."""
    wide = widened(x)
    squares = real(multiply(wide, conj(wide))) if x.dtype.is_complex else square(wide)
    total = reduce_sum(squares, dim if axis is None else axis, keepdims=True)
    scale = rsqrt(maximum(total, epsilon))
    return cast(multiply(wide, cast(scale, wide.dtype)), x.dtype)
