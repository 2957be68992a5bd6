"""Ops that change the shape: reshape, transpose, new and dropped axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import size_of, text
from flowscope.graph.values.string_values import boxed
from flowscope.ops.core import builder
from flowscope.ops.core.axes import Axes, as_axes, one_axis, positive_axis
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.core.build import apply, unary
from flowscope.ops.core.casting import cast, conj
from flowscope.ops.core.table import folded
from flowscope.ops.math.dynamic_axes import PositiveAxes, dynamic_axes, transpose_by

__all__ = [
    "expand_dims",
    "invert_permutation",
    "reshape",
    "squeeze",
    "transpose",
]


def shape_of(x: Tensor) -> Tensor:
    """Returns the shape of x as a tensor."""
    return builder.shape(x)


def known_values(op: Op, spec: Spec, *inputs: Spec) -> Spec:
    """Returns the Spec of an op that joins integers, with what is known of their values."""
    if spec.dtype.kind != "i" or spec.dtype.size < 4:
        return spec
    spec = folded(op, spec, *inputs)
    if spec.constant is not None or spec.shape is None or len(spec.shape) > 1:
        return spec
    dims: list[int | None] = []
    for s in inputs:
        part = (
            (None,) if s.shape == () and s.dims is None and s.constant is None else s.shape_value()
        )
        if part is None:
            return spec
        dims += part
    return Spec(spec.dtype, spec.shape, None, tuple(dims))


class Reshape(Op, views=(0,), memory_order="R", host_inputs=(1,), keeps_finite=True):
    """The same elements in another shape; one dimension may be -1, which is worked out.

    Shapes: x, shape [n] -> shape
    Raises: InvalidArgumentError if the numbers of elements differ.
    """

    def infer(self, x: Spec, shape: Spec) -> Spec:
        check_shape_vector(shape)
        dims: Any = shape.shape_value()
        if dims is None:
            return Spec(x.dtype, None)
        if shape.constant is not None:
            _check_sizes(as_sizes(shape.constant))
        dims = _worked_out(dims, size_of(x.shape), text(x.shape))
        if shape.constant is not None and size_of(x.shape) == 0:
            dims = tuple([1 if d is None else d for d in dims])  # any size would do
        if x.constant is not None and None not in dims and x.dtype.kind == "i":
            return Spec(x.dtype, dims, np.asarray(x.constant).reshape(dims)[()])
        is_list = x.dims is not None and len(dims) == 1
        return Spec(x.dtype, dims, None, x.dims if is_list else None)

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        sizes = inputs[1].shape_value()
        if inputs[1].constant is None and (sizes is None or None in sizes):
            return None  # what comes may be another shape, and then it is an error
        return 0 if output.is_static and inputs[0].shape == output.shape else None

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor) -> Any:
        return reshape(g, shape_of(x)), None

    def kernel(self, xp: ArrayModule, x: Array, shape: Array) -> Array:
        sizes = as_sizes(shape)
        _check_sizes(sizes)
        if not np.size(x) and -1 in sizes and 0 in sizes:
            sizes = tuple([1 if d < 0 else d for d in sizes])  # any would do
        try:
            return boxed(x).reshape(sizes)[()] if not sizes else boxed(x).reshape(sizes)
        except ValueError:
            raise expected(
                f"a shape of {np.size(x)} elements", f"{text(sizes)} for {text(np.shape(x))}"
            ) from None


def _check_sizes(sizes: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError unless at most one size is -1 and no other below 0."""
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise expected("sizes from 0 on and at most one -1 in a shape", list(sizes))


