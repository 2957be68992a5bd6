"""Larger tensors: repeated, or with a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import compatible, text
from flowscope.ops.axes import positive_axis
from flowscope.ops.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.build import apply
from flowscope.ops.joining import concat, stack
from flowscope.ops.shaping import expand_axes, reshape, shape_of, transpose

__all__ = [
    "pad",
    "repeat",
    "tile",
]


@dataclass(frozen=True)
class Tile(Op):
    """The input repeated along each axis.

    Shapes: [d0, ..., dn], multiples [n + 1] -> [d0 * multiples[0], ...]
    """

    grad_reads: ClassVar[Any] = ("multiples",)

    def infer(self, x: Spec, multiples: Spec) -> Spec:
        check_shape_vector(multiples)
        times = multiples.shape_value()
        if times is None or x.shape is None:
            return Spec(
                x.dtype,
                x.shape and (None,) * len(x.shape) if times is None else (None,) * len(times),
            )
        self._check(len(x.shape), len(times))
        dims = [None if d is None or m is None else d * m for d, m in zip(x.shape, times)]
        return Spec(x.dtype, tuple(dims))

    def _check(self, rank: int, n: int) -> None:
        if rank != n:
            raise InvalidArgumentError(f"expected {rank} multiples, one per axis, got {n}")

    def grad(self, g: Tensor, y: Tensor, x: Tensor, multiples: Tensor) -> Any:
        from flowscope.ops.reductions import reduce_sum

        rank = x.spec.rank
        if rank is None:
            raise InvalidArgumentError("expected a known rank for the gradient of a tile")
        pairs = transpose(stack([multiples, shape_of(x)]))
        split_up = reshape(g, reshape(pairs, [2 * rank]))
        return reduce_sum(split_up, list(range(0, 2 * rank, 2))), None

    def kernel(self, xp: ArrayModule, x: Array, multiples: Array) -> Array:
        times = as_sizes(multiples)
        self._check(x.ndim, len(times))
        return xp.tile(x, times)[()] if times else x


@dataclass(frozen=True)
class Pad(Op):
    """The input with a margin: a constant, or its own elements mirrored.

    Attributes: `mode` is "CONSTANT" (with `value`), "REFLECT" (the edge is not repeated) or
        "SYMMETRIC" (it is).
    Shapes: [d0, ...], paddings [n, 2] -> [d0 + paddings[0, 0] + paddings[0, 1], ...]
    """

    mode: str = "CONSTANT"
    value: float = 0
    grad_reads: ClassVar[Any] = ("paddings",)

    def infer(self, x: Spec, paddings: Spec) -> Spec:
        if paddings.dtype.kind != "i":
            raise DTypeError(f"expected integer paddings, got {paddings.dtype}")
        if not compatible(paddings.shape, (x.rank, 2)):
            raise InvalidArgumentError(
                f"expected paddings of shape {text((x.rank, 2))}, got {text(paddings.shape)}"
            )
        if x.shape is None:
            rank = paddings.shape[0] if paddings.shape else None
            return Spec(x.dtype, None if rank is None else (None,) * rank)
        if paddings.constant is None:
            return Spec(x.dtype, (None,) * len(x.shape))
        margins = np.asarray(paddings.constant).sum(axis=1).tolist()
        return Spec(
            x.dtype, tuple([None if d is None else d + m for d, m in zip(x.shape, margins)])
        )

    def grad(self, g: Tensor, y: Tensor, x: Tensor, paddings: Tensor) -> Any:
        from flowscope.ops.slicing import slice as slice_

        if self.mode != "CONSTANT":
            return apply(MirrorPadGrad(self.mode), g, paddings), None
        begin = reshape(slice_(paddings, [0, 0], [-1, 1]), [-1])
        return slice_(g, begin, shape_of(x)), None

    def kernel(self, xp: ArrayModule, x: Array, paddings: Array) -> Array:
        widths = _widths(x, paddings)
        if self.mode == "CONSTANT":
            return xp.pad(x, widths, constant_values=self.value) if widths else x
        most = [d - (self.mode == "REFLECT") for d in x.shape]
        if any(max(w) > m for w, m in zip(widths, most)):
            raise InvalidArgumentError(f"expected paddings of at most {most}, got {widths}")
        return xp.pad(x, widths, mode=self.mode.lower()) if widths else x


def _widths(x: Array, paddings: Array) -> list[list[int]]:
    widths: list[list[int]] = paddings.tolist()
    if paddings.shape != (x.ndim, 2) or any(w < 0 for pair in widths for w in pair):
        raise InvalidArgumentError(f"expected {x.ndim} pairs of paddings from 0 on, got {widths}")
    return widths


@dataclass(frozen=True)
class MirrorPadGrad(Op):
    """The cotangent of what was padded by mirroring: each margin is added to its origin.

    Shapes: [d0 + paddings[0, 0] + paddings[0, 1], ...], paddings [n, 2] -> [d0, ...]
    """

    mode: str
    grad_reads: ClassVar[Any] = ("paddings",)

    def infer(self, g: Spec, paddings: Spec) -> Spec:
        if g.shape is None or paddings.constant is None:
            return Spec(g.dtype, None if g.shape is None else (None,) * len(g.shape))
        margins = np.asarray(paddings.constant).sum(axis=1).tolist()
        return Spec(
            g.dtype, tuple([None if d is None else d - m for d, m in zip(g.shape, margins)])
        )

    def grad(self, g: Tensor, y: Tensor, x: Tensor, paddings: Tensor) -> Any:
        return apply(Pad(self.mode), g, paddings), None

    def kernel(self, xp: ArrayModule, g: Array, paddings: Array) -> Array:
        skip = self.mode == "REFLECT"
        for axis, (a, b) in enumerate(_widths(g, paddings)):
            head, n = (slice(None),) * axis, g.shape[axis] - a - b
            inner = g[(*head, slice(a, a + n))].copy()
            if a:
                inner[(*head, slice(skip, skip + a))] += xp.flip(g[(*head, slice(0, a))], axis)
            if b:
                inner[(*head, slice(n - skip - b, n - skip))] += xp.flip(
                    g[(*head, slice(a + n, None))], axis
                )
            g = inner
        return g


_TILE = Tile()


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Returns `input` repeated `multiples[i]` times along axis i."""
    return apply(
        _TILE, convert_to_tensor(input), as_shape(multiples, name or "Tile", "multiples"), name=name
    )


