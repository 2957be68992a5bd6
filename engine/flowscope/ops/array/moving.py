"""Elements moved to other places along axes: rolled, backwards, backwards in part."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.axes import as_axes, positive_axes, positive_axis
from flowscope.ops.core.build import apply, unary
from flowscope.ops.core.shape_rules import check_integers
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.math.dynamic_axes import ReverseBy, dynamic_axes

__all__ = ["reverse", "reverse_sequence", "reverse_v2", "roll"]


class Roll(Op, grad_reads=("shift", "axis"), host_inputs=(1, 2)):
    """The elements moved along axes, round the end; shifts along one axis add up.

    Shapes: x, shift [n] or [], axis as shift -> x
    """

    def infer(self, x: Spec, shift: Spec, axis: Spec) -> Spec:
        check_integers(shift, "shifts", 0, 1)
        check_integers(axis, "axes", 0, 1)
        if not compatible(shift.shape, axis.shape):
            raise expected("a shift per axis", shift.shape, axis.shape)
        if axis.constant is not None and x.shape is not None:
            for a in np.asarray(axis.constant).reshape(-1).tolist():
                positive_axis(a, len(x.shape))
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shift: Tensor, axis: Tensor) -> Any:
        return apply(self, g, -shift, axis), None, None

    def kernel(self, xp: ArrayModule, x: Array, shift: Array, axis: Array) -> Array:
        axes = tuple([positive_axis(a, x.ndim) for a in axis.reshape(-1).tolist()])
        shifts = tuple(shift.reshape(-1).tolist())
        if len(axes) != len(shifts):
            raise expected("a shift per axis", f"{shifts} for {axes}")
        return xp.roll(x, shifts, axes) if axes else x.copy()


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Returns the elements moved along axes; what leaves at one end comes in at the other.

    Args:
        input: A tensor.
        shift: By how many places towards the end: an integer, or one per axis.
        axis: The axis, or several; shifts along an axis named again add up.
        name: Name of the operation.
    """
    shifts, axes = [convert_to_tensor(v, None, None, dtypes.int32) for v in (shift, axis)]
    return apply(Roll(), convert_to_tensor(input), shifts, axes, name=name)


@frozen
class ReverseSequence(Op, grad_reads=("lengths",)):
    """The first lengths[i] elements of element i of the batch backwards, the others as they are.

    Shapes: x, lengths [x.shape[batch_axis]] -> x
    Raises: InvalidArgumentError if a length is negative or above that of the axis.
    """

    seq_axis: int
    batch_axis: int = 0

    def infer(self, x: Spec, lengths: Spec) -> Spec:
        check_integers(lengths, "lengths", 1)
        if x.shape is None:
            return x.like()
        _, batch = self._axes(len(x.shape))
        if not compatible((x.shape[batch],), lengths.shape):
            raise expected(
                f"a length per element of axis {batch} of {text(x.shape)}",
                f"lengths of shape {text(lengths.shape)}",
            )
        return x.like()

    def _axes(self, rank: int) -> tuple[int, int]:
        seq, batch = positive_axis(self.seq_axis, rank), positive_axis(self.batch_axis, rank)
        if seq == batch:
            raise expected("two different axes", f"{seq} for both")
        return seq, batch

    def grad(self, g: Tensor, y: Tensor, x: Tensor, lengths: Tensor) -> Any:
        return apply(self, g, lengths), None

    def kernel(self, xp: ArrayModule, x: Array, lengths: Array) -> Array:
        seq, batch = self._axes(x.ndim)
        n = x.shape[seq]
        low, high = bounds(lengths) if lengths.size else (0, 0)
        if low < 0 or high > n:
            raise expected(f"lengths in [0, {n}]", f"{low} to {high}")
        ends = lengths.reshape([-1 if i == batch else 1 for i in range(x.ndim)])
        places = xp.arange(n).reshape([-1 if i == seq else 1 for i in range(x.ndim)])
        index = xp.where(places < ends, ends - 1 - places, places)
        return xp.take_along_axis(x, index, axis=seq)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Returns `input` with the first `seq_lengths[i]` elements of each sequence backwards.

    Args:
        input: A tensor.
        seq_lengths: A vector of integers, one per element of the batch.
        seq_axis: The axis along which the sequences run.
        batch_axis: The axis of the batch, 0 by default.
        name: Name of the operation.
        seq_dim: Old name of `seq_axis`.
        batch_dim: Old name of `batch_axis`.
    """
    seq = seq_dim if seq_axis is None else seq_axis
    batch = batch_dim if batch_axis is None else batch_axis
    if seq is None:
        raise expected("a seq_axis", "none")
    lengths = convert_to_tensor(seq_lengths, None, None, dtypes.int32)
    return apply(ReverseSequence(seq, batch or 0), convert_to_tensor(input), lengths, name=name)


# -- space and depth ------------------------------------------------------------------------------


# -- space and batch ------------------------------------------------------------------------------


@frozen
class Reverse(Op, views=(0,), keeps_finite=True):
    """The input backwards along axes."""

    axes: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        if x.shape is not None:
            positive_axes(self.axes, len(x.shape))
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(self, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        positive_axes(self.axes, np.ndim(x))
        return xp.flip(x, self.axes)[()] if self.axes else x


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Returns a tensor with its elements in reverse order along axes.

    Example:
        >>> fs.Session().run(fs.reverse([1, 2, 3], [0]))
        array([3, 2, 1], dtype=int32)
    """
    dynamic = dynamic_axes(axis)
    if dynamic is not None:
        return apply(ReverseBy(), convert_to_tensor(tensor), dynamic, name=name or "ReverseV2")
    return unary(Reverse(as_axes(axis) or ()), tensor, name or "ReverseV2")


reverse_v2 = reverse