def _worked_out(dims: Any, size: int | None, given: str) -> Any:
    """Returns `dims` with its only unknown worked out from the number of elements, if known."""
    if size is None:
        return dims
    known = math.prod(d for d in dims if d is not None)
    unknown = sum(d is None for d in dims)
    fits = size == known if not unknown else known == 0 or size % known == 0
    if not fits or (unknown and known == 0 and size):
        raise expected(f"a shape of {size} elements", f"{text(dims)} for {given}")
    if unknown != 1 or known == 0:
        return dims
    return tuple(size // known if d is None else d for d in dims)


@frozen
class Transpose(Op, views=(0,), keeps_finite=True):
    """The axes in another order: output axis i is input axis perm[i]; reversed if None.

    Shapes: [d0, ..., dn] -> [d(perm[0]), ..., d(perm[n])]
    """

    perm: tuple[int, ...] | None = None

    def infer(self, x: Spec) -> Spec:
        if self.perm is None:
            return Spec(x.dtype, None if x.shape is None else x.shape[::-1])
        self._check(x.rank)
        if x.shape is None:
            return Spec(x.dtype, (None,) * len(self.perm))
        return Spec(x.dtype, tuple([x.shape[i] for i in self.perm]))

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        rank = inputs[0].rank
        perm = self.perm or (() if rank is None else tuple(range(rank))[::-1])
        return 0 if rank is not None and perm == tuple(range(rank)) else None

    def _check(self, rank: int | None) -> None:
        assert self.perm is not None
        if sorted(self.perm) != list(range(len(self.perm) if rank is None else rank)):
            raise InvalidArgumentError(
                f"expected a permutation of {'the' if rank is None else rank} axes, "
                f"got {list(self.perm)}"
            )

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        perm = self.perm
        back = None if perm is None else tuple([perm.index(i) for i in range(len(perm))])
        return (apply(Transpose(back), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if self.perm is not None and len(self.perm) != np.ndim(x):
            self._check(np.ndim(x))
        return x.transpose(self.perm)[()] if np.ndim(x) else x


@frozen
class ExpandDims(Op, views=(0,), memory_order="R"):
    """New axes of length 1 at the given places of the result.

    Shapes: [...] of rank n -> rank n + len(axes)
    """

    axes: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        if x.shape is None:
            return Spec(x.dtype, None)
        spec = Spec(x.dtype, self._shape(x.shape))
        return known_values(self, spec, x)

    def _shape(self, dims: Any) -> Any:
        rank = len(dims) + len(self.axes)
        places = {positive_axis(a, rank) for a in self.axes}
        if len(places) != len(self.axes):
            raise expected("each new axis once", list(self.axes))
        rest = iter(dims)
        return tuple([1 if i in places else next(rest) for i in range(rank)])

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(Squeeze(self.axes), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return boxed(x).reshape(self._shape(np.shape(x)))


@frozen
class Squeeze(Op, views=(0,), memory_order="R"):
    """The input without the given axes, or without all axes of length 1 if there are none given.

    Raises: InvalidArgumentError if one of the given axes has another length.
    """

    axes: tuple[int, ...] = ()

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
                raise expected(f"length 1 at axis {i}", dims)
        return tuple([d for i, d in enumerate(dims) if i not in places])

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (reshape(g, shape_of(x)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return boxed(x).reshape(self._shape(np.shape(x)))[()]


def zeros_of(t: Tensor) -> Tensor:
    """Returns zeros like t."""
    return builder.zeros_like(t)


_RESHAPE = Reshape()


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns the same elements in another shape.

    Args:
        tensor: A tensor.
        shape: The new shape; one dimension may be -1, which is worked out.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the numbers of elements differ.

    Example:
        >>> fs.Session().run(fs.reshape(fs.range(6), [2, -1]))
        array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """
    x = convert_to_tensor(tensor)
    return apply(_RESHAPE, x, as_shape(shape, name or "Reshape"), name=name)


def transpose(
    a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False
) -> Tensor:
    """Returns `a` with its axes in another order.

    Args:
        a: A tensor.
        perm: Output axis i is input axis perm[i]; all reversed if None.
        name: Name of the operation.
        conjugate: Whether complex elements are conjugated.

    Example:
        >>> fs.Session().run(fs.transpose([[1, 2, 3], [4, 5, 6]]))
        array([[1, 4],
               [2, 5],
               [3, 6]], dtype=int32)
    """
    dynamic = dynamic_axes(perm)
    if dynamic is not None:
        x = transpose_by(convert_to_tensor(a), dynamic, name or "transpose")
    else:
        x = unary(Transpose(as_axes(perm)), a, name or "transpose")
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

    Example:
        >>> fs.expand_dims(fs.zeros([2, 3]), 1).shape.as_list()
        [2, 1, 3]
    """
    dynamic = dynamic_axes(dim if axis is None else axis)
    if dynamic is not None:
        return _expand_dynamic(convert_to_tensor(input), dynamic, name or "ExpandDims")
    return unary(ExpandDims((one_axis(dim if axis is None else axis),)), input, name)


def _expand_dynamic(x: Tensor, axis: Tensor, name: str) -> Tensor:
    """Returns x with a new axis whose place is known when the step runs."""
    with x.graph.name_scope(name):
        sizes = shape_of(x)
        place = apply(PositiveAxes(), cast(axis, "int32"), builder.rank(x) + 1)
        place = reshape(place, [])
        return reshape(x, builder.concat([sizes[:place], [1], sizes[place:]], 0))


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """Returns `input` without axes of length 1.

    Args:
        input: A tensor.
        axis: Which axes; all of length 1 if None.
        name: Name of the operation.
        squeeze_dims: Old name of `axis`.

    Example:
        >>> fs.squeeze(fs.zeros([2, 1, 3]), 1).shape.as_list()
        [2, 3]
    """
    return unary(Squeeze(as_axes(squeeze_dims if axis is None else axis) or ()), input, name)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Returns the inverse of a permutation of 0, 1, ..., n - 1."""
    return unary(InvertPermutation(), x, name)


class InvertPermutation(Op, is_differentiable=False):
    """The inverse of a permutation: y[x[i]] = i.

    Shapes: [n] -> [n]
    Raises: InvalidArgumentError if the input is no permutation of 0, ..., n - 1.
    """

    def infer(self, x: Spec) -> Spec:
        check_shape_vector(x)
        if x.rank == 0:
            raise expected("a permutation, of rank 1", "a scalar")
        return x.like()

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        order = xp.argsort(x)
        if on_host((x[order] != xp.arange(x.size)).any()):
            raise expected(f"a permutation of 0 to {x.size - 1}", on_host(x).tolist())
        return order.astype(x.dtype)
