"""Quantised numbers: to them, from them, and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import UnimplementedError
from flowscope.graph.values.dtypes import DType
from flowscope.onnx.node import OnnxNode, dims_of, full_like, normalized, rank_of
from flowscope.onnx.ops.convolution import convolve, numbers, padding, spatial
from flowscope.onnx.ops.linalg import product
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts

#: The least and the largest number of element types of few bits.
_NARROW = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def _bounds(dtype: DType) -> tuple[int, int]:
    if dtype.name in _NARROW:
        return _NARROW[dtype.name]
    info = np.iinfo(dtype.np_dtype)
    return int(info.min), int(info.max)


def _aligned(v: fs.Tensor, x: fs.Tensor, axis: int, block: int) -> Any:
    """Scales or zero points in a shape that stands beside x: one for all, per axis, per block."""
    if rank_of(v) == 0 or (rank_of(v) == 1 and dims_of(v)[0] == 1 and not block):
        return fs.reshape(v, [])
    axis = normalized([axis], rank_of(x))[0]
    if not block:
        return fs.reshape(v, [-1 if i == axis else 1 for i in range(rank_of(x))])
    size = dims_of(x)[axis]
    if size is None:
        raise UnimplementedError("expected a known size of the axis that has blocks")
    repeated = fs.repeat(v, block, axis)
    return repeated[(*[slice(None)] * axis, slice(0, size))]


@converts("DequantizeLinear")
def _dequantize(n: OnnxNode) -> Any:
    x, scale = n.x(0), n.x(1)
    axis, block = n.attr("axis", 1), n.attr("block_size", 0)
    number = n.attr("output_dtype", 0)
    dtype = dtype_of(number) if number else scale.dtype
    wide = fs.float64 if x.dtype in (fs.int32, fs.int64) else fs.float32
    found = fs.cast(x, wide)
    if n.has(2):
        found = found - _aligned(fs.cast(n.x(2), wide), x, axis, block)
    return fs.cast(found * _aligned(fs.cast(scale, wide), x, axis, block), dtype)


@converts("QuantizeLinear")
def _quantize(n: OnnxNode) -> Any:
    x, scale = n.x(0), n.x(1)
    axis, block = n.attr("axis", 1), n.attr("block_size", 0)
    number = n.attr("output_dtype", 0)
    dtype = n.x(2).dtype if n.has(2) else dtype_of(number) if number else fs.uint8
    precision = n.attr("precision", 0)
    wide = dtype_of(precision) if precision else fs.float32
    ratio = fs.math.realdiv(fs.cast(x, wide), _aligned(fs.cast(scale, wide), x, axis, block))
    if dtype.is_floating:
        from flowscope.onnx.kernels.operator import operator

        if n.has(2):
            ratio = ratio + _aligned(fs.cast(n.x(2), wide), x, axis, block)
        (found,) = operator(
            "CastFloat8",
            [fs.cast(ratio, fs.float32)],
            [(dtype, x.spec.shape)],
            dtype=dtype.name,
            saturate=bool(n.attr("saturate", 1)),
        )
        return found
    zero = _aligned(fs.cast(n.x(2), wide), x, axis, block) if n.has(2) else None
    return _rounded(ratio, zero, dtype)


def _rounded(ratio: Any, zero: Any, dtype: DType) -> Any:
    found = fs.math.rint(ratio)
    if zero is not None:
        found = found + fs.cast(zero, ratio.dtype)
    low, high = _bounds(dtype)
    found = fs.minimum(fs.maximum(found, full_like(low, found)), full_like(high, found))
    return fs.cast(found, dtype)


@converts("DynamicQuantizeLinear")
def _dynamic_quantize(n: OnnxNode) -> Any:
    x = n.x(0)
    zero = full_like(0, x)
    low = fs.minimum(zero, fs.reduce_min(x))
    high = fs.maximum(zero, fs.reduce_max(x))
    scale = fs.math.realdiv(high - low, full_like(255, x))
    point = fs.math.rint(
        fs.minimum(fs.maximum(fs.math.realdiv(-low, scale), zero), full_like(255, x))
    )
    return _rounded(fs.math.realdiv(x, scale), point, fs.uint8), scale, fs.cast(point, fs.uint8)


def _centred(n: OnnxNode, i: int, zero: int, axis: int | None) -> Any:
    """Input `i` less its zero point, as int32; along an axis where there is one per row."""
    x = fs.cast(n.x(i), fs.int32)
    if not n.has(zero):
        return x
    point = fs.cast(n.x(zero), fs.int32)
    if rank_of(point) == 1 and axis is not None:
        shape = [1] * rank_of(x)
        shape[axis] = -1
        point = fs.reshape(point, shape)
    return x - point


@converts("MatMulInteger")
def _matmul_integer(n: OnnxNode) -> Any:
    rank = rank_of(n.x(0))
    return product(
        _centred(n, 0, 2, rank - 2 if rank > 1 else None),
        _centred(n, 1, 3, rank_of(n.x(1)) - 1),
    )


@converts("QLinearMatMul")
def _qlinear_matmul(n: OnnxNode) -> Any:
    rank = rank_of(n.x(0))
    a = _centred(n, 0, 2, rank - 2 if rank > 1 else None)
    b = _centred(n, 3, 5, rank_of(n.x(3)) - 1)
    scale_a, scale_b, scale = [fs.cast(n.x(i), fs.float32) for i in (1, 4, 6)]
    if rank_of(scale_a) == 1 and rank > 1:
        scale_a = fs.expand_dims(scale_a, 1)
    ratio = fs.cast(product(a, b), fs.float32) * fs.math.realdiv(scale_a * scale_b, scale)
    return _rounded(ratio, n.x(7), n.x(7).dtype)


def _integer_convolution(n: OnnxNode, x: Any, w: Any, count: int) -> Any:
    kernel = [int(d or 0) for d in dims_of(w)[2:]]
    strides, dilations = numbers(n, "strides", count), numbers(n, "dilations", count)
    pads: Sequence[tuple[int, int]] = padding(n, dims_of(x)[2:], kernel, strides, dilations)
    x, w = fs.cast(x, fs.float64), fs.cast(w, fs.float64)  # holds all sums of 32 bits
    found = convolve(x, w, strides, pads, dilations, n.attr("group", 1))
    return fs.cast(found, fs.int32)


@converts("ConvInteger")
def _conv_integer(n: OnnxNode) -> Any:
    return _integer_convolution(n, _centred(n, 0, 2, None), _centred(n, 1, 3, 0), spatial(n))


@converts("QLinearConv")
def _qlinear_conv(n: OnnxNode) -> Any:
    count = spatial(n)
    found = _integer_convolution(n, _centred(n, 0, 2, None), _centred(n, 3, 5, 0), count)
    beside = [1, -1, *[1] * count]
    if n.has(8):
        found = found + fs.reshape(n.x(8), beside)
    scale = n.x(4)
    if rank_of(scale) == 1 and dims_of(scale)[0] != 1:
        scale = fs.reshape(scale, beside)
    ratio = fs.cast(found, fs.float32) * fs.math.realdiv(n.x(1) * scale, n.x(6))
    return _rounded(ratio, n.x(7), n.x(7).dtype)
