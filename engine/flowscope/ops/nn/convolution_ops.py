"""The ops of convolutions: forward, and the gradients for input and filter.

The three are linear in each of two inputs, and the gradient of each is made of the other two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, compatible, size_of, text
from flowscope.graph.values.work import PRODUCT
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.convolution import correlate, correlate_filter, correlate_input
from flowscope.ops.kernels.windows import Windowed


@frozen
class Convolving(Windowed, abstract=True, memory_order="C", accumulates=True, uses_blas=True):
    """Base of the ops of convolutions, with dilations, one per axis of the image."""

    dilations: tuple[int, ...] = ()

    def dilation(self) -> tuple[int, ...]:
        return self.spatial(self.dilations) if self.dilations else super().dilation()

    def turned(self, op: type[Convolving]) -> Op:
        """Returns another op of the same attributes."""
        return op(**self.attributes())

    def check_ranks(self, *dims: Dims) -> None:
        """Raises InvalidArgumentError unless all have the image's rank."""
        rank = len(self.strides)
        for d in dims:
            if d is not None and len(d) != rank:
                raise expected(f"tensors of rank {rank}", d)

    def y_dims(self, x: Dims, k: Dims) -> tuple[int | None, ...]:
        """Returns the output's shape as far as it is known, and checks that the two fit."""
        rank = len(self.strides)
        self.check_ranks(x, k)
        x, k = x or (None,) * rank, k or (None,) * rank
        self.check_channels(x[self.channel_axis], k)
        outs = self.outs(self.spatial(x), k[:-2])
        return self.joined(x[0], outs, self.outputs(k))

    def check_channels(self, channels: int | None, k: tuple[int | None, ...]) -> None:
        """Raises InvalidArgumentError unless filters of shape k fit images with such channels."""
        own, made = k[-2:]
        if channels is None or own is None or channels == own:
            return
        groups = channels // own if own and channels % own == 0 else 0
        if groups == 0 or (made or 0) % groups:
            raise expected(f"filters for {channels} channels, or for equal groups of them", k)

    def outputs(self, k: tuple[int | None, ...]) -> int | None:
        """Returns how many channels filters of shape k make."""
        return k[-1]

    def check_gradient(self, x: Dims, k: Dims, g: Dims) -> None:
        """Raises InvalidArgumentError unless g has the shape of the output for x and k."""
        wanted = self.y_dims(x, k)
        if not compatible(wanted, g):
            raise expected(f"the gradient of an output of shape {text(wanted)}", g)

    def last(self, xp: ArrayModule, x: Array) -> Array:
        """Returns an array of the data format with its channels last."""
        return xp.moveaxis(x, 1, -1) if self.channels_first else x

    def first(self, xp: ArrayModule, y: Array) -> Array:
        """Returns an array with its channels last in the data format, in C order."""
        return xp.ascontiguousarray(xp.moveaxis(y, -1, 1)) if self.channels_first else y

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        """Two flops per element of the output (or its gradient) and of the filter behind it."""
        k, y = self.filter_and_output((*inputs, *outputs))
        nbytes = super().cost(inputs, outputs).nbytes
        weights, positions = size_of(k.shape), size_of(y.shape)
        if weights is None or positions is None or k.shape is None:
            return Cost(None, nbytes)
        return Cost(2.0 * positions * weights / max(k.shape[-1] or 1, 1), nbytes)

    @staticmethod
    def filter_and_output(specs: tuple[Spec, ...]) -> tuple[Spec, Spec]:
        """Returns which of inputs and output are the filter and the convolution's output."""
        return specs[1], specs[2]


def _in_groups(
    xp: ArrayModule, groups: int, function: Callable[..., Array], *parts: tuple[Array, int]
) -> Array:
    """Returns the results for equal parts of arrays along their axes, joined along the last."""
    if groups == 1:
        return function(*[a for a, _ in parts])
    split = [xp.split(a, groups, axis) for a, axis in parts]
    return xp.concatenate([function(*some) for some in zip(*split, strict=True)], -1)


