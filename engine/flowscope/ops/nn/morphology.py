"""Dilation and erosion of images: sums and maxima where a convolution has products and sums.

Where the maximum lies decides everything: the gradients move numbers to the first place that has
it, and theirs pick numbers from there. `Dilation2DPick` and the two gradients are each other's
transposes, so there are gradients of any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import as_dtype
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.moving import reverse
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.windows import Axis, Windowed, as_padding, as_steps, check_untouched
from flowscope.ops.math.elementwise import negative

__all__ = ["dilation2d", "erosion2d"]


@frozen
class _Dilating(Windowed, abstract=True, grad_reads=("x", "window")):
    """Base of dilation and what belongs to it.

    Attributes:
        rates: The distance of the elements under the window, one per axis of the image.
    """

    rates: tuple[int, ...] = (1, 1, 1, 1)

    def dilation(self) -> tuple[int, ...]:
        return self.rates[1:-1]

    def dims(self, x: Spec, window: Spec) -> tuple[Dims, Dims, Dims]:
        """Returns the shapes of image, window and output, as far as they are known."""
        check_kind(x.dtype, "fiu")
        check_same(x, window)
        for s, rank, what in ((x, 4, "images"), (window, 3, "a window")):
            if s.rank not in (None, rank):
                raise expected(f"{what} of rank {rank}", s.shape)
        image, size = x.shape or (None,) * 4, window.shape or (None,) * 3
        if None not in (image[-1], size[-1]) and image[-1] != size[-1]:
            raise expected(f"a window for {image[-1]} channels", size[-1])
        channels = size[-1] if image[-1] is None else image[-1]
        outs = self.outs(image[1:-1], size[:-1])
        return image, size, (image[0], *outs, channels)

    def spans(self, x: Array, window: Array) -> tuple[Axis, ...]:
        """Returns the two axes of an image; raises unless the window fits the image."""
        self.dims(*(Spec(as_dtype(a.dtype), a.shape) for a in (x, window)))
        return self.axes(x.shape[1:-1], window.shape[:-1])

    def inside(self, xp: ArrayModule, x: Array, axes: Sequence[Axis], fill: Any) -> Array:
        """Returns the images with their margins, and without what no window meets."""
        wide = xp.full((len(x), *(max(a.span, 1) for a in axes), x.shape[-1]), fill, x.dtype)
        (there, here), (there2, here2) = (a.inside() for a in axes)
        wide[:, there, there2] = x[:, here, here2]
        return wide

    def first(self, xp: ArrayModule, x: Array, window: Array) -> tuple[Array, Array]:
        """Returns the largest sums, and for each the number of the place in the window."""
        axes = self.spans(x, window)
        outs = tuple(a.out for a in axes)
        lowest = xp.iinfo(x.dtype).min if x.dtype.kind in "iu" else -xp.inf
        wide = self.inside(xp, x, axes, lowest)
        # What an integer margin has as lowest number can wrap around in a sum.
        mask = (
            self.inside(xp, xp.ones(x.shape, bool), axes, False) if x.dtype.kind in "iu" else None
        )
        best = xp.full((len(x), *outs, x.shape[-1]), lowest, x.dtype)
        places = xp.zeros(best.shape, xp.int32)
        if best.size:
            for n, (part, i, j) in enumerate(_taps(axes)):
                sums = wide[part] + window[i, j]
                is_more = sums > best
                if mask is not None:
                    is_more &= mask[part]
                xp.copyto(best, sums, where=is_more)
                places[is_more] = n
        return best, places

    def turned(self, op: type[Op]) -> Op:
        """Returns another op of the same attributes."""
        return op(**self.attributes())


def _taps(axes: Sequence[Axis]) -> Iterator[tuple[tuple[slice, ...], int, int]]:
    """Yields for each place in the window which part of the span it meets."""
    rows, columns = axes
    for i in range(rows.window):
        for j in range(columns.window):
            yield (slice(None), rows.tap(i), columns.tap(j)), i, j


class Dilation2D(_Dilating):
    """The largest sum of image and window, as the window moves over the image.

    Shapes: x [n, height, width, c], window [h, w, c] -> [n, height', width', c]
    Source: Soille 2003, "Morphological image analysis", greyscale dilation.
    """

    def infer(self, x: Spec, window: Spec) -> Spec:
        return Spec(x.dtype, self.dims(x, window)[2])

    def grad(self, g: Tensor, y: Tensor, x: Tensor, window: Tensor) -> Any:
        back = (Dilation2DBackpropInput, Dilation2DBackpropFilter)
        return tuple(apply(self.turned(op), x, window, g) for op in back)

    def kernel(self, xp: ArrayModule, x: Array, window: Array) -> Array:
        return self.first(xp, x, window)[0]


class _DilationGrad(_Dilating, abstract=True, accumulates=True):
    """Base of dilation's gradients: linear in g."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor, window: Tensor, dy: Tensor) -> Any:
        """Back goes what is picked from g; nothing on the other side, image's or window's."""
        is_image = isinstance(self, Dilation2DBackpropInput)
        sides = (g, zeros_like(window)) if is_image else (zeros_like(x), g)
        return None, None, apply(self.turned(Dilation2DPick), x, window, *sides)

    def check_cotangent(self, x: Spec, window: Spec, g: Spec) -> tuple[Dims, Dims]:
        """Returns the shapes of image and window; raises unless g fits the output."""
        check_same(x, g)
        image, size, outs = self.dims(x, window)
        if not compatible(outs, g.shape):
            raise expected(f"a gradient of shape {text(outs)}", g.shape)
        return image, size


