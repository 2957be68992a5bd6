"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.build import unary
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.kernels.softmax import (
    exponentials,
    is_large,
    log_softmax_rows,
    softmax_rows,
)
from flowscope.ops.math.elementwise import (
    exp,
    multiply,
    subtract,
)
from flowscope.ops.math.reductions import reduce_sum

__all__ = ["log_softmax", "softmax"]


def shifted_exponentials(xp: ArrayModule, x: Array, axis: int) -> tuple[Array, Array, Array]:
    """Returns x minus its maximum along the axis, the exponentials (a new array), and their sum."""
    if axis == 1 and x.ndim == 2:
        return exponentials(xp, x)
    shifted = x - x.max(axis=axis, keepdims=True) if x.size else x
    powers = xp.exp(shifted)
    return shifted, powers, powers.sum(axis=axis, keepdims=True, dtype=x.dtype)


@frozen
class Softmax(Op, grad_reads=("y",), memory_order="K", accumulates=True, calls=5):
    """exp(x) divided by its sum along an axis."""

    axis: int = -1

    def infer(self, x: Spec) -> Spec:
        return _with_axis(x, self.axis)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        total = reduce_sum(multiply(g, y), self.axis, keepdims=True)
        return (multiply(subtract(g, total), y),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axis = positive_axis(self.axis, x.ndim)
        if is_large(xp, x, axis):
            return softmax_rows(x)
        _, powers, total = shifted_exponentials(xp, x, axis)
        powers /= total
        return powers


@frozen
class LogSoftmax(Op, grad_reads=("y",), memory_order="K", accumulates=True, calls=5):
    """log(softmax(x)) along an axis, without overflow."""

    axis: int = -1

    def infer(self, x: Spec) -> Spec:
        return _with_axis(x, self.axis)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        total = reduce_sum(g, self.axis, keepdims=True)
        return (subtract(g, multiply(exp(y), total)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axis = positive_axis(self.axis, x.ndim)
        if is_large(xp, x, axis):
            return log_softmax_rows(x)
        shifted, _, total = shifted_exponentials(xp, x, axis)
        return shifted - xp.log(total)


def _with_axis(x: Spec, axis: int) -> Spec:
    check_kind(x.dtype, "f")
    if x.shape is not None:
        positive_axis(axis, len(x.shape))
    return x.like()


def one_axis(axis: Any, dim: Any) -> int:
    axes = as_axes(dim if axis is None else axis)
    return -1 if axes is None else axes[0]


def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Returns exp(logits) divided by its sum along an axis.

    Args:
        logits: A floating-point tensor.
        axis: The axis, the last by default.
        name: Name of the operation.
        dim: Old name of `axis`.

    Example:
        >>> fs.Session().run(fs.nn.softmax([1.0, 1.0]))
        array([0.5, 0.5], dtype=float32)
    """
    return unary(Softmax(one_axis(axis, dim)), logits, name)


def log_softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Returns log(softmax(logits)) without overflow; the arguments are those of `softmax`."""
    return unary(LogSoftmax(one_axis(axis, dim)), logits, name)
