"""Cross entropies between labels and logits, and their like."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, merge_dims, text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.gathering import check_range
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of, transpose
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.flow import stop_gradient
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same
from flowscope.ops.math.elementwise import (
    add,
    exp,
    greater_equal,
    log,
    multiply,
    negative,
    softplus,
    subtract,
)
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.nn.softmax import log_softmax, one_axis, shifted_exponentials, softmax

__all__ = [
    "log_poisson_loss",
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]


@frozen
class SoftmaxCrossEntropyWithLogits(
    Op, grad_reads=("y", "logits", "labels"), accumulates=True, calls=20
):
    """Cross entropy between labels and softmax(logits), and its gradient for the logits.

    Shapes: logits [batch, classes], labels [batch, classes] -> loss [batch],
        backprop [batch, classes]
    """

    def infer(self, logits: Spec, labels: Spec) -> Any:
        check_same(logits, labels)
        check_kind(logits.dtype, "f")
        for s in (logits, labels):
            check_rank(s, 2, "logits and labels of rank 2")
        if not compatible(logits.shape, labels.shape):
            raise expected(f"labels of the logits' shape {text(logits.shape)}", labels.shape)
        dims = merge_dims(merge_dims(logits.shape, labels.shape), (None, None))
        return Spec(logits.dtype, None if dims is None else dims[:1]), Spec(logits.dtype, dims)

    def grad(self, g: Any, y: Any, logits: Tensor, labels: Tensor) -> Any:
        """The backprop's own gradient makes the second order right."""
        loss, backprop = g
        to_logits = to_labels = None
        if loss is not None:
            column = expand_axes(loss, (-1,))
            to_logits = multiply(column, y[1])
            to_labels = negative(multiply(column, log_softmax(logits)))
        if backprop is not None:
            p, mass = softmax(logits), reduce_sum(labels, 1, keepdims=True)
            distance = subtract(backprop, reduce_sum(multiply(backprop, p), 1, keepdims=True))
            second = multiply(multiply(p, mass), distance)
            to_logits = second if to_logits is None else add(to_logits, second)
            to_labels = negative(distance) if to_labels is None else subtract(to_labels, distance)
        return to_logits, to_labels

    def kernel(self, xp: ArrayModule, logits: Array, labels: Array) -> Any:
        if logits.shape != labels.shape or logits.ndim != 2:
            raise expected("logits and labels of one shape", logits.shape, labels.shape)
        shifted, powers, total = shifted_exponentials(xp, logits, 1)
        loss = (labels * (xp.log(total) - shifted)).sum(axis=1, dtype=logits.dtype)
        # The labels of a row need not add up to 1: a row of zeros, for example, masks it.
        mass = labels.sum(axis=1, keepdims=True, dtype=labels.dtype)
        powers /= total
        powers *= mass
        powers -= labels
        return loss, powers


@frozen
class SparseSoftmaxCrossEntropyWithLogits(
    Op, grad_reads=("y", "logits"), accumulates=True, calls=20
):
    """Cross entropy between classes, given by number, and softmax(logits), and its gradient.

    Shapes: logits [batch, classes], labels [batch] -> loss [batch], backprop [batch, classes]
    Raises: InvalidArgumentError if a label is not in [0, classes).
    """

    def infer(self, logits: Spec, labels: Spec) -> Any:
        check_kind(logits.dtype, "f")
        check_kind(labels.dtype, "iu", "integer labels")
        if logits.rank not in (None, 2) or labels.rank not in (None, 1):
            raise expected("logits of rank 2 and labels of rank 1", logits, labels)
        rows = None if logits.shape is None else logits.shape[:1]
        if not compatible(rows, labels.shape):
            raise expected(f"labels of shape {text(rows)}", labels.shape)
        n = (merge_dims(rows, labels.shape) or (None,))[0]
        classes = None if logits.shape is None else logits.shape[1]
        return Spec(logits.dtype, (n,)), Spec(logits.dtype, (n, classes))

    def grad(self, g: Any, y: Any, logits: Tensor, labels: Tensor) -> Any:
        loss, backprop = g
        to_logits = None
        if loss is not None:
            to_logits = multiply(expand_axes(loss, (-1,)), y[1])
        if backprop is not None:
            p = softmax(logits)
            second = multiply(
                p, subtract(backprop, reduce_sum(multiply(backprop, p), 1, keepdims=True))
            )
            to_logits = second if to_logits is None else add(to_logits, second)
        return to_logits, None

    def kernel(self, xp: ArrayModule, logits: Array, labels: Array) -> Any:
        if logits.ndim != 2 or labels.shape != logits.shape[:1]:
            raise expected(f"labels of shape {text(logits.shape[:1])}", labels.shape)
        check_range(labels, logits.shape[1])
        shifted, powers, total = shifted_exponentials(xp, logits, 1)
        rows = xp.arange(labels.size)
        loss = xp.log(total[:, 0]) - shifted[rows, labels]
        powers /= total
        powers[rows, labels] -= 1
        return loss, powers


_SOFTMAX_LOSS, _SPARSE_LOSS = SoftmaxCrossEntropyWithLogits(), SparseSoftmaxCrossEntropyWithLogits()


