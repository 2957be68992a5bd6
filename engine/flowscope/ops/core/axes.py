"""What all reductions share: axes, shapes, the base class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from flowscope.graph.constant import (
    Convertible,
    convert_to_tensor,
    get_static_value,
    holds_tensor,
)
from flowscope.graph.op import Array, Cost, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, size_of
from flowscope.ops.core import builder
from flowscope.ops.core.shape_rules import check_kind

Axes = tuple[int, ...] | None


def positive_axis(axis: int, rank: int) -> int:
    """Returns `axis` counted from the front; raises InvalidArgumentError if it is out of range."""
    if not -rank <= axis < rank:
        raise expected(f"an axis in [{-rank}, {rank})", axis)
    return axis % rank


def positive_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Returns axes counted from the front; none may be out of range or come twice."""
    found = [positive_axis(a, rank) for a in axes]
    if len(set(found)) != len(found):
        raise expected("each axis once", f"{list(axes)} for rank {rank}")
    return found


def as_axes(axis: Any) -> Axes:
    """Returns an `axis` argument as a tuple; None stays None.

    Raises:
        InvalidArgumentError: if it is a tensor whose value is not known yet.
    """
    if axis is None:
        return None
    if isinstance(axis, int):
        return (axis,)
    if isinstance(axis, Convertible) or (isinstance(axis, list | tuple) and holds_tensor(axis)):
        axis = convert_to_tensor(axis)
    value = get_static_value(axis)
    if value is None:
        raise expected("axes known while the graph is built", repr(axis))
    value = np.asarray(value)
    if value.size and value.dtype.kind not in "iu":
        raise expected_dtype("integers for axes", repr(axis))
    return tuple(int(a) for a in value.reshape(-1))


def one_axis(axis: Any) -> int:
    """Returns an `axis` argument that must be one axis, known while the graph is built."""
    axes = as_axes(axis)
    if axes is None or len(axes) != 1:
        raise expected("one axis", repr(axis))
    return axes[0]


def length_at(x: Spec, axis: int) -> int | None:
    """Returns the length of an axis, None where it is not known; the axis must be in range."""
    return None if x.shape is None else x.shape[positive_axis(axis, len(x.shape))]


def with_axis(x: Spec, axis: int, *lengths: int | None) -> Spec:
    """Returns a Spec that has axes of these lengths, or none, in the place of an axis of x."""
    if x.shape is None:
        return Spec(x.dtype, None)
    axis = positive_axis(axis, len(x.shape))
    return Spec(x.dtype, (*x.shape[:axis], *lengths, *x.shape[axis + 1 :]))


def with_new_axis(x: Spec, axis: int, length: int | None) -> Spec:
    """Returns a Spec that has one axis more than x, `axis` being its place in the result."""
    if x.shape is None:
        return Spec(x.dtype, None)
    axis = positive_axis(axis, len(x.shape) + 1)
    return Spec(x.dtype, (*x.shape[:axis], length, *x.shape[axis:]))


def reduced(dims: Dims, axis: Axes, keepdims: bool) -> Dims:
    """Returns the shape of a reduction's result."""
    if axis is None:
        if keepdims:
            return None if dims is None else (1,) * len(dims)
        return ()
    if dims is None:
        return None
    axes = positive_axes(axis, len(dims))
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)


@frozen
class ReductionOp(Op, abstract=True, calls=5):
    """Base of the reductions: `axis` None stands for all axes."""

    axis: Axes = None
    keepdims: bool = False
    kinds: ClassVar[str] = "fiuc"

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, self.kinds)
        return Spec(x.dtype, reduced(x.shape, self.axis, self.keepdims))

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        n = size_of(inputs[0].shape)
        return Cost(None if n is None else float(n), super().cost(inputs, outputs).nbytes)

    def _kept(self, t: Tensor) -> Tensor:
        """Returns a tensor of the output's shape with the reduced axes back, of length 1."""
        if self.keepdims or self.axis is None or not self.axis:
            return t
        return builder.expand_axes(t, self.axis)

    def _axes(self, x: Array) -> Any:
        """Returns the axes for NumPy, which has another message for those out of range."""
        if self.axis is not None:
            positive_axes(self.axis, x.ndim)
        return self.axis
