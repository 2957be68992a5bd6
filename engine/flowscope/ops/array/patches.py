"""Windows of images laid out side by side."""

from __future__ import annotations

import itertools
import math
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import as_sizes
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind

__all__ = ["extract_image_patches", "extract_volume_patches"]


@frozen
class _Windows(Op, abstract=True):
    """Base: windows over the axes between the first and the last."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    rates: tuple[int, ...]
    padding: str

    def check_rank(self, dims: Any) -> None:
        """Raises InvalidArgumentError unless these are images with as many axes."""
        if len(dims) != len(self.sizes) + 2:
            raise expected(f"rank {len(self.sizes) + 2}", dims)

    def _counts(self, space: Any) -> list[int | None]:
        """Returns how many windows fit along each axis."""
        out: list[int | None] = []
        for d, k, s, r in zip(space, self.sizes, self.strides, self.rates):
            reach = (k - 1) * r + 1
            if d is None:
                out.append(None)
            else:
                out.append(-(-d // s) if self.padding == "SAME" else max(0, (d - reach) // s + 1))
        return out

    def _margins(self, space: Any, counts: Any) -> list[tuple[int, int]]:
        out = []
        for d, n, k, s, r in zip(space, counts, self.sizes, self.strides, self.rates):
            missing = (n - 1) * s + (k - 1) * r + 1 - d
            extra = max(0, missing) if self.padding == "SAME" else 0
            out.append((extra // 2, extra - extra // 2))
        return out

    def _places(self, xp: ArrayModule, counts: Any) -> Any:
        """Yields for each place in a window the slices that hold its pixels of all windows."""
        for place in itertools.product(*map(range, self.sizes)):
            yield tuple(
                [
                    slice(i * r, i * r + (n - 1) * s + 1, s) if n else slice(0, 0)
                    for i, r, s, n in zip(place, self.rates, self.strides, counts)
                ]
            )


@frozen
class ExtractPatches(_Windows):
    """The pixels of each window as channels: place by place, then channel by channel.

    Shapes: [batch, d0, ..., c] -> [batch, n0, ..., product of sizes * c]
    """

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiu")
        if x.shape is None:
            return Spec(x.dtype, (None,) * (len(self.sizes) + 2))
        self.check_rank(x.shape)
        c = x.shape[-1]
        depth = None if c is None else c * math.prod(self.sizes)
        return Spec(x.dtype, (x.shape[0], *self._counts(x.shape[1:-1]), depth))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        op = ExtractPatchesGrad(self.sizes, self.strides, self.rates, self.padding)
        return (apply(op, g, shape_of(x)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        self.check_rank(x.shape)
        space = x.shape[1:-1]
        counts = self._counts(space)
        margins = self._margins(space, counts)
        padded = xp.pad(x, [(0, 0), *margins, (0, 0)])
        n, c = x.shape[0], x.shape[-1]
        out = xp.empty((n, *counts, math.prod(self.sizes), c), x.dtype)
        for i, place in enumerate(self._places(xp, counts)):
            out[..., i, :] = padded[(slice(None), *place)]
        return out.reshape(n, *counts, -1 if out.size else math.prod(self.sizes) * c)


@frozen
class ExtractPatchesGrad(_Windows, grad_reads=(), host_inputs=(1,)):
    """The sum, pixel by pixel, of what windows say of it: the cotangent of `ExtractPatches`.

    Shapes: g, shape [n] -> shape
    """

    def infer(self, g: Spec, shape: Spec) -> Spec:
        return Spec(g.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor) -> Any:
        op = ExtractPatches(self.sizes, self.strides, self.rates, self.padding)
        return apply(op, g), None

    def kernel(self, xp: ArrayModule, g: Array, shape: Array) -> Array:
        n, *space, c = as_sizes(shape)
        counts = self._counts(space)
        margins = self._margins(space, counts)
        whole = xp.zeros((n, *[d + a + b for d, (a, b) in zip(space, margins)], c), g.dtype)
        parts = g.reshape(n, *counts, math.prod(self.sizes), c)
        for i, place in enumerate(self._places(xp, counts)):
            whole[(slice(None), *place)] += parts[..., i, :]
        inner = [slice(a, a + d) for d, (a, _) in zip(space, margins)]
        return whole[(slice(None), *inner)].copy()


def _inner(values: Any, what: str, rank: int) -> tuple[int, ...]:
    """Returns the entries between the first and the last, which must be 1."""
    numbers = tuple(int(v) for v in values)
    if len(numbers) != rank or numbers[0] != 1 or numbers[-1] != 1 or min(numbers) < 1:
        middle = ", ".join(["n"] * (rank - 2))
        raise expected(f"{what} [1, {middle}, 1], of numbers from 1 on", list(numbers))
    return numbers[1:-1]


def _padding(padding: Any) -> str:
    if padding not in ("SAME", "VALID"):
        raise expected('padding "SAME" or "VALID"', repr(padding))
    return str(padding)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Returns the pixels of each window of images as channels.

    Args:
        images: Images [batch, height, width, channels].
        ksizes: Size of a window, [1, height, width, 1].
        strides: Distance between windows, [1, down, across, 1].
        rates: Distance between the pixels of a window, [1, down, across, 1].
        padding: "VALID" for windows inside the image, "SAME" for one at each multiple of the
            strides, with zeros outside.
        name: Name of the operation.
        sizes: New name of `ksizes`.
    """
    op = ExtractPatches(
        _inner(sizes if ksizes is None else ksizes, "ksizes", 4),
        _inner(strides, "strides", 4),
        _inner(rates, "rates", 4),
        _padding(padding),
    )
    return apply(op, convert_to_tensor(images), name=name or "ExtractImagePatches")


def extract_volume_patches(
    input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None
) -> Tensor:
    """Returns the voxels of each window of volumes as channels; see `extract_image_patches`."""
    op = ExtractPatches(
        _inner(ksizes, "ksizes", 5), _inner(strides, "strides", 5), (1, 1, 1), _padding(padding)
    )
    return apply(op, convert_to_tensor(input), name=name or "ExtractVolumePatches")
