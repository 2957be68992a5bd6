"""Broadcasting, and its inverse: sums over the axes that were broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import Convertible, add_constant, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import (
    MAX_RANK,
    Dimension,
    Dims,
    TensorShape,
    broadcast,
    compatible,
    text,
)
from flowscope.graph.values.string_values import boxed
from flowscope.ops.core import builder
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_index_dtype, check_kind

__all__ = ["broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to"]


def as_sizes(shape: Array) -> tuple[int, ...]:
    """Returns the value of a shape (or of a scalar, for rank 1) as a tuple of integers."""
    values = shape.tolist()
    return tuple(values) if isinstance(values, list) else (values,)


def check_shape_vector(shape: Spec) -> None:
    """Raises unless the Spec can be that of a shape: an integer vector."""
    check_index_dtype(shape, "a shape")
    if shape.shape is not None and len(shape.shape) > 1:
        raise expected("a vector for a shape", shape.shape)
    if shape.shape and shape.shape[0] is not None and shape.shape[0] > MAX_RANK:
        raise expected(f"a shape of at most {MAX_RANK} dimensions", shape.shape[0])


def as_shape(shape: Any, owner: str | None, part: str = "shape") -> Tensor:
    """Returns a shape argument as a tensor; what leaves the choice of dtype open becomes int32.

    Args:
        shape: A tensor, or a sequence of integers, dimensions and scalar tensors.
        owner: Name of the operation that takes it, before it is made unique; None in its own scope.
        part: What the operation calls it; a constant that is made is named "<owner>/<part>".
    """
    if isinstance(shape, Tensor | Convertible):
        return convert_to_tensor(shape)
    graph = get_default_graph()
    name = part if owner is None else f"{graph.unique_name(owner, mark_as_used=False)}/{part}/"
    if isinstance(shape, list | tuple | TensorShape):
        values = [int(d) if isinstance(d, Dimension) else d for d in shape]
        if all(type(d) is int for d in values):
            wide = dtypes.int32 if all(abs(d) < 2**31 for d in values) else dtypes.int64
            return add_constant(graph, np.array(values, wide.np_dtype), wide, name)
        shape = values
    return convert_to_tensor(shape, None, name, dtypes.int32)


@frozen
class BroadcastTo(Op, host_inputs=(1,), keeps_finite=True):
    """The input repeated along new axes and axes of length 1, up to a shape.

    Shapes: x, shape [n] -> shape
    Raises: InvalidArgumentError if the input cannot be broadcast to it.
    """

    def infer(self, x: Spec, shape: Spec) -> Spec:
        check_shape_vector(shape)
        dims = shape.shape_value()
        if dims is not None and x.shape is not None:
            both = broadcast(x.shape, dims)
            if len(x.shape) > len(dims) or not compatible(both, dims):
                raise expected(f"a shape that can be broadcast to {text(dims)}", x.shape)
        return Spec(x.dtype, dims)

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        return 0 if output.is_static and inputs[0].shape == output.shape else None

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor) -> Any:
        if x.spec.is_static and y.spec.is_static:
            return _sum_static(g, x.spec.shape, y.spec.shape), None
        return sum_to(g, builder.shape(x)), None

    def kernel(self, xp: ArrayModule, x: Array, shape: Array) -> Array:
        sizes = as_sizes(shape)
        if not sizes and np.shape(x) == ():
            return x
        x = boxed(x)
        # Not a view of stride 0: those are slow in matrix products.
        out = xp.empty(sizes, x.dtype)
        try:
            if x.ndim > len(sizes):
                raise ValueError
            out[...] = x
        except ValueError:
            raise expected(f"a shape that can be broadcast to {text(sizes)}", x.shape) from None
        return out


@frozen
class SumTo(Op, views=(0,), accumulates=True, host_inputs=(1,)):
    """The sum over the axes along which the given shape would be broadcast to the input's.

    Shapes: x, shape [n] -> shape
    """

    def infer(self, x: Spec, shape: Spec) -> Spec:
        check_kind(x.dtype, "fiucb", "numbers to sum up")
        check_shape_vector(shape)
        dims = shape.shape_value()
        if x.rank is not None and dims is not None and len(dims) > x.rank:
            raise expected(f"a shape that is broadcast to {text(x.shape)}", dims)
        return Spec(x.dtype, dims)

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        return 0 if output.is_static and inputs[0].shape == output.shape else None

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor) -> Any:
        return broadcast_to(g, builder.shape(x)), None

    def kernel(self, xp: ArrayModule, x: Array, shape: Array) -> Array:
        sizes = as_sizes(shape)
        if x.shape == sizes:
            return x
        new = x.ndim - len(sizes)
        axes = [*range(new), *[new + i for i, d in enumerate(sizes) if d == 1]]
        return x.sum(axis=tuple(axes), dtype=x.dtype).reshape(sizes)[()]


_BROADCAST_TO = BroadcastTo()
_SUM_TO = SumTo()


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns `input` repeated along new leading axes and axes of length 1 up to `shape`."""
    return apply(
        _BROADCAST_TO,
        convert_to_tensor(input),
        as_shape(shape, name or "BroadcastTo"),
        name=name,
    )


