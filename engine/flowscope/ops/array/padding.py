"""Larger tensors: repeated, or with a margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.graph.values.string_values import boxed
from flowscope.ops.array.joining import stack
from flowscope.ops.array.shaping import reshape, shape_of, transpose
from flowscope.ops.array.slicing import slice as slice_
from flowscope.ops.core import builder
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same
from flowscope.ops.kernels.scatter_rows import add_rows
from flowscope.ops.math.reductions import reduce_sum

__all__ = [
    "pad",
    "repeat",
    "tile",
]


class Tile(Op, grad_reads=("multiples",), memory_order="C", host_inputs=(1,), keeps_finite=True):
    """The input repeated along each axis.

    Shapes: [d0, ..., dn], multiples [n + 1] -> [d0 * multiples[0], ...]
    """

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
            raise expected(f"{rank} multiples, one per axis", n)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, multiples: Tensor) -> Any:
        rank = x.spec.rank
        pairs = transpose(stack([multiples, shape_of(x)]))
        split_up = reshape(g, reshape(pairs, [-1 if rank is None else 2 * rank]))
        if rank is None:
            return reduce_sum(split_up, builder.range(0, 2 * builder.size(multiples), 2)), None
        return reduce_sum(split_up, list(range(0, 2 * rank, 2))), None

    def kernel(self, xp: ArrayModule, x: Array, multiples: Array) -> Array:
        times = as_sizes(multiples)
        self._check(np.ndim(x), len(times))
        if not times:
            return x
        # Each axis beside the one that repeats it: one copy makes all repeats.
        pairs = [n for pair in zip(times, x.shape, strict=True) for n in pair]
        single = [n for d in x.shape for n in (1, d)]
        whole = xp.broadcast_to(x.reshape(single), pairs)
        return whole.copy().reshape([m * d for m, d in zip(times, x.shape)])


@frozen
class Pad(Op, grad_reads=("paddings",), memory_order="C", host_inputs=(1,), keeps_finite=True):
    """The input with a margin: a constant, or its own elements mirrored.

    Attributes: `mode` is "CONSTANT" (with `value`), "REFLECT" (the edge is not repeated) or
        "SYMMETRIC" (it is).
    Shapes: [d0, ...], paddings [n, 2] -> [d0 + paddings[0, 0] + paddings[0, 1], ...]
    """

    mode: str = "CONSTANT"
    value: float = 0

    def infer(self, x: Spec, paddings: Spec) -> Spec:
        check_kind(paddings.dtype, "i", "integer paddings")
        if not compatible(paddings.shape, (x.rank, 2)):
            raise expected(f"paddings of shape {text((x.rank, 2))}", paddings.shape)
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
        if self.mode != "CONSTANT":
            return apply(MirrorPadGrad(self.mode), g, paddings), None
        begin = reshape(slice_(paddings, [0, 0], [-1, 1]), [-1])
        return slice_(g, begin, shape_of(x)), None

    def kernel(self, xp: ArrayModule, x: Array, paddings: Array) -> Array:
        widths = _widths(x, paddings)
        if not widths:
            return x
        if self.mode == "CONSTANT":
            filler = b"" if x.dtype.kind == "O" else self.value
            return xp.pad(x, widths, constant_values=boxed(filler))
        most = [d - (self.mode == "REFLECT") for d in x.shape]
        if any(max(w) > m for w, m in zip(widths, most)):
            raise expected(f"paddings of at most {most}", widths)
        return xp.pad(x, widths, mode=self.mode.lower())


class PadWith(Op, grad_reads=("paddings",), host_inputs=(1,)):
    """The input with a margin of a value that is an input, too.

    Shapes: [d0, ...], paddings [n, 2], value [] -> [d0 + paddings[0, 0] + paddings[0, 1], ...]
    """

    def infer(self, x: Spec, paddings: Spec, value: Spec) -> Spec:
        check_same(x, value)
        check_rank(value, 0, "a scalar to pad with")
        return Pad().infer(x, paddings)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, paddings: Tensor, value: Tensor) -> Any:
        inner, _ = Pad().grad(g, y, x, paddings)
        return inner, None, reduce_sum(g) - reduce_sum(inner)

    def kernel(self, xp: ArrayModule, x: Array, paddings: Array, value: Array) -> Array:
        widths = _widths(x, paddings)
        if not widths:
            return x
        out = xp.full([d + a + b for d, (a, b) in zip(x.shape, widths)], boxed(value), x.dtype)
        out[tuple([slice(a, a + d) for d, (a, _) in zip(x.shape, widths)])] = x
        return out


@frozen
class Repeat(Op, grad_reads=("repeats",), host_inputs=(1,)):
    """The slices along an axis, each as often as is said.

    Shapes: x [..., n, ...], repeats [n], [1] or [] -> [..., sum of repeats, ...]
    Raises: InvalidArgumentError if a number is negative.
    """

    axis: int

    def infer(self, x: Spec, repeats: Spec) -> Spec:
        if repeats.dtype.name not in ("int32", "int64") or repeats.rank not in (None, 0, 1):
            raise expected_dtype("repeats as a vector of int32 or int64", repeats)
        if x.shape is None:
            return Spec(x.dtype, None)
        axis = positive_axis(self.axis, len(x.shape))
        n = x.shape[axis]
        if repeats.shape not in (None, (), (1,)) and not compatible(repeats.shape, (n,)):
            raise expected(f"{n} repeats for axis {axis} of {text(x.shape)}", repeats.shape)
        total = None
        if repeats.constant is not None and n is not None:
            times = np.asarray(repeats.constant)
            total = int(times.sum()) if times.size == n else n * int(times.sum())
        return Spec(x.dtype, (*x.shape[:axis], total, *x.shape[axis + 1 :]))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, repeats: Tensor) -> Any:
        return apply(RepeatGrad(self.axis), g, shape_of(x), repeats), None

    def kernel(self, xp: ArrayModule, x: Array, repeats: Array) -> Array:
        return xp.repeat(x, _times(repeats, x.shape[self.axis]), axis=self.axis)


@frozen
class RepeatGrad(Op, grad_reads=("repeats",), host_inputs=(1, 2)):
    """The sums of the slices that a `Repeat` makes of one: its cotangent.

    Shapes: g, shape [n], repeats -> shape
    """

    axis: int

    def infer(self, g: Spec, shape: Spec, repeats: Spec) -> Spec:
        return Spec(g.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor, repeats: Tensor) -> Any:
        return apply(Repeat(self.axis), g, repeats), None, None

    def kernel(self, xp: ArrayModule, g: Array, shape: Array, repeats: Array) -> Array:
        n = as_sizes(shape)[self.axis]
        places = xp.asarray(np.repeat(np.arange(n), _times(repeats, n)))
        sums = add_rows(xp, n, places, xp.moveaxis(g, self.axis, 0))
        return xp.ascontiguousarray(xp.moveaxis(sums, 0, self.axis))


def _times(repeats: Array, n: int) -> list[int]:
    times: list[int] = repeats.reshape(-1).tolist()
    times = times * n if len(times) == 1 else times
    if len(times) != n or min(times, default=0) < 0:
        raise expected(f"{n} repeats from 0 on", times)
    return times


def _widths(x: Array, paddings: Array) -> list[list[int]]:
    widths: list[list[int]] = paddings.tolist()
    if paddings.shape != (np.ndim(x), 2) or any(w < 0 for pair in widths for w in pair):
        raise expected(f"{np.ndim(x)} pairs of paddings from 0 on", widths)
    return widths


@frozen
class MirrorPadGrad(Op, grad_reads=("paddings",), host_inputs=(1,)):
    """The cotangent of what was padded by mirroring: each margin is added to its origin.

    Shapes: [d0 + paddings[0, 0] + paddings[0, 1], ...], paddings [n, 2] -> [d0, ...]
    """

    mode: str

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
    """Returns `input` repeated `multiples[i]` times along axis i.

    Example:
        >>> fs.Session().run(fs.tile([1, 2], [2]))
        array([1, 2, 1, 2], dtype=int32)
    """
    return apply(
        _TILE, convert_to_tensor(input), as_shape(multiples, name or "Tile", "multiples"), name=name
    )


@op_function("input repeats:int32")
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Returns each slice along an axis repeated, its copies one behind the other.

    Args:
        input: A tensor.
        repeats: How often: an integer, or a vector with one for each slice.
        axis: The axis; the tensor is flattened if None.
    """
    flat = reshape(input, [-1]) if axis is None else input
    return apply(Repeat(axis or 0), flat, repeats, name=name)


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
        constant_values: The margin's value in the first mode, a number or a scalar tensor.

    Example:
        >>> fs.Session().run(fs.pad([1, 2], [[1, 2]]))
        array([0, 1, 2, 0, 0], dtype=int32)
    """
    mode = mode.upper()
    if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise expected("mode CONSTANT, REFLECT or SYMMETRIC", repr(mode))
    margins = convert_to_tensor(paddings, None, "Pad/paddings", dtypes.int32)
    if isinstance(constant_values, Tensor | Convertible) and mode == "CONSTANT":
        x = convert_to_tensor(tensor)
        return apply(PadWith(), x, margins, convert_to_tensor(constant_values), name=name or "Pad")
    return apply(Pad(mode, constant_values), convert_to_tensor(tensor), margins, name=name)
