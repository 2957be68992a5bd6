"""Ops that rearrange elements: reshape, transpose, join, part, repeat, pad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph import constant as constants
from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.dtypes import DType
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import Dims, compatible, merge_dims, size_of, text
from flowscope.ops.axes import Axes, as_axes, positive_axis
from flowscope.ops.broadcasting import as_sizes, check_shape_vector
from flowscope.ops.build import apply, apply_many, unary
from flowscope.ops.table import folded

__all__ = [
    "concat",
    "expand_dims",
    "invert_permutation",
    "pad",
    "parallel_stack",
    "repeat",
    "reshape",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
]


def shape_of(x: Tensor) -> Tensor:
    """Returns the shape of x as a tensor."""
    from flowscope.ops.arrays import shape

    return shape(x)


def as_shape(shape: Any, name: str) -> Tensor:
    """Returns a shape argument as a tensor; what leaves the choice open becomes int32."""
    return convert_to_tensor(shape, None, name, dtypes.int32)


def known_values(op: Op, spec: Spec, *inputs: Spec) -> Spec:
    """Returns the Spec of an op that strings integers together, with what is known of their values."""
    if spec.dtype.kind != "i" or spec.dtype.size < 4:
        return spec
    spec = folded(op, spec, *inputs)
    if spec.constant is not None or spec.shape is None or len(spec.shape) > 1:
        return spec
    dims: list[int | None] = []
    for s in inputs:
        part = (None,) if s.shape == () and s.dims is None and s.constant is None else s.shape_value()
        if part is None:
            return spec
        dims += part
    return Spec(spec.dtype, spec.shape, None, tuple(dims))


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in another shape; one dimension may be -1, which is worked out.

    Shapes: x, shape [n] -> shape
    Raises: InvalidArgumentError if the numbers of elements differ.
    """

    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec, shape: Spec) -> Spec:
        check_shape_vector(shape)
        dims = shape.shape_value()
        if dims is None:
            return Spec(x.dtype, None)
        if shape.constant is not None and (np.asarray(shape.constant) < 0).sum() > 1:
            raise InvalidArgumentError(
                f"expected at most one -1 in a shape, got {np.asarray(shape.constant).tolist()}"
            )
        dims = _worked_out(dims, size_of(x.shape), text(x.shape))
        if x.constant is not None and None not in dims and x.dtype.kind == "i":
            return Spec(x.dtype, dims, np.asarray(x.constant).reshape(dims)[()])
        is_list = x.dims is not None and len(dims) == 1
        return Spec(x.dtype, dims, None, x.dims if is_list else None)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor) -> Any:
        return reshape(g, shape_of(x)), None

    def kernel(self, xp: ArrayModule, x: Array, shape: Array) -> Array:
        sizes = as_sizes(shape)
        try:
            return x.reshape(sizes)[()] if not sizes else _array(x).reshape(sizes)
        except ValueError:
            raise InvalidArgumentError(
                f"expected a shape of {np.size(x)} elements, got {text(sizes)} for {text(np.shape(x))}"
            ) from None


def _array(x: Array) -> Array:
    """Returns strings of rank 0, which are bytes objects, as arrays."""
    return np.array(x, object) if isinstance(x, bytes) else x


