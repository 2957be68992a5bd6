"""Convolutions of each channel by itself: products and sums of shifted images, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flowscope.graph.op import Array, ArrayModule, frozen
from flowscope.graph.values.expected import expected
from flowscope.ops.core.broadcasting import as_sizes
from flowscope.ops.kernels.convolution import BLOCK_BYTES, DEVICE_BLOCK_BYTES, by_library
from flowscope.ops.kernels.windows import Axis
from flowscope.ops.nn.convolution_ops import (
    Convolution,
    ConvolutionFilter,
    ConvolutionInput,
    Convolving,
)


@frozen
class _Depthwise(Convolving, abstract=True):
    """What the three ops share: filters [rows, columns, c, m] make c * m channels."""

    def check_channels(self, channels: int | None, k: tuple[int | None, ...]) -> None:
        own = k[-2]
        if channels is not None and own is not None and channels != own:
            raise expected(f"filters for {channels} channels", k)

    def outputs(self, k: tuple[int | None, ...]) -> int | None:
        return None if k[-1] is None or k[-2] is None else k[-1] * k[-2]


def _taps(axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yields each position in a window, and which elements of the spans lie there."""
    for tap in np.ndindex(*[a.window for a in axes]):
        yield tap, tuple([a.tap(i) for a, i in zip(axes, tap, strict=True)])


def _blocks(xp: ArrayModule, n: int, per_image: int) -> Iterator[slice]:
    """Yields which images stay in the cache together."""
    limit = BLOCK_BYTES // 4 if xp is np else DEVICE_BLOCK_BYTES
    step = max(1, limit // max(per_image, 1))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))


def _spans(xp: ArrayModule, x: Array, axes: Sequence[Axis]) -> Array:
    """Returns images with margins, as far as windows reach."""
    inside, kept = zip(*[a.inside() for a in axes], strict=True)
    if not any(a.has_margin for a in axes):
        return x[(slice(None), *kept)]
    whole = xp.zeros((x.shape[0], *[a.span for a in axes], x.shape[-1]), x.dtype)
    whole[(slice(None), *inside)] = x[(slice(None), *kept)]
    return whole


def _grouped(k: Array) -> Array:
    """Returns the filters as those of groups of one channel each."""
    return k.reshape(*k.shape[:-2], 1, k.shape[-2] * k.shape[-1])


class DepthwiseConv2dNative(_Depthwise, Convolution):
    """The convolution of each channel with filters of its own.

    Shapes: x [n, height, width, c], k [rows, columns, c, m] -> [n, height', width', c * m]
    """

    def kernel(self, xp: ArrayModule, x: Array, k: Array) -> Array:
        self.y_dims(x.shape, k.shape)
        x = self.last(xp, x)
        axes = self.axes(x.shape[1:-1], k.shape[:-2])
        c, m = k.shape[-2:]
        dims = (x.shape[0], *[a.out for a in axes], c * m)
        found = by_library(xp, "forward", axes, c, (x, _grouped(k)), dims)
        if found is not None:
            return self.first(xp, found)
        y = xp.zeros((*dims[:-1], c, m), x.dtype)
        for some in _blocks(xp, x.shape[0], y[:1].nbytes):
            whole, part = _spans(xp, x[some], axes), y[some]
            scratch = xp.empty(part.shape, x.dtype)
            for tap, places in _taps(axes):
                shifted = whole[(slice(None), *places)]
                part += xp.multiply(shifted[..., None], k[tap], out=scratch)
        return self.first(xp, y.reshape(*y.shape[:-2], c * m))


class DepthwiseConv2dNativeBackpropInput(
    _Depthwise, ConvolutionInput, forward=DepthwiseConv2dNative
):
    """The gradient of DepthwiseConv2dNative for its input.

    Shapes: sizes [4], k [rows, columns, c, m], g [n, height', width', c * m] -> sizes
    """

    def kernel(self, xp: ArrayModule, sizes: Array, k: Array, g: Array) -> Array:
        dims = as_sizes(sizes)
        self.check_gradient(dims, k.shape, g.shape)
        g = self.last(xp, g)
        axes = self.axes(self.spatial(dims), k.shape[:-2])
        c, m = k.shape[-2:]
        shape = (dims[0], *[a.size for a in axes], c)
        found = by_library(xp, "backward_data", axes, c, (_grouped(k), g), shape)
        if found is not None:
            return self.first(xp, found)
        x = xp.zeros(shape, g.dtype)
        inside, kept = zip(*[a.inside() for a in axes], strict=True)
        for some in _blocks(xp, dims[0], x[:1].nbytes):
            part = g[some].reshape(-1, *g.shape[1:-1], c, m)
            whole = xp.zeros((part.shape[0], *[a.span for a in axes], c), g.dtype)
            for tap, places in _taps(axes):
                product = part[..., 0] * k[tap][..., 0] if m == 1 else (part * k[tap]).sum(-1)
                whole[(slice(None), *places)] += product
            x[(some, *kept)] = whole[(slice(None), *inside)]
        return self.first(xp, x)


class DepthwiseConv2dNativeBackpropFilter(
    _Depthwise, ConvolutionFilter, forward=DepthwiseConv2dNative
):
    """The gradient of DepthwiseConv2dNative for its filter.

    Shapes: x [n, height, width, c], sizes [4], g [n, height', width', c * m] -> sizes
    """

    def kernel(self, xp: ArrayModule, x: Array, sizes: Array, g: Array) -> Array:
        dims = as_sizes(sizes)
        self.check_gradient(x.shape, dims, g.shape)
        x, g = self.last(xp, x), self.last(xp, g)
        axes = self.axes(x.shape[1:-1], dims[:-2])
        c, m = dims[-2:]
        found = by_library(xp, "backward_weights", axes, c, (x, g), (*dims[:-2], 1, c * m))
        if found is not None:
            return found.reshape(dims)
        k = xp.zeros(dims, g.dtype)
        for some in _blocks(xp, x.shape[0], g[:1].nbytes):
            part = g[some].reshape(-1, *g.shape[1:-1], c, m)
            whole = _spans(xp, x[some], axes)
            scratch = xp.empty(part.shape, g.dtype)
            for tap, places in _taps(axes):
                shifted = whole[(slice(None), *places)]
                product = xp.multiply(shifted[..., None], part, out=scratch)
                k[tap] += product.reshape(-1, c * m).sum(0).reshape(c, m)
        return k


DepthwiseConv2dNative.backwards = (
    DepthwiseConv2dNativeBackpropInput,
    DepthwiseConv2dNativeBackpropFilter,
)
