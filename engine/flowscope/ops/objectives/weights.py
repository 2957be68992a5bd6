"""Weights of losses and metrics: a number for all, or one per element along some axes."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, text
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of, squeeze_axes
from flowscope.ops.core.broadcasting import as_sizes, sum_to
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast


class BroadcastWeights(Op, host_inputs=(1,)):
    """Weights repeated up to the shape of values: of rank 0, or of their rank with lengths of 1.

    Shapes: weights, shape [n] -> shape
    """

    def infer(self, weights: Spec, shape: Spec) -> Spec:
        dims = shape.shape_value()
        check_weights(weights.shape, dims)
        return Spec(weights.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, weights: Tensor, shape: Tensor) -> Any:
        return sum_to(g, shape_of(weights)), None

    def kernel(self, xp: ArrayModule, weights: Array, shape: Array) -> Array:
        sizes = as_sizes(shape)
        check_weights(weights.shape, sizes)
        out = xp.empty(sizes, weights.dtype)
        out[...] = weights
        return out[()]


def check_weights(weights: Dims, values: Dims) -> None:
    """Raises InvalidArgumentError unless these weights can belong to values of this shape.

    A vector does not fit a matrix, though NumPy would repeat it: it is not said along which axis.
    """
    if not weights or values is None:
        return
    fits = len(weights) == len(values) and all(
        w in (None, 1, v) or v is None for w, v in zip(weights, values)
    )
    if not fits:
        raise expected(
            f"weights of rank 0, or of the shape {text(values)} with lengths of 1 where they "
            "repeat",
            weights,
        )


def broadcast_weights(weights: Any, values: Tensor) -> Tensor:
    """Returns weights in the shape of the values.

    Raises:
        InvalidArgumentError: if they do not fit, when it is known.
    """
    w = convert_to_tensor(weights, None if isinstance(weights, Tensor) else values.dtype)
    check_weights(w.spec.shape, values.spec.shape)
    if w.spec.is_static and w.spec.shape == values.spec.shape:
        return w
    return apply(BroadcastWeights(), w, shape_of(values))


def same_ranks(
    labels: Any, predictions: Any, weights: Any = None, expected_rank_diff: int = 0
) -> tuple[Tensor, Tensor, Any]:
    """Returns labels, predictions and weights with a last axis of length 1 that one of them has
    beyond the others taken off.

    Args:
        labels: A tensor.
        predictions: A tensor, of a rank that is by `expected_rank_diff` higher.
        weights: A tensor, or None.
        expected_rank_diff: See `predictions`.
    """
    y, p = convert_to_tensor(labels), convert_to_tensor(predictions)
    ours, theirs = y.spec.rank, p.spec.rank
    if ours is not None and theirs is not None:
        difference = theirs - ours - expected_rank_diff
        if difference == 1 and _may_go(p):
            p = squeeze_axes(p, (-1,))
        elif difference == -1 and _may_go(y):
            y = squeeze_axes(y, (-1,))
    return y, p, weights if weights is None else _ranked(weights, p, expected_rank_diff)


def _may_go(x: Tensor) -> bool:
    return bool(x.spec.shape) and x.spec.shape[-1] in (None, 1)  # type: ignore[index]


def _ranked(weights: Any, like: Tensor, less: int) -> Tensor:
    w = convert_to_tensor(weights)
    rank = like.spec.rank
    if not w.spec.shape or rank is None:
        return w
    difference = len(w.spec.shape) - (rank - less)
    if difference == 1 and _may_go(w):
        return squeeze_axes(w, (-1,))
    return expand_axes(w, (-1,)) if difference == -1 else w


def flat(x: Tensor) -> Tensor:
    """Returns a tensor's elements as a vector."""
    return x if x.spec.rank == 1 else reshape(x, [-1])


def as_real(x: Any, like: Any = None) -> Tensor:
    """Returns numbers as floating-point ones: of float64 as they are, of `like` if it is given,
    others as float32.
    """
    t = convert_to_tensor(x)
    if like is not None:
        return cast(t, like)
    return t if t.dtype.name in ("float32", "float64") else cast(t, "float32")