def sum_to(x: Tensor, shape: Tensor) -> Tensor:
    """Returns the sum over the axes along which `shape` would be broadcast to x's shape."""
    return apply(_SUM_TO, x, shape)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Any:
    """Returns the static shape of an element-wise result of two static shapes."""
    from flowscope.graph.values.shapes import as_dims

    return TensorShape(broadcast(as_dims(shape_x), as_dims(shape_y)))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Returns the shape of an element-wise result of tensors of two shapes, as a tensor."""
    return apply(_BROADCAST_SHAPES, convert_to_tensor(shape_x), convert_to_tensor(shape_y))


@frozen
class BroadcastArgs(Op, is_differentiable=False, host_inputs=(0, 1), host_outputs=(0,)):
    """The shape of an element-wise result, from the shapes of its inputs.

    Shapes: a [m], b [n] -> [max(m, n)]
    """

    def infer(self, a: Spec, b: Spec) -> Spec:
        check_shape_vector(a)
        check_shape_vector(b)
        if a.dtype is not b.dtype:
            raise expected_dtype("both of one dtype", a.dtype, b.dtype)
        x, y = a.shape_value(), b.shape_value()
        dims = None if x is None or y is None else broadcast(x, y)
        return Spec(a.dtype, (None if dims is None else len(dims),), dims=dims)

    def kernel(self, xp: ArrayModule, a: Array, b: Array) -> Array:
        return np.asarray(broadcast(as_sizes(a), as_sizes(b)), a.dtype)


_BROADCAST_SHAPES = BroadcastArgs()


def unbroadcast(g: Tensor | None, x: Tensor, other: Tensor) -> Tensor | None:
    """Returns the cotangent of x from that of an element-wise result of x and `other`.

    What can be decided from static shapes is; else the shapes are compared while the step runs.
    """
    if g is None or x is other:
        return g
    mine, theirs = x.spec.shape, other.spec.shape
    if mine is not None and mine == theirs and None not in mine:
        return g
    if mine is None or theirs is None or _undecided(mine, theirs):
        return g if theirs == () else sum_to(g, builder.shape(x))
    return _sum_static(g, mine, broadcast(mine, theirs))


def _undecided(mine: Any, theirs: Any) -> bool:
    """Whether an axis of unknown length may have been broadcast."""
    return any(m is None and t != 1 for m, t in zip(reversed(mine), reversed(theirs)))


def _sum_static(g: Tensor, mine: Dims, whole: Dims) -> Tensor:
    """Returns g, of shape `whole`, summed over the axes that `mine` lacks or has of length 1."""
    assert mine is not None
    assert whole is not None
    new = len(whole) - len(mine)
    if new:
        g = builder.reduce_sum(g, axis=list(range(new)))
    stretched = [i for i, m in enumerate(mine) if m == 1 and whole[new + i] != 1]
    return builder.reduce_sum(g, axis=stretched, keepdims=True) if stretched else g
