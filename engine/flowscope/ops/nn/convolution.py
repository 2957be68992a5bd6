"""Convolutions under TensorFlow's names, on the ops of `convolution_ops` and `depthwise`."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import expand_dims, reshape, shape_of, squeeze
from flowscope.ops.core.broadcasting import as_shape
from flowscope.ops.core.build import apply
from flowscope.ops.kernels.windows import FORMATS, as_format, as_padding, as_steps, check_untouched
from flowscope.ops.nn.convolution_ops import (
    Conv2D,
    Conv2DBackpropFilter,
    Conv2DBackpropInput,
    Conv3D,
    Conv3DBackpropFilter,
    Conv3DBackpropInput,
    Convolving,
)
from flowscope.ops.nn.depthwise import (
    DepthwiseConv2dNative,
    DepthwiseConv2dNativeBackpropFilter,
    DepthwiseConv2dNativeBackpropInput,
)

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "separable_conv2d",
]


def _op(
    kind: type[Convolving], strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Any:
    """Returns an op from arguments as users write them."""
    spatial = 3 if kind.__name__.startswith("Conv3D") else 2
    form = as_format(data_format, spatial)
    steps = as_steps(strides, spatial, form, "strides")
    rates = as_steps(dilations, spatial, form, "dilations")
    check_untouched(steps, form, "strides")
    check_untouched(rates, form, "dilations")
    name, margins = as_padding(_needed(padding, "padding"), spatial, form)
    return kind(steps, name, form, margins, rates)


def _needed(value: Any, what: str) -> Any:
    if value is None:
        raise expected(f"an argument {what!r}", "none")
    return value


def _either(value: Any, other: Any, what: str) -> Any:
    """The argument that was given under one of two names."""
    if value is not None and other is not None:
        raise expected(f"{what!r} under one of its names", "both")
    return _needed(value if other is None else other, what)


def _pair(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Returns two tensors of one dtype: what is no tensor takes the other's."""
    first = convert_to_tensor(first)
    return first, second if isinstance(second, Tensor) else convert_to_tensor(second, first.dtype)


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Returns the convolution of images with filters: sums of products under a moving window.

    Args:
        input: Images, [n, height, width, channels].
        filter: Filters, [rows, columns, channels, outputs]; or for equal groups of the channels.
        strides: Steps of the window: one number, one per spatial axis, or one per axis.
        padding: "SAME", "VALID", or a list of margins, [before, behind] for every axis.
        use_cudnn_on_gpu: True or False: a hint for speed.
        data_format: "NHWC" or "NCHW".
        dilations: Distances between the elements under a window, as strides.
        name: Name of the operation.
        filters: New name of `filter`.

    Raises:
        InvalidArgumentError: if the shapes do not fit.

    Example:
        >>> image, kernel = fs.ones([1, 4, 4, 1]), fs.ones([3, 3, 1, 2])
        >>> fs.nn.conv2d(image, kernel, strides=[1, 1, 1, 1], padding="VALID").shape.as_list()
        [1, 2, 2, 2]
    """
    del use_cudnn_on_gpu
    op = _op(Conv2D, _needed(strides, "strides"), padding, data_format, dilations)
    return apply(op, *_pair(input, _either(filter, filters, "filter")), name=name)


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Returns the convolution of volumes [n, depth, height, width, channels] with filters.

    The arguments are those of `conv2d`; data_format is "NDHWC" or "NCDHW".
    """
    op = _op(Conv3D, _needed(strides, "strides"), padding, data_format, dilations)
    return apply(op, *_pair(input, _either(filter, filters, "filter")), name=name)


def _flat_steps(steps: Any, data_format: str, what: str) -> list[int]:
    """Returns the steps of an image of one row, from those of a signal."""
    one = as_steps(steps, 1, data_format, what)
    return [1, *one] if data_format == "NCW" else [one[0], 1, *one[1:]]


