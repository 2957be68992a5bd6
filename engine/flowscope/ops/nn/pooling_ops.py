"""The ops of pools: maxima and means under windows, and their gradients of any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.onednn_pools import pooled, spread
from flowscope.ops.kernels.pooling import (
    counts,
    pick_max,
    spread_max,
    spread_sum,
    window_max,
    window_sum,
)
from flowscope.ops.kernels.windows import (
    Axis,
    Windowed,
    axis_of,
    count,
)


@frozen
class Pooling(Windowed, abstract=True, memory_order="K"):
    """Base of pools. Windows may span any axis, channels and batch included.

    Attributes:
        ksize: The windows' size along each axis; dilations: the distance of their elements.
    """

    ksize: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()

    def rates(self) -> tuple[int, ...]:
        """Returns the dilation along each axis."""
        return self.dilations or (1,) * len(self.ksize)

    def pairs(self) -> list[tuple[int, int]]:
        """Returns the explicit margins of each axis."""
        pads = self.explicit_paddings or (0, 0) * len(self.ksize)
        return list(zip(pads[::2], pads[1::2], strict=True))

    def pooled(self, dims: Dims) -> Dims:
        """Returns the output's shape as far as it is known."""
        if dims is None:
            return (None,) * len(self.ksize)
        if len(dims) != len(self.ksize):
            raise expected(f"rank {len(self.ksize)}", dims)
        parts = zip(dims, self.ksize, self.strides, self.rates(), self.pairs(), strict=True)
        return tuple(count(d, k, s, r, self.padding, p) for d, k, s, r, p in parts)

    def every_axis(self, dims: Sequence[int]) -> tuple[Axis, ...]:
        """Returns all axes of an array of this shape."""
        self.pooled(tuple(dims))
        parts = zip(dims, self.ksize, self.strides, self.rates(), self.pairs(), strict=True)
        return tuple(axis_of(d, k, s, r, self.padding, p) for d, k, s, r, p in parts)

    def turned(self, op: type[Pooling]) -> Op:
        """Returns another op of the same attributes."""
        return op(**{k: v for k, v in self.attributes().items() if k in _NAMES})

    def check_gradient(self, dims: Dims, g: Dims) -> None:
        """Raises InvalidArgumentError unless g has the shape of the output."""
        if not compatible(self.pooled(dims), g):
            raise expected(f"a gradient of shape {text(self.pooled(dims))}", g)


_NAMES = frozenset(["strides", "padding", "data_format", "explicit_paddings", "ksize", "dilations"])


