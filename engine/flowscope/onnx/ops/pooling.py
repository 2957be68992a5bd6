"""Pooling: windows' maxima, means and norms, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import UnimplementedError
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.node import OnnxNode, dims_of, full_like, rank_of
from flowscope.onnx.ops.convolution import numbers, padding, spatial
from flowscope.onnx.table import converts


class _Windows:
    """The windows of a pooling node.

    Attributes:
        kernel, strides, dilations: A number per spatial axis.
        pads: What the node pads before and behind.
        more: What is added behind, so that the last window of `ceil_mode` has all places.
    """

    def __init__(self, n: OnnxNode) -> None:
        count = spatial(n)
        sizes = dims_of(n.x(0))[2:]
        self.kernel = [int(k) for k in n.needed("kernel_shape")]
        self.strides = numbers(n, "strides", count)
        self.dilations = numbers(n, "dilations", count)
        self.pads = padding(n, sizes, self.kernel, self.strides, self.dilations)
        self.more = [0] * count
        if n.attr("ceil_mode", 0):
            for i, size in enumerate(sizes):
                if size is None:
                    if self.strides[i] == 1:
                        continue
                    raise UnimplementedError("ceil_mode needs spatial axes of known sizes")
                self.more[i] = self._missing(i, size)

    def _missing(self, i: int, size: int) -> int:
        before, behind = self.pads[i]
        span = (self.kernel[i] - 1) * self.dilations[i] + 1
        stride = self.strides[i]
        count = -(-(size + before + behind - span) // stride) + 1
        if (count - 1) * stride >= size + before:
            count -= 1  # a window must not begin in the pads behind
        return max(0, (count - 1) * stride + span - size - before - behind)

    def padded(self, x: fs.Tensor, value: Any, is_all: bool = True) -> Any:
        """The input with a value around it: all places, or only those that `ceil_mode` adds."""
        pairs = [
            [a if is_all else 0, (b if is_all else 0) + m]
            for (a, b), m in zip(self.pads, self.more, strict=True)
        ]
        if not np.any(pairs):
            return x
        return fs.pad(x, [[0, 0], [0, 0], *pairs], constant_values=value)

    def pool(self, x: fs.Tensor, kind: str) -> Any:
        """Pools windows without any pads."""
        rank = rank_of(x) - 2
        if rank == 1:
            flat = _Windows.__new__(_Windows)
            flat.kernel, flat.strides = [1, *self.kernel], [1, *self.strides]
            flat.dilations = [1, *self.dilations]
            return fs.squeeze(flat.pool(fs.expand_dims(x, 2), kind), [2])
        order = [0, *range(2, rank + 2), 1]
        x = fs.transpose(x, order)
        is_dilated = any(d > 1 for d in self.dilations)
        found = fs.nn.pool(
            x,
            self.kernel,
            kind,
            "VALID",
            strides=None if is_dilated else self.strides,
            dilation_rate=self.dilations if is_dilated else None,
        )
        if is_dilated and any(s > 1 for s in self.strides):
            found = found[(slice(None), *[slice(None, None, s) for s in self.strides])]
        return fs.transpose(found, [0, rank + 1, *range(1, rank + 1)])


def _lowest(x: fs.Tensor) -> Any:
    if x.dtype.is_floating:
        return full_like(-np.inf, x)
    return full_like(np.iinfo(x.dtype.np_dtype).min, x)


@converts("MaxPool")
def _max_pool(n: OnnxNode) -> Any:
    x, windows = n.x(0), _Windows(n)
    if n.wants(1):
        return _max_pool_with_index(n, windows)
    if not x.dtype.is_floating:
        wide = fs.cast(x, fs.float32)
        found = windows.pool(windows.padded(wide, full_like(-np.inf, wide)), "MAX")
        return fs.cast(found, x.dtype)
    return windows.pool(windows.padded(x, _lowest(x)), "MAX")


def _max_pool_with_index(n: OnnxNode, windows: _Windows) -> Any:
    x = n.x(0)
    dims = dims_of(x)
    out: list[int | None] = dims[:2]
    for i, size in enumerate(dims[2:]):
        span = (windows.kernel[i] - 1) * windows.dilations[i] + 1
        whole = None if size is None else size + sum(windows.pads[i]) + windows.more[i]
        out.append(None if whole is None else (whole - span) // windows.strides[i] + 1)
    return operator(
        "MaxPoolWithIndex",
        [x],
        [(x.dtype, tuple(out)), (fs.int64, tuple(out))],
        kernel=windows.kernel,
        strides=windows.strides,
        dilations=windows.dilations,
        pads=[[a, b + m] for (a, b), m in zip(windows.pads, windows.more, strict=True)],
        is_row_major=not n.attr("storage_order", 0),
    )


@converts("AveragePool")
def _average_pool(n: OnnxNode) -> Any:
    x, windows = n.x(0), _Windows(n)
    count = float(np.prod(windows.kernel))
    found = windows.pool(windows.padded(x, full_like(0, x)), "AVG")
    if not np.any([windows.pads]) and not any(windows.more):
        return found
    ones = fs.ones_like(x[:1, :1])
    if n.attr("count_include_pad", 0):
        ones = fs.pad(ones, [[0, 0], [0, 0], *[list(p) for p in windows.pads]], constant_values=1)
        ones = windows.padded(ones, full_like(0, x), is_all=False)
    else:
        ones = windows.padded(ones, full_like(0, x))
    parts = windows.pool(ones, "AVG")
    parts = fs.math.rint(parts * full_like(count, x)) / full_like(count, x)
    return fs.math.realdiv(found, parts)


@converts("LpPool")
def _lp_pool(n: OnnxNode) -> Any:
    x, windows, p = n.x(0), _Windows(n), n.attr("p", 2)
    power = fs.pow(fs.abs(x), full_like(p, x))
    mean = windows.pool(windows.padded(power, full_like(0, x)), "AVG")
    return fs.pow(mean * full_like(float(np.prod(windows.kernel)), x), full_like(1 / p, x))


def _global_axes(n: OnnxNode) -> Sequence[int]:
    return range(2, rank_of(n.x(0)))


@converts("GlobalAveragePool")
def _global_average_pool(n: OnnxNode) -> Any:
    return fs.reduce_mean(n.x(0), _global_axes(n), True)


@converts("GlobalMaxPool")
def _global_max_pool(n: OnnxNode) -> Any:
    return fs.reduce_max(n.x(0), _global_axes(n), True)


@converts("GlobalLpPool")
def _global_lp_pool(n: OnnxNode) -> Any:
    x, p = n.x(0), n.attr("p", 2)
    power = fs.pow(fs.abs(x), full_like(p, x))
    return fs.pow(fs.reduce_sum(power, _global_axes(n), True), full_like(1 / p, x))


@converts("MaxUnpool")
def _max_unpool(n: OnnxNode) -> Any:
    x, count = n.x(0), spatial(n)
    kernel, strides = numbers(n, "kernel_shape", count), numbers(n, "strides", count)
    pads = numbers(n, "pads", 2 * count, 0)
    dims = dims_of(x)
    if None in dims:
        raise UnimplementedError("expected an input of known shape")
    small = [int(d or 0) for d in dims[:2]] + [
        (int(d or 0) - 1) * s - (pads[i] + pads[i + count]) + k
        for i, (d, s, k) in enumerate(zip(dims[2:], strides, kernel, strict=True))
    ]
    known = n.known(2)
    out = small if not n.has(2) else [None] * len(small) if known is None else known.tolist()
    inputs = [x, n.x(1), *([n.x(2)] if n.has(2) else [])]
    return operator("MaxUnpool", inputs, [(x.dtype, tuple(out))], small=small)