def _flat_padding(padding: Any, data_format: str) -> Any:
    if isinstance(padding, str) or padding is None:
        return padding
    at = 2 if data_format == "NCW" else 1
    return [*padding[:at], [0, 0], *padding[at:]]


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the convolution of signals with filters.

    Args:
        value: Signals, [n, length, channels], perhaps with more axes in front.
        filters: Filters, [taps, channels, outputs].
        stride: The step of the window.
        padding: "SAME", "VALID", or a list of margins, [before, behind] for every axis.
        use_cudnn_on_gpu: True or False: a hint for speed.
        data_format: "NWC" (or "NHWC") or "NCW" (or "NCHW").
        name: Name scope of the operations.
        input: New name of `value`.
        dilations: The distance between the elements under a window.
    """
    del use_cudnn_on_gpu
    old = {"NHWC": "NWC", "NCHW": "NCW"}
    form = as_format(old.get(data_format or "", data_format), 1)
    x, k = _pair(_either(value, input, "value"), _needed(filters, "filters"))
    if x.spec.rank not in (3, None):
        return _batched(x, 1, lambda some: conv1d(some, k, stride, padding, None, form, name,
                                                  None, dilations))  # fmt: skip
    at = 2 if form == "NCW" else 1
    with x.graph.name_scope(name or "conv1d") as scope:
        del scope
        y = conv2d(
            expand_dims(x, at),
            expand_dims(k, 0),
            _flat_steps(_needed(stride, "stride"), form, "strides"),
            _flat_padding(padding, form),
            True,
            FORMATS[2][form == "NCW"],
            _flat_steps(dilations, form, "dilations"),
        )
        return squeeze(y, [at])


def _batched(x: Tensor, spatial: int, function: Any) -> Tensor:
    """Returns function(x) with all axes but the last ones as one batch."""
    sizes, keep = shape_of(x), spatial + 1
    y = function(reshape(x, concat([[-1], sizes[-keep:]], 0)))
    return reshape(y, concat([sizes[:-keep], shape_of(y)[-keep:]], 0))


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the convolution of signals, images or volumes, by the input's rank.

    Args:
        input: [n, *sizes, channels] with 1 to 3 spatial axes.
        filter: [*windows, channels, outputs].
        padding: "SAME" or "VALID".
        strides: One number per spatial axis.
        dilation_rate: One number per spatial axis.
        name: Name of the operation.
        data_format: "NWC", "NHWC" or "NDHWC", or with channels first "NCW", "NCHW" or "NCDHW".
        filters: New name of `filter`.
        dilations: New name of `dilation_rate`.
    """
    x, k = _pair(input, _either(filter, filters, "filter"))
    rank = x.spec.rank or k.spec.rank
    if rank not in (3, 4, 5):
        raise expected("an input of rank 3, 4 or 5", x.spec)
    rates = dilation_rate if dilations is None else dilations
    name = name or "convolution"
    if rank == 3:
        step = 1 if strides is None else strides
        return conv1d(x, k, step, padding, None, data_format, name, None, rates)
    kind = Conv2D if rank == 4 else Conv3D
    return apply(_op(kind, strides, padding, data_format, rates), x, k, name=name)


def atrous_conv2d(
    value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None
) -> Tensor:
    """Returns the convolution of images with filters of elements `rate` apart."""
    return convolution(value, filters, padding, None, [rate, rate], name or "atrous_conv2d")


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: Any, padding: Any, name: str | None = None
) -> Tensor:
    """Returns the transpose of `atrous_conv2d`: what its gradient computes.

    Args:
        value: [n, height, width, channels].
        filters: [rows, columns, outputs, channels].
        output_shape: The shape of the result.
        rate: The distance of the filters' elements.
        padding: "SAME" or "VALID".
        name: Name of the operation.
    """
    return conv2d_transpose(
        value, filters, output_shape, 1, padding, "NHWC", name or "atrous_conv2d_transpose",
        dilations=[1, rate, rate, 1],
    )  # fmt: skip


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Returns the gradient of a `conv2d` for its input.

    Args:
        input_sizes: The input's shape.
        filter: Its filters.
        out_backprop: The gradient for its output.
        strides: As in `conv2d`, and so are the others.
    """
    del use_cudnn_on_gpu
    op = _op(Conv2DBackpropInput, _needed(strides, "strides"), padding, data_format, dilations)
    g, k = _pair(_needed(out_backprop, "out_backprop"), _either(filter, filters, "filter"))
    return apply(op, as_shape(input_sizes, name or op.type, "input_sizes"), k, g, name=name)


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of a `conv2d` for its filters.

    Args:
        input: Its input.
        filter_sizes: The filters' shape.
        out_backprop: The gradient for its output.
        strides: As in `conv2d`, and so are the others.
    """
    del use_cudnn_on_gpu
    op = _op(Conv2DBackpropFilter, strides, padding, data_format, dilations)
    x, g = _pair(input, out_backprop)
    return apply(op, x, as_shape(filter_sizes, name or op.type, "filter_sizes"), g, name=name)


def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of a `conv3d` for its filters; as `conv2d_backprop_filter`."""
    op = _op(Conv3DBackpropFilter, strides, padding, data_format, dilations)
    x, g = _pair(input, out_backprop)
    return apply(op, x, as_shape(filter_sizes, name or op.type, "filter_sizes"), g, name=name)


conv3d_backprop_filter_v2 = conv3d_backprop_filter


def _transposed(
    kind: Any, value: Any, filters: Any, output_shape: Any, name: str, *attributes: Any
) -> Tensor:
    op = _op(kind, *attributes)
    g, k = _pair(value, filters)
    with g.graph.name_scope(name) as scope:
        sizes = as_shape(_needed(output_shape, "output_shape"), None, "input_sizes")
        return apply(op, sizes, k, g, name=scope)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the transpose of a `conv2d`: what its gradient for the input computes.

    Args:
        value: [n, height, width, channels].
        filter: [rows, columns, outputs, channels].
        output_shape: The shape of the result.
        strides: As in `conv2d`, and so are the others.
        padding: See there.
        data_format: See there.
        name: Name of the operation.
        input: New name of `value`.
        filters: New name of `filter`.
        dilations: See there.
    """
    value, k = _either(value, input, "value"), _either(filter, filters, "filter")
    attributes = _needed(strides, "strides"), padding, data_format, dilations
    return _transposed(
        Conv2DBackpropInput, value, k, output_shape, name or "conv2d_transpose", *attributes
    )