@op_function("logits labels~logits")
def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """Returns the cross entropy between `labels` and softmax(logits).

    Args:
        labels: Probabilities of the classes, of the logits' shape.
        logits: Unnormalised log-probabilities.
        axis: The axis of the classes, the last by default.
        dim: Old name of `axis`.

    Returns:
        The losses, of the logits' shape without that axis.
    """
    name = name or "softmax_cross_entropy_with_logits"
    place = one_axis(axis, dim)
    rank = logits.spec.rank
    if rank == 2 and positive_axis(place, 2) == 1:
        return apply_many(_SOFTMAX_LOSS, logits, labels, name=name)[0]
    if rank is None:
        raise expected("logits of known rank", logits.spec)
    last = positive_axis(place, rank)
    perm = [i for i in range(rank) if i != last] + [last]
    logits, labels = transpose(logits, perm), transpose(labels, perm)
    shape = shape_of(logits)
    flat = apply_many(_SOFTMAX_LOSS, _rows(logits, shape), _rows(labels, shape), name=name)[0]
    return reshape(flat, shape[:-1])


def _rows(x: Tensor, shape: Tensor) -> Tensor:
    return reshape(x, concat([[-1], shape[-1:]], 0))


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: Any = -1,
    name: str | None = None,
    axis: Any = None,
) -> Tensor:
    """Returns the cross entropy between `labels` and softmax(logits); the labels count as constant.

    Raises:
        InvalidArgumentError: if labels or logits are not given by name.
    """
    _check_named(_sentinel, labels, logits)
    labels = stop_gradient(
        convert_to_tensor(labels, None if isinstance(labels, Tensor) else logits.dtype)
    )
    return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, name)


def _check_named(sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise expected("labels=... and logits=... by name", "something else")


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Returns the cross entropy between classes and softmax(logits).

    Args:
        _sentinel: Nothing: labels and logits are given by name.
        labels: Numbers of the classes, in [0, classes).
        logits: Unnormalised log-probabilities, of labels' shape and one more axis.
        name: Name of the operation.

    Returns:
        The losses, of labels' shape.

    Example:
        >>> logits = fs.constant([[0.0, 0.0], [10.0, 0.0]])
        >>> loss = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 0], logits=logits)
        >>> fs.Session().run(loss).round(3)
        array([0.693, 0.   ], dtype=float32)
    """
    _check_named(_sentinel, labels, logits)
    logits, labels = convert_to_tensor(logits), convert_to_tensor(labels)
    name = name or "SparseSoftmaxCrossEntropyWithLogits"
    if logits.spec.rank in (2, None):
        return apply_many(_SPARSE_LOSS, logits, labels, name=name)[0]
    if labels.spec.rank is not None and labels.spec.rank + 1 != logits.spec.rank:
        raise expected(f"labels of rank {(logits.spec.rank or 0) - 1}", labels.spec.shape)
    flat = apply_many(
        _SPARSE_LOSS, _rows(logits, shape_of(logits)), reshape(labels, [-1]), name=name
    )[0]
    return reshape(flat, shape_of(labels))


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Returns the cross entropy of independent yes/no questions, without overflow.

    Args:
        _sentinel: Nothing: labels and logits are given by name.
        labels: Probabilities.
        logits: Unnormalised log-odds, of the same shape and dtype.
        name: Name of the operation.
    """
    _check_named(_sentinel, labels, logits)
    x = convert_to_tensor(logits)
    z = convert_to_tensor(labels, None if isinstance(labels, Tensor) else x.dtype)
    if not compatible(x.spec.shape, z.spec.shape):
        raise expected(f"labels of the logits' shape {text(x.spec.shape)}", z.spec.shape)
    name = name or "logistic_loss"
    with x.graph.name_scope(name) as scope:
        # softplus(x) - x * z = max(x, 0) - x * z + log(1 + exp(-|x|))
        return subtract(softplus(x), multiply(x, z), scope or name)


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Returns the sigmoid cross entropy in which positive answers count `pos_weight` times.

    Args:
        labels: Probabilities.
        logits: Unnormalised log-odds, of the same shape and dtype.
        pos_weight: A number, or a tensor that can be broadcast to the logits.
        name: Name of the operation.
        targets: Old name of `labels`.
    """
    targets = labels if targets is None else targets
    if targets is None or logits is None or pos_weight is None:
        raise expected("labels, logits and pos_weight", "fewer")
    x = convert_to_tensor(logits)
    z = convert_to_tensor(targets, None if isinstance(targets, Tensor) else x.dtype)
    with x.graph.name_scope(name or "logistic_loss"):
        weight = add(1.0, multiply(subtract(convert_to_tensor(pos_weight, x.dtype), 1.0), z))
        return add(multiply(subtract(1.0, z), x), multiply(weight, softplus(negative(x))))


@op_function("log_input targets~log_input", scope="log_poisson_loss")
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Returns exp(log_input) - targets * log_input, plus Stirling's approximation if asked for."""
    loss = subtract(exp(log_input), multiply(targets, log_input))
    if not compute_full_loss:
        return loss
    large = greater_equal(targets, 1.0)
    safe = where(large, targets, add(zeros_like(targets), 1.0))
    stirling = add(
        subtract(multiply(safe, log(safe)), safe), multiply(0.5, log(multiply(2 * np.pi, safe)))
    )
    return add(loss, where(large, stirling, zeros_like(targets)))