class MaxPooling(Pooling, abstract=True, grad_reads=("x",), uses_blas=True):
    """Base of the pools of maxima."""

    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiu")
        return Spec(x.dtype, self.pooled(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(self.turned(self.backward), x, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axes = self.every_axis(x.shape)
        y = pooled("max", x, axes)
        if y is None:
            y = window_max(xp, x, axes)
        return x.copy() if y is x else y


class MaxPoolingGrad(Pooling, abstract=True, grad_reads=("x",), accumulates=True, uses_blas=True):
    """Base of the gradients of pools of maxima."""

    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec, g: Spec) -> Spec:
        check_same(x, g)
        self.check_gradient(x.shape, g.shape)
        return Spec(g.dtype, x.shape or (None,) * len(self.ksize))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, dy: Tensor) -> Any:
        return None, apply(self.turned(self.backward), x, g)

    def kernel(self, xp: ArrayModule, x: Array, g: Array) -> Array:
        self.check_gradient(x.shape, g.shape)
        axes = self.every_axis(x.shape)
        out = spread("max grad", x, g, axes)
        return spread_max(xp, x, g, axes) if out is None else out


class MaxPoolingPick(Pooling, abstract=True, grad_reads=("x",)):
    """Base of the gradients of those gradients."""

    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec, values: Spec) -> Spec:
        check_same(x, values)
        check_kind(x.dtype, "fiu")
        if not compatible(x.shape, values.shape):
            raise expected(f"values of shape {text(x.shape)}", values.shape)
        return Spec(values.dtype, self.pooled(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, values: Tensor) -> Any:
        return None, apply(self.turned(self.backward), x, g)

    def kernel(self, xp: ArrayModule, x: Array, values: Array) -> Array:
        out = pick_max(xp, x, values, self.every_axis(x.shape))
        return values.copy() if out is values else out


class MeanPooling(Pooling, abstract=True, accumulates=True):
    """Base of the pools of means; margins do not count."""

    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return Spec(x.dtype, self.pooled(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(self.turned(self.backward), shape_of(x), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axes = self.every_axis(x.shape)
        y = pooled("mean", x, axes)
        if y is not None:
            return y
        y = window_sum(xp, x, axes)
        if y is x:
            return x.copy()
        y /= counts(xp, axes, x.dtype)
        return y


class MeanPoolingGrad(Pooling, abstract=True, accumulates=True, host_inputs=(0,)):
    """Base of the gradients of pools of means."""

    forward: ClassVar[type[Pooling]]

    def infer(self, sizes: Spec, g: Spec) -> Spec:
        check_shape_vector(sizes)
        dims = sizes.shape_value() or (None,) * len(self.ksize)
        self.check_gradient(dims, g.shape)
        return Spec(g.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, sizes: Tensor, dy: Tensor) -> Any:
        return None, apply(self.turned(self.forward), g)

    def kernel(self, xp: ArrayModule, sizes: Array, g: Array) -> Array:
        dims = as_sizes(sizes)
        self.check_gradient(dims, g.shape)
        axes = self.every_axis(dims)
        out = spread("mean grad", None, g, axes)
        return spread_sum(xp, g / counts(xp, axes, g.dtype), axes) if out is None else out


class MaxPool(MaxPooling, keeps_finite=True):
    """The largest element under a moving window; NaN if one is.

    Shapes: [n, height, width, c] -> [n, height', width', c]
    """


class MaxPoolGrad(MaxPoolingGrad, keeps_finite=True):
    """The gradient of MaxPool: it goes to the first of the largest elements.

    That of a NaN goes to some element of its window.

    Shapes: x [n, height, width, c], g [n, height', width', c] -> x's
    """


class MaxPoolGradGrad(MaxPoolingPick):
    """The gradient of MaxPoolGrad for g: the values where the largest elements are.

    Shapes: x [n, height, width, c], values of x's -> [n, height', width', c]
    """


class MaxPool3D(MaxPooling):
    """The largest element under a moving window of a volume; NaN if one is.

    Shapes: [n, depth, height, width, c] -> [n, depth', height', width', c]
    """


class MaxPool3DGrad(MaxPoolingGrad):
    """The gradient of MaxPool3D: it goes to the first of the largest elements.

    That of a NaN goes to some element of its window.

    Shapes: x [n, depth, height, width, c], g [n, depth', height', width', c] -> x's
    """


class MaxPool3DGradGrad(MaxPoolingPick):
    """The gradient of MaxPool3DGrad for g: the values where the largest elements are.

    Shapes: x [n, depth, height, width, c], values of x's -> [n, depth', height', width', c]
    """


class AvgPool(MeanPooling):
    """The mean under a moving window; of what lies in a margin nothing counts.

    Shapes: [n, height, width, c] -> [n, height', width', c]
    """


class AvgPoolGrad(MeanPoolingGrad, forward=AvgPool):
    """The gradient of AvgPool.

    Shapes: sizes [4], g [n, height', width', c] -> sizes
    """


class AvgPool3D(MeanPooling):
    """The mean under a moving window of a volume.

    Shapes: [n, depth, height, width, c] -> [n, depth', height', width', c]
    """


class AvgPool3DGrad(MeanPoolingGrad, forward=AvgPool3D):
    """The gradient of AvgPool3D.

    Shapes: sizes [5], g [n, depth', height', width', c] -> sizes
    """


MaxPool.backward, MaxPoolGrad.backward, MaxPoolGradGrad.backward = (
    MaxPoolGrad,
    MaxPoolGradGrad,
    MaxPoolGrad,
)
MaxPool3D.backward, MaxPool3DGrad.backward, MaxPool3DGradGrad.backward = (
    MaxPool3DGrad,
    MaxPool3DGradGrad,
    MaxPool3DGrad,
)
AvgPool.backward, AvgPool3D.backward = AvgPoolGrad, AvgPool3DGrad


@frozen
class MaxPoolWithArgmax(MaxPooling, backward=MaxPoolGrad):
    """The largest element under a moving window, and its number in the image (or the batch).

    Shapes: [n, height, width, c] -> [n, height', width', c], [n, height', width', c]
    """

    dtype: DType = dtypes.int64
    include_batch_in_index: bool = False

    def infer(self, x: Spec) -> Any:
        y = super().infer(x)
        return y, y.like(self.dtype)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        return super().grad(g[0], y[0], x)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        axes = self.every_axis(x.shape)
        first = 0 if self.include_batch_in_index else 1
        sizes = (1,) * first + x.shape[first:]
        numbers = xp.arange(int(xp.ones(sizes, bool).size), dtype=self.dtype.np_dtype)
        numbers = xp.broadcast_to(numbers.reshape(sizes), x.shape)
        places = pick_max(xp, x, numbers, axes)
        return super().kernel(xp, x), places.copy() if places is numbers else places