def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the transpose of a `conv3d`; the arguments are those of `conv2d_transpose`."""
    value, k = _either(value, input, "value"), _either(filter, filters, "filter")
    attributes = _needed(strides, "strides"), padding, data_format, dilations
    return _transposed(
        Conv3DBackpropInput, value, k, output_shape, name or "conv3d_transpose", *attributes
    )


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns the transpose of a `conv1d`.

    Args:
        input: [n, length, channels].
        filters: [taps, outputs, channels].
        output_shape: The shape of the result.
        strides: As in `conv1d`, and so are the others.
    """
    form = as_format(data_format, 1)
    at = 2 if form == "NCW" else 1
    x, k = _pair(input, filters)
    with x.graph.name_scope(name or "conv1d_transpose"):
        sizes = as_shape(output_shape, None, "output_shape")
        y = conv2d_transpose(
            expand_dims(x, at),
            expand_dims(k, 0),
            concat([sizes[:at], [1], sizes[at:]], 0),
            _flat_steps(strides, form, "strides"),
            _flat_padding(padding, form),
            FORMATS[2][form == "NCW"],
            dilations=_flat_steps(dilations, form, "dilations"),
        )
        return squeeze(y, [at])


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns the transpose of a convolution of 1 to 3 spatial axes, by output_shape's length."""
    sizes = as_shape(output_shape, name or "conv_transpose", "output_shape")
    rank = sizes.spec.shape[0] if sizes.spec.shape else None
    functions: dict[Any, Any] = {3: conv1d_transpose, 4: conv2d_transpose, 5: conv3d_transpose}
    if rank is None or rank not in functions:
        raise expected("an output_shape of 3 to 5 numbers", sizes.spec)
    form = data_format or FORMATS[rank - 2][0]
    y: Tensor = functions[rank](
        input, filters, sizes, strides, padding, form, dilations=dilations, name=name
    )
    return y


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the convolution of each channel with filters of its own.

    Args:
        input: [n, height, width, channels].
        filter: [rows, columns, channels, multiplier]; there are channels * multiplier outputs.
        strides: As in `conv2d`, and so are the others.
    """
    op = _op(DepthwiseConv2dNative, strides, padding, data_format, dilations)
    return apply(op, *_pair(input, filter), name=name)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the convolution of each channel with filters of its own.

    The arguments are those of `depthwise_conv2d_native`, but:
        rate: The dilation, one number per spatial axis; or `dilations`.
    """
    rates = rate if dilations is None else dilations
    name = name or "depthwise"
    return depthwise_conv2d_native(input, filter, strides, padding, data_format, rates, name)


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of a `depthwise_conv2d` for its input."""
    kind = DepthwiseConv2dNativeBackpropInput
    op = _op(kind, strides, padding, data_format, dilations)
    g, k = _pair(out_backprop, filter)
    return apply(op, as_shape(input_sizes, name or op.type, "input_sizes"), k, g, name=name)


def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of a `depthwise_conv2d` for its filters."""
    kind = DepthwiseConv2dNativeBackpropFilter
    op = _op(kind, strides, padding, data_format, dilations)
    x, g = _pair(input, out_backprop)
    return apply(op, x, as_shape(filter_sizes, name or op.type, "filter_sizes"), g, name=name)


depthwise_conv2d_native_backprop_input = depthwise_conv2d_backprop_input
depthwise_conv2d_native_backprop_filter = depthwise_conv2d_backprop_filter


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Returns a depthwise convolution followed by a mix of its channels.

    Args:
        input: [n, height, width, channels].
        depthwise_filter: [rows, columns, channels, multiplier].
        pointwise_filter: [1, 1, channels * multiplier, outputs].
        strides: As in `conv2d`, for the first of the two, and so are the others.
        rate: The dilation, one number per spatial axis; or `dilations`.
    """
    x, k = _pair(input, depthwise_filter)
    mix = convert_to_tensor(pointwise_filter, None if isinstance(pointwise_filter, Tensor) else x.dtype)  # fmt: skip  # noqa: E501
    if not compatible(mix.spec.shape, (1, 1, None, None)):
        raise expected("a pointwise filter of 1 by 1", mix.spec)
    with x.graph.name_scope(name or "separable_conv2d") as scope:
        y = depthwise_conv2d(x, k, strides, padding, rate, "depthwise", data_format, dilations)
        return conv2d(y, mix, 1, "VALID", True, data_format, 1, scope)
