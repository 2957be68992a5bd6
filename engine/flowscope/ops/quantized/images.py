"""Convolutions, pools and activations of numbers of 8 bits, each with the range that it covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.work import PRODUCT
from flowscope.ops.array.joining import concat
from flowscope.ops.core.build import apply_many
from flowscope.ops.kernels.windows import as_padding, as_steps
from flowscope.ops.math.reductions import reduce_max, reduce_min
from flowscope.ops.nn.convolution_ops import Conv2D
from flowscope.ops.nn.pooling_ops import AvgPool, MaxPool
from flowscope.ops.quantized.quantization import dequantize, quantize_v2

__all__ = [
    "quantized_avg_pool",
    "quantized_conv2d",
    "quantized_max_pool",
    "quantized_relu_x",
]

_END = Spec(dtypes.float32, ())


def _check(*images: Spec, ends: Sequence[Spec]) -> None:
    for s in images:
        if not s.dtype.is_quantized or s.dtype.size != 1:
            raise expected_dtype("quint8 or qint8", s.dtype)
    for s in ends:
        if s.dtype is not dtypes.float32 or s.shape not in (None, ()):
            raise expected("a float32 scalar for each end", s)


def _plain(x: Spec) -> Spec:
    """Returns the same image as numbers."""
    return x.like(dtypes.float32)


def _zero(x: Array, low: float, high: float) -> float:
    """Returns the integer that stands for 0."""
    info = np.iinfo(x.dtype)
    return float(np.clip(round(info.min - low * 255 / (high - low)), info.min, info.max))


class QuantizedConv2D(Conv2D, is_differentiable=False, devices=("CPU",), work=PRODUCT):
    """The convolution of images and a filter of 8 bits, as qint32, and the range that it covers.

    Shapes: x [n, height, width, c], filter [h, w, c, k], four scalars -> [n, height', width', k],
        [], []
    """

    def infer(self, x: Spec, window: Spec, *ends: Spec) -> Any:
        _check(x, window, ends=ends)
        found = super().infer(_plain(x), _plain(window))
        return found.like(dtypes.qint32), _END, _END

    def kernel(self, xp: ArrayModule, x: Array, window: Array, *ends: Array) -> Any:
        low, high, low2, high2 = (float(e) for e in ends)
        # Sums of products of 8 bits are exact in float64, for which there is a quick kernel.
        wide = x.astype(xp.float64) - _zero(x, low, high)
        other = window.astype(xp.float64) - _zero(window, low2, high2)
        found = super().kernel(xp, wide, other).astype(xp.int32)
        step = np.float32((high - low) / 255 * ((high2 - low2) / 255))
        limits = [xp.asarray(step * np.float32(v), xp.float32)[()] for v in (-(2**31), 2**31 - 1)]
        return found, *limits


class QuantizedMaxPool(MaxPool, is_differentiable=False, devices=("CPU",)):
    """The pool of maxima of an image of 8 bits, and its range.

    Shapes: x [n, height, width, c], two scalars -> [n, height', width', c], [], []
    """

    def infer(self, x: Spec, *ends: Spec) -> Any:
        _check(x, ends=ends)
        return super().infer(_plain(x)).like(x.dtype), _END, _END

    def kernel(self, xp: ArrayModule, x: Array, *ends: Array) -> Any:
        y = super().kernel(xp, x.astype(xp.float32))
        return y.astype(x.dtype), *(e.copy() for e in ends)


class QuantizedAvgPool(AvgPool, is_differentiable=False, devices=("CPU",)):
    """The pool of means of an image of 8 bits, rounded, and its range.

    Shapes: x [n, height, width, c], two scalars -> [n, height', width', c], [], []
    """

    def infer(self, x: Spec, *ends: Spec) -> Any:
        _check(x, ends=ends)
        return super().infer(_plain(x)).like(x.dtype), _END, _END

    def kernel(self, xp: ArrayModule, x: Array, *ends: Array) -> Any:
        y = xp.rint(super().kernel(xp, x.astype(xp.float32)))
        return y.astype(x.dtype), *(e.copy() for e in ends)


@frozen
class QuantizedReluX(Op, is_differentiable=False, devices=("CPU",)):
    """min(max(x, 0), limit) of numbers of 8 bits, and their range.

    Shapes: x s, limit [], two scalars -> s, [], []
    """

    dtype: DType

    def infer(self, x: Spec, limit: Spec, *ends: Spec) -> Any:
        _check(x, ends=(limit, *ends))
        if self.dtype is not x.dtype:
            raise expected_dtype(f"features of out_type {self.dtype}", x.dtype)
        return x.like(), _END, _END

    def kernel(self, xp: ArrayModule, x: Array, limit: Array, low: Array, high: Array) -> Any:
        zero = _zero(x, float(low), float(high))
        info = np.iinfo(x.dtype)
        step = (float(high) - float(low)) / 255
        most = int(np.clip(round(zero + float(limit) / step), info.min, info.max))
        return xp.clip(x, x.dtype.type(zero), x.dtype.type(most)), low.copy(), high.copy()


def _ends(*values: Any) -> list[Tensor]:
    return [convert_to_tensor(v, None if isinstance(v, Tensor) else dtypes.float32) for v in values]


def quantized_conv2d(
    input: Any,
    filter: Any,
    min_input: Any,
    max_input: Any,
    min_filter: Any,
    max_filter: Any,
    strides: Any,
    padding: str,
    out_type: Any = dtypes.qint32,
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """Returns the convolution of images and a filter of 8 bits as qint32, and its range.

    Args:
        input: Images, quint8 [n, height, width, channels].
        filter: The filter, quint8 [h, w, channels, filters].
        min_input: Lower end of the images' range.
        max_input: Upper end.
        min_filter: Lower end of the filter's range.
        max_filter: Upper end.
        strides: As for `fs.nn.conv2d`, and so padding and dilations.
        padding: See there.
        out_type: qint32.
        dilations: See there.
        name: Name of the operation.
    """
    if as_dtype(out_type) is not dtypes.qint32:
        raise expected_dtype("qint32 as out_type", as_dtype(out_type))
    steps = as_steps(strides, 2, "NHWC", "strides")
    spread = as_steps(dilations, 2, "NHWC", "dilations")
    op = QuantizedConv2D(steps, as_padding(padding, 2, "NHWC")[0], dilations=spread)
    ends = _ends(min_input, max_input, min_filter, max_filter)
    tensors = convert_to_tensor(input), convert_to_tensor(filter)
    return apply_many(op, *tensors, *ends, name=name)


def _pool(kind: Any, input: Any, low: Any, high: Any, ksize: Any, strides: Any, padding: str,
          name: str | None) -> Any:  # fmt: skip
    size = as_steps(ksize, 2, "NHWC", "ksize")
    steps = as_steps(strides, 2, "NHWC", "strides")
    op = kind(steps, as_padding(padding, 2, "NHWC")[0], ksize=size)
    return apply_many(op, convert_to_tensor(input), *_ends(low, high), name=name)


def quantized_max_pool(
    input: Any,
    min_input: Any,
    max_input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    name: str | None = None,
) -> Any:
    """Returns the pool of maxima of quint8 or qint8 images, and the ends of its range."""
    return _pool(QuantizedMaxPool, input, min_input, max_input, ksize, strides, padding, name)


def quantized_avg_pool(
    input: Any,
    min_input: Any,
    max_input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    name: str | None = None,
) -> Any:
    """Returns the pool of means of quint8 or qint8 images, and the ends of its range."""
    return _pool(QuantizedAvgPool, input, min_input, max_input, ksize, strides, padding, name)


def quantized_relu_x(
    features: Any,
    max_value: Any,
    min_features: Any,
    max_features: Any,
    out_type: Any = dtypes.quint8,
    name: str | None = None,
) -> Any:
    """Returns min(max(features, 0), max_value) of quint8 numbers, and the ends of their range.

    Args:
        features: The numbers.
        max_value: The largest that is kept.
        min_features: Lower end of the numbers' range.
        max_features: Upper end.
        out_type: Their dtype.
        name: Name of the operation.
    """
    ends = _ends(max_value, min_features, max_features)
    op = QuantizedReluX(as_dtype(out_type))
    return apply_many(op, convert_to_tensor(features), *ends, name=name)


def quantized_concat(
    concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: str | None = None
) -> Any:
    """Returns quantised tensors joined along an axis, all in one range, and its ends.

    Args:
        concat_dim: The axis.
        values: Tensors of one quantised dtype.
        input_mins: The lower end of each one's range.
        input_maxes: The upper ends.
        name: Name scope of the operations.
    """
    tensors = [convert_to_tensor(v) for v in values]
    if not tensors or not len(tensors) == len(input_mins) == len(input_maxes):
        raise expected(
            "one range per value", f"{len(tensors)}, {len(input_mins)}, {len(input_maxes)}"
        )
    dtype = tensors[0].dtype
    with tensors[0].graph.name_scope(name or "QuantizedConcat"):
        lows, highs = (_ends(*ends) for ends in (input_mins, input_maxes))
        numbers = [dequantize(x, a, b, "MIN_FIRST") for x, a, b in zip(tensors, lows, highs)]
        low = reduce_min(concat([[0.0], lows], 0)) if len(lows) > 1 else lows[0]
        high = reduce_max(concat([[0.0], highs], 0)) if len(highs) > 1 else highs[0]
        return tuple(quantize_v2(concat(numbers, concat_dim), low, high, dtype, "MIN_FIRST"))
