"""Pools: maxima and means under moving windows."""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import as_dtype
from flowscope.graph.values.expected import expected
from flowscope.ops.array.shaping import expand_dims, squeeze
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.kernels.windows import (
    FORMATS,
    as_format,
    as_padding,
    as_steps,
)
from flowscope.ops.nn.pooling_ops import (
    AvgPool,
    AvgPool3D,
    MaxPool,
    MaxPool3D,
    MaxPoolWithArgmax,
    Pooling,
)

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "pool",
]


class MaxPoolWithArgmaxOutputs(NamedTuple):
    """What `max_pool_with_argmax` returns."""

    output: Tensor
    argmax: Tensor


def _op(
    kind: type[Pooling],
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: tuple[int, ...] = (),
    **more: Any,
) -> Any:
    """Returns an op from arguments as users write them."""
    spatial = 3 if "3D" in kind.__name__ else 2
    form = as_format(data_format, spatial)
    sizes = as_steps(ksize, spatial, form, "ksize")
    steps = as_steps(strides, spatial, form, "strides")
    if kind is AvgPool and not isinstance(padding, str):
        raise expected('padding "SAME" or "VALID"', repr(padding))
    name, margins = as_padding(padding, spatial, form)
    return kind(steps, name, form, margins, sizes, dilations, **more)


def _value(value: Any, other: Any) -> Any:
    if (value is None) == (other is None):
        raise expected("one of `value` and `input`", "both or none")
    return convert_to_tensor(value if other is None else other)