class Convolution(Convolving, abstract=True, grad_reads=("x", "k")):
    """Base of the forward ops."""

    #: The ops of the gradients for the input and for the filter.
    backwards: ClassVar[tuple[type[Convolving], type[Convolving]]]

    def infer(self, x: Spec, k: Spec) -> Spec:
        check_same(x, k)
        check_kind(x.dtype, "f")
        return Spec(x.dtype, self.y_dims(x.shape, k.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, k: Tensor) -> Any:
        to_input, to_filter = [self.turned(op) for op in self.backwards]
        return apply(to_input, shape_of(x), k, g), apply(to_filter, x, shape_of(k), g)

    def kernel(self, xp: ArrayModule, x: Array, k: Array) -> Array:
        self.y_dims(x.shape, k.shape)
        x = self.last(xp, x)
        axes = self.axes(x.shape[1:-1], k.shape[:-2])
        y = _in_groups(
            xp,
            x.shape[-1] // k.shape[-2] if k.shape[-2] else 1,
            lambda some, filters: correlate(xp, some, filters, axes),
            (x, -1),
            (k, -1),
        )
        return self.first(xp, y)


class ConvolutionInput(Convolving, abstract=True, grad_reads=("k", "dy"), host_inputs=(0,)):
    """Base of the gradients for the input."""

    forward: ClassVar[type[Convolution]]

    def infer(self, sizes: Spec, k: Spec, g: Spec) -> Spec:
        check_same(k, g)
        check_kind(g.dtype, "f")
        check_shape_vector(sizes)
        dims = sizes.shape_value() or (None,) * len(self.strides)
        self.check_gradient(dims, k.shape, g.shape)
        batch = None if g.shape is None else g.shape[0]
        if dims[0] is None:
            dims = (batch, *dims[1:])
        return Spec(g.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, sizes: Tensor, k: Tensor, dy: Tensor) -> Any:
        to_filter = self.turned(self.forward.backwards[1])
        return None, apply(to_filter, g, shape_of(k), dy), apply(self.turned(self.forward), g, k)

    def kernel(self, xp: ArrayModule, sizes: Array, k: Array, g: Array) -> Array:
        dims = as_sizes(sizes)
        self.check_gradient(dims, k.shape, g.shape)
        axes = self.axes(self.spatial(dims), k.shape[:-2])
        x = _in_groups(
            xp,
            dims[self.channel_axis] // k.shape[-2] if k.shape[-2] else 1,
            lambda some, filters: correlate_input(xp, some, filters, k.shape[-2], axes),
            (self.last(xp, g), -1),
            (k, -1),
        )
        return self.first(xp, x)


class ConvolutionFilter(Convolving, abstract=True, grad_reads=("x", "dy"), host_inputs=(1,)):
    """Base of the gradients for the filter."""

    forward: ClassVar[type[Convolution]]

    def infer(self, x: Spec, sizes: Spec, g: Spec) -> Spec:
        check_same(x, g)
        check_kind(g.dtype, "f")
        check_shape_vector(sizes)
        dims = sizes.shape_value() or (None,) * len(self.strides)
        self.check_gradient(x.shape, dims, g.shape)
        return Spec(g.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, sizes: Tensor, dy: Tensor) -> Any:
        to_input = self.turned(self.forward.backwards[0])
        return apply(to_input, shape_of(x), g, dy), None, apply(self.turned(self.forward), x, g)

    @staticmethod
    def filter_and_output(specs: tuple[Spec, ...]) -> tuple[Spec, Spec]:
        return specs[3], specs[2]

    def kernel(self, xp: ArrayModule, x: Array, sizes: Array, g: Array) -> Array:
        dims = as_sizes(sizes)
        self.check_gradient(x.shape, dims, g.shape)
        x, g = self.last(xp, x), self.last(xp, g)
        axes = self.axes(x.shape[1:-1], dims[:-2])
        return _in_groups(
            xp,
            x.shape[-1] // dims[-2] if dims[-2] else 1,
            lambda some, back: correlate_filter(xp, some, back, axes),
            (x, -1),
            (g, -1),
        )


class Conv2D(Convolution, work=PRODUCT):
    """The convolution of images with filters: each output is a sum of products under a window.

    Channels may come in equal groups, each with filters of its own.

    Shapes: x [n, height, width, c], k [rows, columns, c / groups, o] -> [n, height', width', o]
    """


class Conv2DBackpropInput(ConvolutionInput, forward=Conv2D, work=PRODUCT):
    """The gradient of Conv2D for its input, which is also the transposed convolution.

    Shapes: sizes [4], k [rows, columns, c / groups, o], g [n, height', width', o] -> sizes
    """


class Conv2DBackpropFilter(ConvolutionFilter, forward=Conv2D, work=PRODUCT):
    """The gradient of Conv2D for its filter.

    Shapes: x [n, height, width, c], sizes [4], g [n, height', width', o] -> sizes
    """


class Conv3D(Convolution, work=PRODUCT):
    """The convolution of volumes with filters.

    Shapes: x [n, depth, height, width, c], k [planes, rows, columns, c / groups, o]
        -> [n, depth', height', width', o]
    """


class Conv3DBackpropInput(ConvolutionInput, forward=Conv3D, work=PRODUCT):
    """The gradient of Conv3D for its input, which is also the transposed convolution.

    Shapes: sizes [5], k [planes, rows, columns, c / groups, o], g [n, ..., o] -> sizes
    """


class Conv3DBackpropFilter(ConvolutionFilter, forward=Conv3D, work=PRODUCT):
    """The gradient of Conv3D for its filter.

    Shapes: x [n, ..., c], sizes [5], g [n, ..., o] -> sizes
    """


Conv2D.backwards = (Conv2DBackpropInput, Conv2DBackpropFilter)
Conv3D.backwards = (Conv3DBackpropInput, Conv3DBackpropFilter)