def _worked_out(dims: Any, size: int | None, given: str) -> Any:
    """Returns `dims` with its only unknown worked out from the number of elements, if both are known."""
    if size is None:
        return dims
    known = 1
    for d in dims:
        if d is not None:
            known *= d
    unknown = sum(d is None for d in dims)
    fits = size == known if not unknown else known == 0 or size % known == 0
    if not fits or (unknown and known == 0 and size):
        raise InvalidArgumentError(f"expected a shape of {size} elements, got {text(dims)} for {given}")
    if unknown != 1 or known == 0:
        return dims
    return tuple(size // known if d is None else d for d in dims)


@dataclass(frozen=True)
class Transpose(Op):
    """The axes in another order: output axis i is input axis perm[i]; reversed if None.

    Shapes: [d0, ..., dn] -> [d(perm[0]), ..., d(perm[n])]
    """

    perm: tuple[int, ...] | None = None
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec) -> Spec:
        if self.perm is None:
            return Spec(x.dtype, None if x.shape is None else x.shape[::-1])
        self._check(x.rank)
        if x.shape is None:
            return Spec(x.dtype, (None,) * len(self.perm))
        return Spec(x.dtype, tuple([x.shape[i] for i in self.perm]))

    def _check(self, rank: int | None) -> None:
        assert self.perm is not None
        if sorted(self.perm) != list(range(len(self.perm) if rank is None else rank)):
            raise InvalidArgumentError(
                f"expected a permutation of {'the' if rank is None else rank} axes, got {list(self.perm)}"
            )

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        perm = self.perm
        back = None if perm is None else tuple([perm.index(i) for i in range(len(perm))])
        return (apply(Transpose(back), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if self.perm is not None and len(self.perm) != np.ndim(x):
            self._check(np.ndim(x))
        return x.transpose(self.perm)[()] if np.ndim(x) else x


@dataclass(frozen=True)
class ExpandDims(Op):
    """New axes of length 1 at the given places of the result.

    Shapes: [...] of rank n -> rank n + len(axes)
    """

    axes: tuple[int, ...]
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec) -> Spec:
        if x.shape is None:
            return Spec(x.dtype, None)
        spec = Spec(x.dtype, self._shape(x.shape))
        return known_values(self, spec, x)

    def _shape(self, dims: Any) -> Any:
        rank = len(dims) + len(self.axes)
        places = {positive_axis(a, rank) for a in self.axes}
        if len(places) != len(self.axes):
            raise InvalidArgumentError(f"expected each new axis once, got {list(self.axes)}")
        rest = iter(dims)
        return tuple([1 if i in places else next(rest) for i in range(rank)])

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(Squeeze(self.axes), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return _array(x).reshape(self._shape(np.shape(x)))


@dataclass(frozen=True)
class Squeeze(Op):
    """The input without the given axes, or without all axes of length 1 if there are none given.

    Raises: InvalidArgumentError if one of the given axes has another length.
    """

    axes: tuple[int, ...] = ()
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec) -> Spec:
        if x.shape is None or (not self.axes and None in x.shape):
            return Spec(x.dtype, None)
        spec = Spec(x.dtype, self._shape(x.shape))
        return known_values(self, spec, x) if spec.shape == () else spec

    def _shape(self, dims: Any) -> Any:
        if not self.axes:
            return tuple([d for d in dims if d != 1])
        places = {positive_axis(a, len(dims)) for a in self.axes}
        for i in places:
            if dims[i] not in (1, None):
                raise InvalidArgumentError(f"expected length 1 at axis {i}, got {text(dims)}")
        return tuple([d for i, d in enumerate(dims) if i not in places])

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (reshape(g, shape_of(x)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x.reshape(self._shape(x.shape))[()]


@dataclass(frozen=True)
class Concat(Op):
    """Tensors one after the other along an axis.

    Shapes: n times [..., di, ...] -> [..., sum of di, ...]
    Raises: InvalidArgumentError if the other dimensions differ; DTypeError if the dtypes do.
    """

    axis: int = 0

    def infer(self, *xs: Spec) -> Spec:
        dims = xs[0].shape
        for x in xs:
            if x.dtype is not xs[0].dtype:
                raise DTypeError(f"expected all of one dtype, got {xs[0].dtype} and {x.dtype}")
            dims = self._joined(dims, x.shape)
        if dims is None:
            return Spec(xs[0].dtype, None)
        axis = positive_axis(self.axis, len(dims))
        lengths = [None if x.shape is None else x.shape[axis] for x in xs]
        total = None if None in lengths else sum(n for n in lengths if n is not None)
        spec = Spec(xs[0].dtype, (*dims[:axis], total, *dims[axis + 1 :]))
        return known_values(self, spec, *xs) if len(dims) == 1 else spec

    def _joined(self, a: Dims, b: Dims) -> Dims:
        """Returns what both shapes say of the dimensions that must agree; None at the axis."""
        for s in (a, b):
            if s == ():
                raise InvalidArgumentError("expected rank 1 at least to concatenate, got []: use fs.stack")
        if a is None or b is None:
            return b if a is None else a
        if len(a) != len(b):
            raise InvalidArgumentError(f"expected all of one rank, got {text(a)} and {text(b)}")
        axis = positive_axis(self.axis, len(a))
        x, y = (*a[:axis], None, *a[axis + 1 :]), (*b[:axis], None, *b[axis + 1 :])
        if not compatible(x, y):
            raise InvalidArgumentError(
                f"expected equal dimensions but at axis {axis}, got {text(a)} and {text(b)}"
            )
        return merge_dims(x, y)

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        if len(xs) == 1:
            return (g,)
        lengths = [None if x.spec.shape is None else x.spec.shape[self.axis] for x in xs]
        if None not in lengths:
            return apply_many(Split(tuple(n for n in lengths if n is not None), self.axis), g)
        return apply_many(ConcatGrad(self.axis), g, *[shape_of(x) for x in xs])

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        dims: Dims = None
        for x in xs:
            dims = self._joined(dims, x.shape)
        return xp.concatenate(xs, axis=self.axis)


@dataclass(frozen=True)
class ConcatGrad(Op):
    """The cotangents of concatenated tensors, from that of the whole and their shapes.

    Shapes: g, then n shapes -> n tensors of those shapes
    """

    axis: int
    views: ClassVar[Any] = (0,)

    def infer(self, g: Spec, *shapes: Spec) -> Any:
        return tuple([Spec(g.dtype, s.shape_value()) for s in shapes])

    def grad(self, g: Any, y: Any, x: Tensor, *shapes: Tensor) -> Any:
        parts = [zeros_of(t) if d is None else d for d, t in zip(g, y)]
        return (concat(parts, self.axis), *[None] * len(shapes))

    def kernel(self, xp: ArrayModule, g: Array, *shapes: Array) -> Any:
        ends = np.cumsum([as_sizes(s)[self.axis] for s in shapes])[:-1].tolist()
        return tuple(xp.split(g, ends, axis=self.axis))


def zeros_of(t: Tensor) -> Tensor:
    """Returns zeros like t."""
    from flowscope.ops.arrays import zeros_like

    return zeros_like(t)


@dataclass(frozen=True)
class Split(Op):
    """Parts of the given lengths along an axis; one length may be -1, which is worked out.

    Shapes: [..., n, ...] -> [..., sizes[i], ...] for each i
    """

    sizes: tuple[int, ...]
    axis: int = 0
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec) -> Any:
        if self.sizes.count(-1) > 1 or min(self.sizes, default=0) < -1:
            raise InvalidArgumentError(f"expected lengths with at most one -1, got {list(self.sizes)}")
        if x.shape is None:
            return tuple([Spec(x.dtype, None)] * len(self.sizes))
        axis = positive_axis(self.axis, len(x.shape))
        n = x.shape[axis]
        sizes: Any = self.sizes if n is None else self._lengths(n)
        head, tail = x.shape[:axis], x.shape[axis + 1 :]
        return tuple([Spec(x.dtype, (*head, None if d < 0 else d, *tail)) for d in sizes])

    def _lengths(self, n: int) -> list[int]:
        known = sum(d for d in self.sizes if d >= 0)
        if known > n or (known != n and -1 not in self.sizes):
            raise InvalidArgumentError(
                f"expected lengths that add up to {n} at axis {self.axis}, got {list(self.sizes)}"
            )
        return [n - known if d < 0 else d for d in self.sizes]

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        parts = [zeros_of(t) if d is None else d for d, t in zip(g, y)]
        return (concat(parts, self.axis),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        lengths = self._lengths(x.shape[positive_axis(self.axis, x.ndim)])
        return tuple(xp.split(x, np.cumsum(lengths)[:-1].tolist(), axis=self.axis))


@dataclass(frozen=True)
class SplitEven(Op):
    """`num` parts of equal length along an axis.

    Shapes: [..., n, ...] -> num times [..., n / num, ...]
    Raises: InvalidArgumentError if n is no multiple of num.
    """

    num: int
    axis: int = 0
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec) -> Any:
        if self.num < 1:
            raise InvalidArgumentError(f"expected one part at least, got {self.num}")
        if x.shape is None:
            return tuple([Spec(x.dtype, None)] * self.num)
        axis = positive_axis(self.axis, len(x.shape))
        n = x.shape[axis]
        part = None if n is None else self._length(n)
        return tuple([Spec(x.dtype, (*x.shape[:axis], part, *x.shape[axis + 1 :]))] * self.num)

    def _length(self, n: int) -> int:
        if n % self.num:
            raise InvalidArgumentError(f"expected a multiple of {self.num} at axis {self.axis}, got {n}")
        return n // self.num

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        parts = [zeros_of(t) if d is None else d for d, t in zip(g, y)]
        return (concat(parts, self.axis),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        self._length(x.shape[positive_axis(self.axis, x.ndim)])
        return tuple(xp.split(x, self.num, axis=self.axis))


@dataclass(frozen=True)
class Pack(Op):
    """Tensors of one shape, stacked along a new axis.

    Shapes: n times s -> s with n at the new axis
    """

    axis: int = 0

    def infer(self, *xs: Spec) -> Spec:
        first = xs[0]
        dims = first.shape
        for x in xs:
            if x.dtype is not first.dtype:
                raise DTypeError(f"expected all of one dtype, got {first.dtype} and {x.dtype}")
            if not compatible(dims, x.shape):
                raise InvalidArgumentError(f"expected all of one shape, got {text(dims)} and {text(x.shape)}")
            dims = merge_dims(dims, x.shape)
        if dims is None:
            return Spec(first.dtype, None)
        axis = positive_axis(self.axis, len(dims) + 1)
        return known_values(self, Spec(first.dtype, (*dims[:axis], len(xs), *dims[axis:])), *xs)

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        return apply_many(Unpack(len(xs), self.axis), g)

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        first = np.shape(xs[0])
        for x in xs:
            if np.shape(x) != first:
                raise InvalidArgumentError(f"expected all of one shape, got {text(first)} and {text(x.shape)}")
        if first == ():
            return xp.array(xs, getattr(xs[0], "dtype", object))
        return xp.stack(xs, axis=self.axis)


@dataclass(frozen=True)
class Unpack(Op):
    """The slices along an axis.

    Shapes: s with num at the axis -> num times s without it
    """

    num: int
    axis: int = 0
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec) -> Any:
        if x.shape is None:
            return tuple([Spec(x.dtype, None)] * self.num)
        axis = positive_axis(self.axis, len(x.shape))
        self._check(x.shape[axis])
        dims = (*x.shape[:axis], *x.shape[axis + 1 :])
        values = x.shape_value() if x.shape == (self.num,) and x.dtype.kind == "i" else None
        if values is None:
            return tuple([Spec(x.dtype, dims)] * self.num)
        fixed = [None] * self.num if x.constant is None else list(np.asarray(x.constant))
        return tuple([Spec(x.dtype, (), c, (d,)) for c, d in zip(fixed, values)])

    def _check(self, n: int | None) -> None:
        if n not in (None, self.num):
            raise InvalidArgumentError(f"expected {self.num} slices at axis {self.axis}, got {n}")

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        return (stack([zeros_of(t) if d is None else d for d, t in zip(g, y)], self.axis),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        axis = positive_axis(self.axis, x.ndim)
        self._check(x.shape[axis])
        head = (slice(None),) * axis
        return tuple([x[(*head, i)] for i in range(self.num)])


@dataclass(frozen=True)
class Tile(Op):
    """The input repeated along each axis.

    Shapes: [d0, ..., dn], multiples [n + 1] -> [d0 * multiples[0], ...]
    """

    def infer(self, x: Spec, multiples: Spec) -> Spec:
        check_shape_vector(multiples)
        times = multiples.shape_value()
        if times is None or x.shape is None:
            return Spec(x.dtype, x.shape and (None,) * len(x.shape) if times is None else (None,) * len(times))
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
        return Spec(x.dtype, tuple([None if d is None else d + m for d, m in zip(x.shape, margins)]))

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

    def infer(self, g: Spec, paddings: Spec) -> Spec:
        if g.shape is None or paddings.constant is None:
            return Spec(g.dtype, None if g.shape is None else (None,) * len(g.shape))
        margins = np.asarray(paddings.constant).sum(axis=1).tolist()
        return Spec(g.dtype, tuple([None if d is None else d - m for d, m in zip(g.shape, margins)]))

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
                inner[(*head, slice(n - skip - b, n - skip))] += xp.flip(g[(*head, slice(a + n, None))], axis)
            g = inner
        return g


_RESHAPE, _TILE = Reshape(), Tile()


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns the same elements in another shape.

    Args:
        tensor: A tensor.
        shape: The new shape; one dimension may be -1, which is worked out.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the numbers of elements differ.
    """
    x = convert_to_tensor(tensor)
    return apply(_RESHAPE, x, as_shape(shape, f"{name or 'Reshape'}/shape"), name=name)


def transpose(a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False) -> Tensor:
    """Returns the axes of `a` in another order.

    Args:
        a: A tensor.
        perm: Output axis i is input axis perm[i]; all reversed if None.
        name: Name of the operation.
        conjugate: Whether complex elements are conjugated.
    """
    from flowscope.ops.casting import conj

    axes = as_axes(perm)
    x = unary(Transpose(axes), a, name or "transpose")
    return conj(x) if conjugate else x


def expand_axes(x: Tensor, axes: Axes) -> Tensor:
    """Returns x with new axes of length 1 at these places of the result."""
    return apply(ExpandDims(axes or ()), x)


def squeeze_axes(x: Tensor, axes: Axes) -> Tensor:
    """Returns x without these axes, of length 1."""
    return apply(Squeeze(axes), x) if axes else x


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Returns `input` with a new axis of length 1 in front of `axis` (-1: behind the last).

    Args:
        input: A tensor.
        axis: Where.
        name: Name of the operation.
        dim: Old name of `axis`.
    """
    axes = as_axes(dim if axis is None else axis)
    if axes is None or len(axes) != 1:
        raise InvalidArgumentError(f"expected one axis, got {axis!r}")
    return unary(ExpandDims(axes), input, name)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Returns `input` without axes of length 1.

    Args:
        input: A tensor.
        axis: Which axes; all of length 1 if None.
        name: Name of the operation.
        squeeze_dims: Old name of `axis`.
    """
    return unary(Squeeze(as_axes(squeeze_dims if axis is None else axis) or ()), input, name)


def _same_dtype(values: Any, dtype: DType | None = None) -> list[Tensor]:
    """Returns values as tensors; Python values take the dtype of the first tensor among them."""
    values = list(values)
    if dtype is None:
        typed = next((v.dtype for v in values if hasattr(v, "_as_tensor") or isinstance(v, Tensor)), None)
        dtype = dtypes.as_dtype(typed) if typed is not None else None
    out: list[Tensor] = []
    for v in values:
        is_tensor = isinstance(v, Tensor) or hasattr(v, "_as_tensor")
        out.append(convert_to_tensor(v, None if is_tensor else dtype or (out[0].dtype if out else None)))
    return out


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Returns tensors one after the other along an axis.

    Args:
        values: A list of tensors of one dtype and rank.
        axis: The axis.
        name: Name of the operation.
    """
    if isinstance(values, Tensor) or hasattr(values, "_as_tensor"):
        values = [values]
    axes = as_axes(axis)
    if axes is None or len(axes) != 1:
        raise InvalidArgumentError(f"expected one axis, got {axis!r}")
    tensors = _same_dtype(values)
    if not tensors:
        raise InvalidArgumentError("expected one tensor at least, got none")
    return apply(Concat(axes[0]), *tensors, name=name or "concat")


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Returns tensors of one shape, stacked along a new axis.

    Args:
        values: A list of tensors, or what can be made tensors.
        axis: Where the new axis stands in the result.
        name: Name of the operation.
    """
    if isinstance(values, Tensor):
        return values if axis == 0 else stack(unstack(values), axis, name)
    tensors = _same_dtype(values)
    if not tensors:
        raise InvalidArgumentError("expected one tensor at least, got none")
    return apply(Pack(axis), *tensors, name=name or "stack")


parallel_stack = stack


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Returns the slices of a tensor along an axis.

    Args:
        value: A tensor.
        num: How many; worked out if the shape is known.
        axis: The axis.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the number is neither given nor known.
    """
    x = convert_to_tensor(value)
    if num is None:
        dims = x.spec.shape
        num = None if dims is None else dims[positive_axis(axis, len(dims))]
        if num is None:
            raise InvalidArgumentError(f"expected `num`, for axis {axis} of {x.spec} is not known")
    return list(apply_many(Unpack(num, axis), x, name=name or "unstack"))


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Returns parts of a tensor along an axis.

    Args:
        value: A tensor.
        num_or_size_splits: Number of equal parts, or a list of lengths (one may be -1).
        axis: The axis.
        num: Not used.
        name: Name of the operation.
    """
    x, axes = convert_to_tensor(value), as_axes(axis)
    if axes is None or len(axes) != 1:
        raise InvalidArgumentError(f"expected one axis, got {axis!r}")
    sizes = get_static_value(num_or_size_splits)
    if sizes is None:
        raise InvalidArgumentError("expected lengths known while the graph is built, got a tensor")
    if np.ndim(sizes) == 0:
        return list(apply_many(SplitEven(int(sizes), axes[0]), x, name=name or "split"))
    op = Split(tuple(int(n) for n in np.asarray(sizes)), axes[0])
    return list(apply_many(op, x, name=name or "split"))


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Returns `input` repeated `multiples[i]` times along axis i."""
    return apply(_TILE, convert_to_tensor(input), as_shape(multiples, "Tile/multiples"), name=name)


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
    return reshape(wide, concat([sizes[:axis], sizes[axis : axis + 1] * repeats, sizes[axis + 1 :]], 0), name)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
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


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Returns the inverse of a permutation of 0, 1, ..., n - 1."""
    return unary(InvertPermutation(), x, name)


@dataclass(frozen=True)
class InvertPermutation(Op):
    """The inverse of a permutation: y[x[i]] = i.

    Shapes: [n] -> [n]
    Raises: InvalidArgumentError if the input is no permutation of 0, ..., n - 1.
    """

    is_differentiable: ClassVar[bool] = False

    def infer(self, x: Spec) -> Spec:
        check_shape_vector(x)
        return x.like()

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        order = xp.argsort(x)
        if (x[order] != xp.arange(x.size)).any():
            raise InvalidArgumentError(f"expected a permutation of 0 to {x.size - 1}, got {x.tolist()}")
        return order.astype(x.dtype)


def _packed(values: Any, dtype: Any, name: str | None) -> Tensor:
    """Packs a (nested) list that holds tensors; the dtype is the first tensor's."""
    if dtype is None:
        dtype = _first_dtype(values)
    parts = [
        _packed(v, dtype, None) if isinstance(v, list | tuple) else convert_to_tensor(v, dtype) for v in values
    ]
    return apply(Pack(0), *parts, name=name or "packed")


def _first_dtype(values: Any) -> Any:
    for v in values:
        found = _first_dtype(v) if isinstance(v, list | tuple) else getattr(v, "dtype", None)
        if found is not None:
            return found
    return None


constants.packer.append(_packed)