def repeat(input: Any, repeats: int, axis: int | None = None, name: str | None = None) -> Tensor:
    """Returns each element `repeats` times along an axis (flattened if None)."""
    x = convert_to_tensor(input)
    x = reshape(x, [-1]) if axis is None else x
    axis, rank = axis or 0, x.spec.rank
    if rank is None:
        raise InvalidArgumentError("expected a known rank, got an unknown one")
    axis = positive_axis(axis, rank)
    wide = tile(expand_axes(x, (axis + 1,)), [1] * (axis + 1) + [repeats] + [1] * (rank - axis - 1))
    sizes = shape_of(x)
    return reshape(
        wide, concat([sizes[:axis], sizes[axis : axis + 1] * repeats, sizes[axis + 1 :]], 0), name
    )


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Returns a tensor with a margin around it.

    Args:
        tensor: A tensor.
        paddings: Integers of shape [rank, 2]: how much before and behind on each axis.
        mode: "CONSTANT", "REFLECT" (mirrored, the edge not repeated) or "SYMMETRIC" (repeated).
        name: Name of the operation.
        constant_values: The margin's value in the first mode.
    """
    mode = mode.upper()
    if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise InvalidArgumentError(f"expected mode CONSTANT, REFLECT or SYMMETRIC, got {mode!r}")
    margins = convert_to_tensor(paddings, None, "Pad/paddings", dtypes.int32)
    return apply(Pad(mode, constant_values), convert_to_tensor(tensor), margins, name=name)
