"""Axes that are known only when the step runs: what takes its axis as a tensor.

An op has its axes as attributes, for its output's shape hangs on them. Where they come as tensors,
the input is reshaped to [what lies before, the axis, what lies behind], which costs nothing, and
the op runs along axis 1. Several axes are first brought to the end, which copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.graph.constant import Convertible, convert_to_tensor, holds_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import int32
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.core import builder
from flowscope.ops.core.axes import positive_axes, positive_axis
from flowscope.ops.core.broadcasting import broadcast_to
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.shape_rules import check_index_dtype
from flowscope.ops.math.elementwise import equal

__all__: list[str] = []


def dynamic_axes(axis: Any) -> Tensor | None:
    """Returns an axis argument as a tensor if its value is not known yet; else None."""
    if isinstance(axis, list | tuple) and holds_tensor(axis):
        axis = convert_to_tensor(axis)
    if not isinstance(axis, Tensor | Convertible):
        return None
    found = convert_to_tensor(axis)
    if found.spec.constant is not None:
        return None
    check_index_dtype(found, "axes")
    return found


class PositiveAxes(Op, is_differentiable=False, host_inputs=(0, 1), host_outputs=(0,)):
    """Axes counted from the front.

    Shapes: axes, rank [] -> axes
    Raises: InvalidArgumentError if one is out of range.
    """

    def infer(self, axes: Spec, rank: Spec) -> Spec:
        check_index_dtype(axes, "axes")
        return Spec(rank.dtype, axes.shape)

    def kernel(self, xp: ArrayModule, axes: Array, rank: Array) -> Array:
        n = int(rank)
        found = [positive_axis(a, n) for a in axes.reshape(-1).tolist()]
        return np.asarray(found, rank.dtype).reshape(axes.shape)[()]


class TransposeBy(Op, views=(0,), grad_reads=("perm",), host_inputs=(1,)):
    """The axes in another order: output axis i is input axis perm[i].

    Shapes: x of rank n, perm [n] -> rank n
    Raises: InvalidArgumentError if it is no permutation of the axes.
    """

    def infer(self, x: Spec, perm: Spec) -> Spec:
        check_index_dtype(perm, "a permutation")
        if not compatible(perm.shape, (x.rank,)):
            raise expected(f"{x.rank} axes", perm.shape)
        rank = perm.shape[0] if x.rank is None and perm.shape else x.rank
        return Spec(x.dtype, None if rank is None else (None,) * rank)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, perm: Tensor) -> Any:
        return apply(self, g, builder.invert_permutation(perm)), None

    def kernel(self, xp: ArrayModule, x: Array, perm: Array) -> Array:
        axes = perm.tolist()
        if sorted(axes) != list(range(x.ndim)):
            raise expected(f"a permutation of {x.ndim} axes", axes)
        return x.transpose(axes)[()] if axes else x


class ReverseBy(Op, views=(0,), grad_reads=("axes",), host_inputs=(1,)):
    """The input backwards along axes.

    Shapes: x, axes [n] -> x
    """

    def infer(self, x: Spec, axes: Spec) -> Spec:
        check_index_dtype(axes, "axes")
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, axes: Tensor) -> Any:
        return apply(self, g, axes), None

    def kernel(self, xp: ArrayModule, x: Array, axes: Array) -> Array:
        found = positive_axes(axes.reshape(-1).tolist(), x.ndim)
        return xp.flip(x, tuple(found)) if found else x


def from_the_front(axes: Any, x: Tensor) -> Tensor:
    """Returns axes of x, a scalar or a vector, counted from the front: int32."""
    return apply(PositiveAxes(), cast(convert_to_tensor(axes), int32), builder.rank(x))


def axes_last(x: Tensor, axes: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Returns x with axes as its last ones, and where its axes come from: others, then those."""
    gone = from_the_front(builder.reshape(axes, [-1]), x)
    kept, _ = builder.setdiff1d(builder.range(builder.rank(x)), gone)
    return transpose_by(x, builder.concat([kept, gone], 0)), kept, gone


def transpose_by(x: Tensor, perm: Tensor, name: str | None = None) -> Tensor:
    """Returns the axes of x in the order that `perm` gives."""
    return apply(TransposeBy(), x, perm, name=name)


class Lines:
    """A tensor as [before, axis, behind]: lines along an axis that is known later.

    Attributes:
        axis: The axis, counted from the front.
        sizes: The shape of the tensor.
        tensor: It, of rank 3.
    """

    def __init__(self, x: Tensor, axis: Tensor) -> None:
        if axis.spec.shape not in ((), None):
            axis = builder.reshape(axis, [])
        self.axis = from_the_front(axis, x)
        self.sizes = builder.shape_of(x)
        before, behind = self.sizes[: self.axis], self.sizes[self.axis + 1 :]
        whole = builder.stack(
            [builder.reduce_prod(before), self.sizes[self.axis], builder.reduce_prod(behind)]
        )
        self.tensor = builder.reshape(x, whole)

    def back(self, y: Tensor, name: str | None = None) -> Tensor:
        """Returns y, of rank 3, with the axes of the tensor; the axis may have another length."""
        places = builder.range(builder.size(self.sizes))
        length = broadcast_to(builder.shape_of(y)[1], builder.shape_of(self.sizes))
        return builder.reshape(y, builder.where(equal(places, self.axis), length, self.sizes), name)

    def without(self, y: Tensor, middle: Tensor | None = None, name: str | None = None) -> Tensor:
        """Returns y with other axes (none by default) in the place of the axis."""
        before, behind = self.sizes[: self.axis], self.sizes[self.axis + 1 :]
        parts = [before, behind] if middle is None else [before, middle, behind]
        return builder.reshape(y, builder.concat(parts, 0), name)


def along(x: Any, axis: Tensor, f: Callable[[Tensor], Tensor], name: str | None) -> Tensor:
    """Returns f(lines, of rank 3) along axis 1, back in the shape of x."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name):
        lines = Lines(x, axis)
        return lines.back(f(lines.tensor))


def reduced_along(x: Any, axis: Tensor, f: Callable[[Tensor], Tensor], name: str | None) -> Tensor:
    """Returns f(lines, of rank 3), which reduces axis 1, with the other axes of x."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name):
        lines = Lines(x, axis)
        return lines.without(f(lines.tensor))


def reduce_axes(
    x: Any, axes: Tensor, f: Callable[[Tensor, int], Tensor], keepdims: bool, name: str | None
) -> Tensor:
    """Returns a reduction of x along axes.

    Args:
        x: A tensor.
        axes: Axes, a scalar or a vector.
        f: The reduction of a tensor along one axis.
        keepdims: Whether the axes stay, of length 1.
        name: Name scope of the operations.
    """
    x = convert_to_tensor(x)
    if axes.spec.shape == ():
        with x.graph.name_scope(name):
            lines = Lines(x, axes)
            y = f(lines.tensor, 1)
            return lines.back(builder.expand_dims(y, 1)) if keepdims else lines.without(y)
    with x.graph.name_scope(name):
        moved, kept, gone = axes_last(x, axes)
        sizes = builder.shape_of(x)
        last = builder.reduce_prod(builder.gather(sizes, gone), keepdims=True)
        y = f(builder.reshape(moved, builder.concat([builder.gather(sizes, kept), last], 0)), -1)
        if not keepdims:
            return y
        return builder.reshape(
            y,
            builder.tensor_scatter_update(
                sizes, builder.expand_dims(gone, 1), builder.ones_like(gone)
            ),
        )