class Dilation2DBackpropInput(_DilationGrad):
    """The gradient of Dilation2D for the image: it goes where the largest sums are.

    Shapes: x [n, height, width, c], window [h, w, c], g [n, height', width', c] -> x's
    """

    def infer(self, x: Spec, window: Spec, g: Spec) -> Spec:
        return Spec(x.dtype, self.check_cotangent(x, window, g)[0])

    def kernel(self, xp: ArrayModule, x: Array, window: Array, g: Array) -> Array:
        axes = self.spans(x, window)
        _, places = self.first(xp, x, window)
        wide = xp.zeros((len(x), *(max(a.span, 1) for a in axes), x.shape[-1]), x.dtype)
        if g.size:
            for n, (part, _, _) in enumerate(_taps(axes)):
                wide[part] += xp.where(places == n, g, g.dtype.type(0))
        out = xp.zeros(x.shape, x.dtype)
        (there, here), (there2, here2) = (a.inside() for a in axes)
        out[:, here, here2] = wide[:, there, there2]
        return out


class Dilation2DBackpropFilter(_DilationGrad):
    """The gradient of Dilation2D for the window.

    Shapes: x [n, height, width, c], window [h, w, c], g [n, height', width', c] -> window's
    """

    def infer(self, x: Spec, window: Spec, g: Spec) -> Spec:
        return Spec(x.dtype, self.check_cotangent(x, window, g)[1])

    def kernel(self, xp: ArrayModule, x: Array, window: Array, g: Array) -> Array:
        _, places = self.first(xp, x, window)
        out = xp.zeros(window.shape, window.dtype)
        for n, (_, i, j) in enumerate(_taps(self.spans(x, window))):
            out[i, j] = xp.where(places == n, g, g.dtype.type(0)).sum((0, 1, 2))
        return out


class Dilation2DPick(_Dilating):
    """The sums of two other arrays' elements, from where the largest sums are.

    Shapes: x [n, height, width, c], window [h, w, c], image, other -> [n, height', width', c]
    """

    def infer(self, x: Spec, window: Spec, image: Spec, other: Spec) -> Spec:
        check_same(x, image)
        check_same(x, other)
        for given, wanted, what in ((image, x, "an image"), (other, window, "a window")):
            if not compatible(given.shape, wanted.shape):
                raise expected(f"{what} of shape {text(wanted.shape)}", given.shape)
        return Spec(x.dtype, self.dims(x, window)[2])

    def grad(
        self, g: Tensor, y: Tensor, x: Tensor, window: Tensor, image: Tensor, other: Tensor
    ) -> Any:
        back = (Dilation2DBackpropInput, Dilation2DBackpropFilter)
        return None, None, *(apply(self.turned(op), x, window, g) for op in back)

    def kernel(self, xp: ArrayModule, x: Array, window: Array, image: Array, other: Array) -> Array:
        axes = self.spans(x, window)
        _, places = self.first(xp, x, window)
        wide = self.inside(xp, image, axes, 0)
        out = xp.zeros(places.shape, x.dtype)
        if out.size:
            for n, (part, i, j) in enumerate(_taps(axes)):
                xp.copyto(out, wide[part] + other[i, j], where=places == n)
        return out


def _op(strides: Any, rates: Any, padding: Any) -> Dilation2D:
    steps = as_steps(strides, 2, "NHWC", "strides")
    spread = as_steps(rates, 2, "NHWC", "rates")
    check_untouched(steps, "NHWC", "strides")
    check_untouched(spread, "NHWC", "rates")
    if not isinstance(padding, str):
        raise expected('padding "SAME" or "VALID"', repr(padding))
    return Dilation2D(steps, as_padding(padding, 2, "NHWC")[0], rates=spread)


def _either(new: Any, old: Any, what: str) -> Any:
    if (new is None) == (old is None):
        raise expected(f"one of {what}", "both or none")
    return old if new is None else new


@op_function("input")
def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the largest sum of image and window, as the window moves over the image.

    NaN is passed over, as in TensorFlow.

    Args:
        input: Images, [n, height, width, channels].
        filter: The window, [h, w, channels].
        strides: Its steps: one number per axis, 1 for batch and channels.
        rates: The distance of the elements under it, in the same way.
        padding: "SAME" or "VALID"; what lies in a margin does not count.
        filters: New name of `filter`.
        dilations: New name of `rates`.

    Source: gradient: to the first of the largest sums, in the window's row-major order.
    """
    window = convert_to_tensor(_either(filters, filter, "filter and filters"), input.dtype)
    spread = _either(dilations, rates, "rates and dilations")
    return apply(_op(strides, spread, padding), input, window, name=name)


@op_function("value", scope="erosion2d")
def erosion2d(
    value: Any,
    kernel: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the smallest difference of image and window, as the window moves over the image.

    The arguments are those of `dilation2d`; the window is called `kernel` or `filters`.
    """
    window = convert_to_tensor(_either(filters, kernel, "kernel and filters"), value.dtype)
    turned = reverse(window, [0, 1])
    spread = _either(dilations, rates, "rates and dilations")
    return negative(apply(_op(strides, spread, padding), negative(value), turned))