def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the largest elements under a moving window.

    Args:
        value: Images, [n, height, width, channels].
        ksize: The window's size: one number, one per spatial axis, or one per axis.
        strides: Its steps, in the same way.
        padding: "SAME", "VALID", or a list of margins, [before, behind] for every axis.
        data_format: "NHWC" or "NCHW".
        name: Name of the operation.
        input: New name of `value`.

    Example:
        >>> y = fs.nn.max_pool(fs.ones([1, 4, 4, 3]), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        >>> y.shape.as_list()
        [1, 2, 2, 3]
    """
    op = _op(MaxPool, ksize, strides, padding, data_format)
    return apply(op, _value(value, input), name=name)


def avg_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the means under a moving window; margins do not count.

    The arguments are those of `max_pool`, but that padding is "SAME" or "VALID".
    """
    op = _op(AvgPool, ksize, strides, padding, data_format)
    return apply(op, _value(value, input), name=name)


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window; as `max_pool`."""
    return max_pool(input, ksize, strides, padding, data_format, name or "MaxPool2d")


avg_pool2d = avg_pool


def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window of volumes; as `max_pool`."""
    op = _op(MaxPool3D, ksize, strides, padding, data_format)
    return apply(op, convert_to_tensor(input), name=name)


def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Returns the means under a moving window of volumes; as `avg_pool`."""
    op = _op(AvgPool3D, ksize, strides, padding, data_format)
    return apply(op, convert_to_tensor(input), name=name)


def _pool1d(
    kind: type[Pooling], x: Any, ksize: Any, strides: Any, padding: Any, form: Any, name: str
) -> Tensor:
    """Returns the pool of signals [n, length, channels], as images of one row."""
    x, form = convert_to_tensor(x), as_format(form, 1)
    at = 2 if form == "NCW" else 1
    sizes, steps = [as_steps(v, 1, form, what) for v, what in ((ksize, "ksize"), (strides, "strides"))]  # fmt: skip  # noqa: E501
    if not isinstance(padding, str):
        padding = [*padding[:at], [0, 0], *padding[at:]]
    with x.graph.name_scope(name):
        size, step = [[*v[:at], 1, *v[at:]] for v in (sizes, steps)]
        op = _op(kind, size, step, padding, FORMATS[2][form == "NCW"])
        return squeeze(apply(op, expand_dims(x, at)), [at])


def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window of signals [n, length, channels]."""
    return _pool1d(MaxPool, input, ksize, strides, padding, data_format, name or "MaxPool1d")


def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Returns the means under a moving window of signals [n, length, channels]."""
    return _pool1d(AvgPool, input, ksize, strides, padding, data_format, name or "AvgPool1D")


def _by_rank(functions: dict[int, Any], input: Any, *arguments: Any) -> Tensor:
    x = convert_to_tensor(input)
    if x.spec.rank not in functions:
        raise expected("an input of rank 3, 4 or 5", x.spec)
    result: Tensor = functions[x.spec.rank](x, *arguments)
    return result


def max_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window, of 1 to 3 axes by the input's rank."""
    functions = {3: max_pool1d, 4: max_pool, 5: max_pool3d}
    return _by_rank(functions, input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the means under a moving window, of 1 to 3 axes by the input's rank."""
    functions = {3: avg_pool1d, 4: avg_pool, 5: avg_pool3d}
    return _by_rank(functions, input, ksize, strides, padding, data_format, name)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Returns a pool of 1 to 3 spatial axes.

    Args:
        input: [n, *sizes, channels].
        window_shape: One number per spatial axis.
        pooling_type: "MAX" or "AVG".
        padding: "SAME" or "VALID".
        dilation_rate: One number per spatial axis; the elements' distance under the window.
        strides: One number per spatial axis.
        name: Name of the operation.
        data_format: As in `convolution`.
        dilations: New name of `dilation_rate`.

    Raises:
        InvalidArgumentError: if there are both strides and a dilation, or "SAME" and a dilation.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise expected('pooling_type "MAX" or "AVG"', repr(pooling_type))
    x, n = convert_to_tensor(input), len(window_shape)
    if n not in FORMATS:
        raise expected("a window of 1 to 3 axes", repr(window_shape))
    rates = list((dilation_rate if dilations is None else dilations) or [1] * n)
    steps = list(strides or [1] * n)
    name = name or f"{pooling_type.lower()}_pool"
    if any(r != 1 for r in rates):
        if padding == "SAME" or any(s != 1 for s in steps):
            raise expected(
                "a dilated pool without strides and with padding VALID",
                f"strides {steps}, {padding}",
            )
    form = as_format(data_format, n)
    if n == 1:
        return _dilated1d(x, window_shape, pooling_type, padding, rates, steps, form, name)
    kinds = {("MAX", 2): MaxPool, ("AVG", 2): AvgPool, ("MAX", 3): MaxPool3D, ("AVG", 3): AvgPool3D}
    spread = as_steps(rates, n, form, "dilations")
    op = _op(kinds[pooling_type, n], list(window_shape), steps, padding, form, spread)
    return apply(op, x, name=name)


def _dilated1d(
    x: Tensor, window: Any, kind: str, padding: Any, rates: Any, steps: Any, form: str, name: str
) -> Tensor:
    at = 2 if form == "NCW" else 1
    wide = FORMATS[2][form == "NCW"]
    with x.graph.name_scope(name):
        y = pool(
            expand_dims(x, at), [1, *window], kind, padding, [1, *rates], [1, *steps], None, wide
        )
        return squeeze(y, [at])


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> MaxPoolWithArgmaxOutputs:
    """Returns the largest elements under a moving window, and where they are.

    Args:
        input: Images, [n, height, width, channels].
        ksize: See `max_pool`, and so the others.
        strides: See there.
        padding: See there.
        data_format: "NHWC".
        Targmax: dtype of the numbers, int64 by default.
        name: Name of the operation.
        output_dtype: New name of `Targmax`.
        include_batch_in_index: Whether the numbers count through the batch, not through each image.

    Returns:
        The maxima, and for each the number (row * width + column) * channels + channel.
    """
    if data_format not in (None, "NHWC"):
        raise expected("data_format NHWC", repr(data_format))
    dtype = as_dtype(output_dtype or Targmax or dtypes.int64)
    op = _op(
        MaxPoolWithArgmax,
        ksize,
        strides,
        padding,
        "NHWC",
        dtype=dtype,
        include_batch_in_index=bool(include_batch_in_index),
    )
    return MaxPoolWithArgmaxOutputs(*apply_many(op, convert_to_tensor(input), name=name))
