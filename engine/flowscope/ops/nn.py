"""Neural-network functions: activations, losses, dropout, normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import compatible, merge_dims, text
from flowscope.ops.axes import as_axes, positive_axis
from flowscope.ops.build import apply, apply_many, unary
from flowscope.ops.casting import cast
from flowscope.ops.elementwise import (
    abs,
    add,
    exp,
    floor,
    log_sigmoid,
    maximum,
    multiply,
    negative,
    realdiv,
    rsqrt,
    sigmoid,
    softplus,
    square,
    squared_difference,
    subtract,
    tanh,
)
from flowscope.ops.flow import stop_gradient
from flowscope.ops.linalg import matmul
from flowscope.ops.reductions import reduce_mean, reduce_sum
from flowscope.ops.shaping import reshape, shape_of, transpose
from flowscope.ops.table import binary_op, check_kind, check_same, unary_op

__all__ = [
    "batch_normalization",
    "bias_add",
    "dropout",
    "elu",
    "embedding_lookup",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_poisson_loss",
    "log_sigmoid",
    "log_softmax",
    "moments",
    "relu",
    "relu6",
    "relu_layer",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "xw_plus_b",
    "zero_fraction",
]

# -- activations ----------------------------------------------------------------------------------

# fmt: off
_relu = unary_op(
    "relu", "Relu", "max(x, 0), element by element.", "xp.maximum({0}, 0)", "fi",
    lambda g, y, x: relu_grad(g, y), "y")
_relu6 = unary_op(
    "relu6", "Relu6", "min(max(x, 0), 6), element by element.", "xp.minimum(xp.maximum({0}, 0), 6)", "fi",
    lambda g, y, x: relu6_grad(g, y), "y")
_elu = unary_op(
    "elu", "Elu", "x where it is positive, else exp(x) - 1.",
    "xp.maximum({0}, 0) + xp.expm1(xp.minimum({0}, 0))", "f",
    lambda g, y, x: elu_grad(g, y), "y")
_softsign = unary_op(
    "softsign", "Softsign", "x / (|x| + 1), element by element.", "{0} / (xp.abs({0}) + 1)", "f",
    lambda g, y, x: realdiv(g, square(add(1.0, abs(x)))), "x")
relu_grad = binary_op(
    "relu_grad", "ReluGrad", "g where relu's output y is positive, else 0.", "{0} * ({1} > 0)", "fi",
    lambda g, dx, dy, y: (relu_grad(g, y), None), "b")
relu6_grad = binary_op(
    "relu6_grad", "Relu6Grad", "g where relu6's output y is between 0 and 6, else 0.",
    "{0} * (({1} > 0) & ({1} < 6))", "fi",
    lambda g, dx, dy, y: (relu6_grad(g, y), None), "b")
elu_grad = binary_op(
    "elu_grad", "EluGrad", "g where elu's output y is positive, else g * (y + 1).",
    "{0} * (xp.minimum({1}, 0) + 1)", "f",
    lambda g, dx, dy, y: (elu_grad(g, y), multiply(multiply(g, dy), cast(negative(y) > 0.0, g.dtype))),
    "ab")
# fmt: on

SELU_SCALE = 1.0507009873554804934193349852946
SELU_ALPHA = 1.6732632423543772848170429916717


@dataclass(frozen=True)
class LeakyRelu(Op):
    """x where it is positive, else alpha * x."""

    alpha: float = 0.2
    grad_reads: ClassVar[Any] = ("x",)

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(LeakyReluGrad(self.alpha), g, x),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return xp.where(x > 0, x, x * x.dtype.type(self.alpha))[()]


@dataclass(frozen=True)
class LeakyReluGrad(Op):
    """g where x is positive, else alpha * g."""

    alpha: float
    grad_reads: ClassVar[Any] = ("x",)

    def infer(self, dy: Spec, x: Spec) -> Spec:
        return x.like()

    def grad(self, g: Tensor, y: Tensor, dy: Tensor, x: Tensor) -> Any:
        return apply(self, g, x), None

    def kernel(self, xp: ArrayModule, dy: Array, x: Array) -> Array:
        return xp.where(x > 0, dy, dy * dy.dtype.type(self.alpha))[()]


def relu(features: Any, name: str | None = None) -> Tensor:
    """Returns max(features, 0), element by element."""
    return _relu(features, name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """Returns min(max(features, 0), 6), element by element."""
    return _relu6(features, name)


def elu(features: Any, name: str | None = None) -> Tensor:
    """Returns features where they are positive, else exp(features) - 1."""
    return _elu(features, name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """Returns the scaled elu that keeps mean 0 and variance 1.

    Source: Klambauer et al. 2017.
    """
    x = convert_to_tensor(features)
    with x.graph.name_scope(name or "Selu"):
        positive = maximum(x, 0.0)
        return multiply(SELU_SCALE, add(positive, multiply(SELU_ALPHA, _elu(subtract(x, positive)))))


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Returns features where they are positive, else alpha * features."""
    return unary(LeakyRelu(float(alpha)), features, name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """Returns features / (|features| + 1)."""
    return _softsign(features, name)


def swish(features: Any, name: str | None = None) -> Tensor:
    """Returns features * sigmoid(features)."""
    x = convert_to_tensor(features)
    return multiply(x, sigmoid(x), name or "swish")


# -- softmax and its losses -----------------------------------------------------------------------


def _stable(xp: ArrayModule, x: Array, axis: int) -> tuple[Array, Array]:
    """Returns x minus its largest along the axis, and the sum of their exponentials."""
    shifted = x - x.max(axis=axis, keepdims=True) if x.size else x
    return shifted, xp.exp(shifted).sum(axis=axis, keepdims=True, dtype=x.dtype)


@dataclass(frozen=True)
class Softmax(Op):
    """exp(x) divided by its sum along an axis."""

    axis: int = -1
    grad_reads: ClassVar[Any] = ("y",)

    def infer(self, x: Spec) -> Spec:
        return _with_axis(x, self.axis)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        total = reduce_sum(multiply(g, y), self.axis, keepdims=True)
        return (multiply(subtract(g, total), y),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        positive_axis(self.axis, x.ndim)
        shifted, total = _stable(xp, x, self.axis)
        return xp.exp(shifted) / total


@dataclass(frozen=True)
class LogSoftmax(Op):
    """log(softmax(x)) along an axis, without overflow."""

    axis: int = -1
    grad_reads: ClassVar[Any] = ("y",)

    def infer(self, x: Spec) -> Spec:
        return _with_axis(x, self.axis)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        total = reduce_sum(g, self.axis, keepdims=True)
        return (subtract(g, multiply(exp(y), total)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        positive_axis(self.axis, x.ndim)
        shifted, total = _stable(xp, x, self.axis)
        return shifted - xp.log(total)


def _with_axis(x: Spec, axis: int) -> Spec:
    check_kind(x.dtype, "f")
    if x.shape is not None:
        positive_axis(axis, len(x.shape))
    return x.like()


@dataclass(frozen=True)
class SoftmaxCrossEntropyWithLogits(Op):
    """Cross entropy between labels and softmax(logits), and its gradient for the logits.

    Shapes: logits [batch, classes], labels [batch, classes] -> loss [batch], backprop [batch, classes]
    """

    grad_reads: ClassVar[Any] = ("y", "logits")

    def infer(self, logits: Spec, labels: Spec) -> Any:
        check_same(logits, labels)
        check_kind(logits.dtype, "f")
        for s in (logits, labels):
            if s.rank not in (None, 2):
                raise InvalidArgumentError(f"expected logits and labels of rank 2, got {text(s.shape)}")
        if not compatible(logits.shape, labels.shape):
            raise InvalidArgumentError(
                f"expected labels of the logits' shape {text(logits.shape)}, got {text(labels.shape)}"
            )
        dims = merge_dims(merge_dims(logits.shape, labels.shape), (None, None))
        return Spec(logits.dtype, None if dims is None else dims[:1]), Spec(logits.dtype, dims)

    def grad(self, g: Any, y: Any, logits: Tensor, labels: Tensor) -> Any:
        """The backprop's own gradient makes the second order right: d(softmax) times what arrives."""
        from flowscope.ops.shaping import expand_axes

        loss, backprop = g
        to_logits = to_labels = None
        if loss is not None:
            column = expand_axes(loss, (-1,))
            to_logits = multiply(column, y[1])
            to_labels = negative(multiply(column, log_softmax(logits)))
        if backprop is not None:
            p = softmax(logits)
            second = multiply(p, subtract(backprop, reduce_sum(multiply(backprop, p), 1, keepdims=True)))
            to_logits = second if to_logits is None else add(to_logits, second)
            to_labels = negative(backprop) if to_labels is None else subtract(to_labels, backprop)
        return to_logits, to_labels

    def kernel(self, xp: ArrayModule, logits: Array, labels: Array) -> Any:
        if logits.shape != labels.shape or logits.ndim != 2:
            raise InvalidArgumentError(
                f"expected logits and labels of one shape, got {text(logits.shape)} and {text(labels.shape)}"
            )
        shifted, total = _stable(xp, logits, 1)
        loss = (labels * (xp.log(total) - shifted)).sum(axis=1, dtype=logits.dtype)
        return loss, xp.exp(shifted) / total - labels


@dataclass(frozen=True)
class SparseSoftmaxCrossEntropyWithLogits(Op):
    """Cross entropy between classes, given by number, and softmax(logits), and its gradient.

    Shapes: logits [batch, classes], labels [batch] -> loss [batch], backprop [batch, classes]
    Raises: InvalidArgumentError if a label is not in [0, classes).
    """

    grad_reads: ClassVar[Any] = ("y", "logits")

    def infer(self, logits: Spec, labels: Spec) -> Any:
        check_kind(logits.dtype, "f")
        if labels.dtype.kind not in "iu":
            raise DTypeError(f"expected integer labels, got {labels.dtype}")
        if logits.rank not in (None, 2) or labels.rank not in (None, 1):
            raise InvalidArgumentError(
                f"expected logits of rank 2 and labels of rank 1, got {logits} and {labels}"
            )
        rows = None if logits.shape is None else logits.shape[:1]
        if not compatible(rows, labels.shape):
            raise InvalidArgumentError(f"expected labels of shape {text(rows)}, got {text(labels.shape)}")
        n = (merge_dims(rows, labels.shape) or (None,))[0]
        classes = None if logits.shape is None else logits.shape[1]
        return Spec(logits.dtype, (n,)), Spec(logits.dtype, (n, classes))

    def grad(self, g: Any, y: Any, logits: Tensor, labels: Tensor) -> Any:
        from flowscope.ops.shaping import expand_axes

        loss, backprop = g
        to_logits = None
        if loss is not None:
            to_logits = multiply(expand_axes(loss, (-1,)), y[1])
        if backprop is not None:
            p = softmax(logits)
            second = multiply(p, subtract(backprop, reduce_sum(multiply(backprop, p), 1, keepdims=True)))
            to_logits = second if to_logits is None else add(to_logits, second)
        return to_logits, None

    def kernel(self, xp: ArrayModule, logits: Array, labels: Array) -> Any:
        from flowscope.ops.slicing import check_range

        if logits.ndim != 2 or labels.shape != logits.shape[:1]:
            raise InvalidArgumentError(
                f"expected labels of shape {text(logits.shape[:1])}, got {text(labels.shape)}"
            )
        check_range(labels, logits.shape[1])
        shifted, total = _stable(xp, logits, 1)
        rows = xp.arange(labels.size)
        loss = xp.log(total[:, 0]) - shifted[rows, labels]
        backprop = xp.exp(shifted) / total
        backprop[rows, labels] -= 1
        return loss, backprop


_SOFTMAX_LOSS, _SPARSE_LOSS = SoftmaxCrossEntropyWithLogits(), SparseSoftmaxCrossEntropyWithLogits()


def _axis(axis: Any, dim: Any) -> int:
    axes = as_axes(dim if axis is None else axis)
    return -1 if axes is None else axes[0]


def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Returns exp(logits) divided by its sum along an axis.

    Args:
        logits: A floating-point tensor.
        axis: The axis, the last by default.
        name: Name of the operation.
        dim: Old name of `axis`.
    """
    return unary(Softmax(_axis(axis, dim)), logits, name)


def log_softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Returns log(softmax(logits)) without overflow; the arguments are those of `softmax`."""
    return unary(LogSoftmax(_axis(axis, dim)), logits, name)


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """Returns the cross entropy between `labels` and softmax(logits).

    Args:
        labels: Probabilities of the classes, of the logits' shape.
        logits: Unnormalised log-probabilities.
        axis: The axis of the classes, the last by default.
        name: Name of the operation.
        dim: Old name of `axis`.

    Returns:
        The losses, of the logits' shape without that axis.
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, None if isinstance(labels, Tensor) else logits.dtype)
    name = name or "softmax_cross_entropy_with_logits"
    place = _axis(axis, dim)
    rank = logits.spec.rank
    if rank == 2 and positive_axis(place, 2) == 1:
        return apply_many(_SOFTMAX_LOSS, logits, labels, name=name)[0]
    if rank is None:
        raise InvalidArgumentError(f"expected logits of known rank, got {logits.spec}")
    last = positive_axis(place, rank)
    perm = [i for i in range(rank) if i != last] + [last]
    logits, labels = transpose(logits, perm), transpose(labels, perm)
    shape = shape_of(logits)
    flat = apply_many(_SOFTMAX_LOSS, _rows(logits, shape), _rows(labels, shape), name=name)[0]
    return reshape(flat, shape[:-1])


def _rows(x: Tensor, shape: Tensor) -> Tensor:
    from flowscope.ops.shaping import concat

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
    labels = stop_gradient(convert_to_tensor(labels, None if isinstance(labels, Tensor) else logits.dtype))
    return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, name)


def _check_named(sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise InvalidArgumentError("expected labels=... and logits=... by name, got something else")


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Returns the cross entropy between classes and softmax(logits).

    Args:
        _sentinel: Not used: labels and logits are given by name.
        labels: Numbers of the classes, in [0, classes).
        logits: Unnormalised log-probabilities, of labels' shape and one more axis.
        name: Name of the operation.

    Returns:
        The losses, of labels' shape.
    """
    _check_named(_sentinel, labels, logits)
    logits, labels = convert_to_tensor(logits), convert_to_tensor(labels)
    name = name or "SparseSoftmaxCrossEntropyWithLogits"
    if logits.spec.rank in (2, None):
        return apply_many(_SPARSE_LOSS, logits, labels, name=name)[0]
    if labels.spec.rank is not None and labels.spec.rank + 1 != logits.spec.rank:
        raise InvalidArgumentError(
            f"expected labels of rank {(logits.spec.rank or 0) - 1}, got {text(labels.spec.shape)}"
        )
    flat = apply_many(_SPARSE_LOSS, _rows(logits, shape_of(logits)), reshape(labels, [-1]), name=name)[0]
    return reshape(flat, shape_of(labels))


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Returns the cross entropy of independent yes/no questions, element by element, without overflow.

    Args:
        _sentinel: Not used: labels and logits are given by name.
        labels: Probabilities.
        logits: Unnormalised log-odds, of the same shape and dtype.
        name: Name of the operation.
    """
    _check_named(_sentinel, labels, logits)
    x = convert_to_tensor(logits)
    z = convert_to_tensor(labels, None if isinstance(labels, Tensor) else x.dtype)
    if not compatible(x.spec.shape, z.spec.shape):
        raise InvalidArgumentError(
            f"expected labels of the logits' shape {text(x.spec.shape)}, got {text(z.spec.shape)}"
        )
    name = name or "logistic_loss"
    with x.graph.name_scope(name) as scope:
        # softplus(x) - x * z = max(x, 0) - x * z + log(1 + exp(-|x|))
        return subtract(softplus(x), multiply(x, z), scope or name)


def weighted_cross_entropy_with_logits(
    targets: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Tensor:
    """Returns the sigmoid cross entropy in which positive answers count `pos_weight` times."""
    x = convert_to_tensor(logits)
    z = convert_to_tensor(targets, None if isinstance(targets, Tensor) else x.dtype)
    with x.graph.name_scope(name or "logistic_loss"):
        weight = add(1.0, multiply(subtract(convert_to_tensor(pos_weight, x.dtype), 1.0), z))
        return add(multiply(subtract(1.0, z), x), multiply(weight, softplus(negative(x))))


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Returns exp(log_input) - targets * log_input, with Stirling's approximation added if asked for."""
    from flowscope.ops.arrays import zeros_like
    from flowscope.ops.elementwise import greater_equal, log
    from flowscope.ops.selection import where

    c = convert_to_tensor(log_input)
    z = convert_to_tensor(targets, None if isinstance(targets, Tensor) else c.dtype)
    with c.graph.name_scope(name or "log_poisson_loss"):
        loss = subtract(exp(c), multiply(z, c))
        if not compute_full_loss:
            return loss
        large = greater_equal(z, 1.0)
        safe = where(large, z, add(zeros_like(z), 1.0))
        stirling = add(subtract(multiply(safe, log(safe)), safe), multiply(0.5, log(multiply(2 * np.pi, safe))))
        return add(loss, where(large, stirling, zeros_like(z)))


# -- layers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BiasAdd(Op):
    """x plus a vector along its last axis (or, "NCHW", its second).

    Shapes: x [..., n], bias [n] -> [..., n]
    """

    data_format: str = "NHWC"

    def infer(self, x: Spec, bias: Spec) -> Spec:
        check_same(x, bias)
        check_kind(x.dtype, "fiuc")
        if bias.rank not in (None, 1):
            raise InvalidArgumentError(f"expected a bias of rank 1, got {text(bias.shape)}")
        if x.shape is None:
            return x.like()
        if len(x.shape) < 2:
            raise InvalidArgumentError(f"expected rank 2 at least, got {text(x.shape)}")
        axis = self._axis(len(x.shape))
        if not compatible(bias.shape, x.shape[axis : axis + 1]):
            raise InvalidArgumentError(
                f"expected a bias of shape [{x.shape[axis]}], got {text(bias.shape)} for {text(x.shape)}"
            )
        n = x.shape[axis] if bias.shape is None or x.shape[axis] is not None else bias.shape[0]
        return Spec(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :]))

    def _axis(self, rank: int) -> int:
        return 1 if self.data_format == "NCHW" else rank - 1

    def grad(self, g: Tensor, y: Tensor, x: Tensor, bias: Tensor) -> Any:
        return g, apply(BiasAddGrad(self.data_format), g)

    def kernel(self, xp: ArrayModule, x: Array, bias: Array) -> Array:
        if x.ndim < 2 or bias.shape != (x.shape[self._axis(x.ndim)],):
            raise InvalidArgumentError(
                f"expected a bias that fits {text(x.shape)}, got {text(bias.shape)}"
            )
        if self.data_format == "NCHW":
            bias = bias.reshape((-1,) + (1,) * (x.ndim - 2))
        return x + bias


@dataclass(frozen=True)
class BiasAddGrad(Op):
    """The sum over all axes but the one of the bias.

    Shapes: [..., n] -> [n]
    """

    data_format: str = "NHWC"

    def infer(self, g: Spec) -> Spec:
        if g.shape is None:
            return Spec(g.dtype, (None,))
        return Spec(g.dtype, (g.shape[1 if self.data_format == "NCHW" else -1],))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        from flowscope.ops.arrays import zeros_like

        return (apply(BiasAdd(self.data_format), zeros_like(x), g),)

    def kernel(self, xp: ArrayModule, g: Array) -> Array:
        axis = 1 if self.data_format == "NCHW" else g.ndim - 1
        return g.sum(axis=tuple(i for i in range(g.ndim) if i != axis), dtype=g.dtype)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Returns `value` plus a vector along its last axis.

    Args:
        value: A tensor of rank 2 at least.
        bias: A vector.
        data_format: "NHWC", or "NCHW" for a bias along the second axis.
        name: Name of the operation.
    """
    x = convert_to_tensor(value)
    if data_format not in (None, "NHWC", "NCHW"):
        raise InvalidArgumentError(f"expected data_format NHWC or NCHW, got {data_format!r}")
    return apply(BiasAdd(data_format or "NHWC"), x, convert_to_tensor(bias), name=name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Returns matmul(x, weights) + biases."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "xw_plus_b") as scope:
        return bias_add(matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Returns relu(matmul(x, weights) + biases)."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "relu_layer") as scope:
        return relu(bias_add(matmul(x, weights), biases), name=scope)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Returns half the sum of the squares of all elements."""
    return unary(_L2_LOSS, t, name)


@dataclass(frozen=True)
class L2Loss(Op):
    """Half the sum of the squares of all elements.

    Shapes: any -> []
    """

    grad_reads: ClassVar[Any] = ("x",)

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return Spec(x.dtype, ())

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (multiply(x, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return (xp.square(x).sum(dtype=x.dtype) / 2)[()]


_L2_LOSS = L2Loss()


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Returns `x` with elements set to 0 at random, the others scaled up so that the mean stays.

    Args:
        x: A floating-point tensor.
        keep_prob: The probability that an element is kept.
        noise_shape: Shape of the random choices, broadcast to x's; x's own by default.
        seed: Seed of the op.
        name: Name scope of the operations.
        rate: 1 - keep_prob, in its place.

    Raises:
        InvalidArgumentError: unless exactly one of keep_prob and rate is given, and is a probability.
    """
    from flowscope.ops.random import random_uniform

    x = convert_to_tensor(x)
    if (keep_prob is None) == (rate is None):
        raise InvalidArgumentError("expected one of keep_prob and rate, got both or none")
    check_kind(x.dtype, "f")
    keep = 1 - rate if keep_prob is None else keep_prob
    known = get_static_value(keep)
    if known is not None:
        if not 0 < known <= 1:
            raise InvalidArgumentError(f"expected a keep_prob in (0, 1], got {known}")
        if known == 1:
            return x
    with x.graph.name_scope(name or "dropout"):
        keep = convert_to_tensor(keep, None if isinstance(keep, Tensor) else x.dtype)
        sizes = shape_of(x) if noise_shape is None else noise_shape
        chance = random_uniform(sizes, dtype=x.dtype, seed=seed)
        return multiply(realdiv(x, keep), floor(add(chance, keep)))


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance along axes.

    Args:
        x: A tensor.
        axes: The axes.
        shift: Not used.
        name: Name scope of the operations.
        keep_dims: Old name of `keepdims`.
        keepdims: Whether the reduced axes stay, of length 1.
    """
    from flowscope.ops.shaping import squeeze_axes

    x = convert_to_tensor(x)
    places = as_axes(axes)
    with x.graph.name_scope(name or "moments"):
        mean = reduce_mean(x, places, keepdims=True, name="mean")
        variance = reduce_mean(
            squared_difference(x, stop_gradient(mean)), places, keepdims=True, name="variance"
        )
        if keepdims or keep_dims:
            return mean, variance
        return squeeze_axes(mean, places), squeeze_axes(variance, places)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = None
) -> Tensor:
    """Returns (x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be None.

    Source: Ioffe & Szegedy 2015.
    """
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "batchnorm"):
        factor = rsqrt(add(variance, variance_epsilon))
        if scale is not None:
            factor = multiply(factor, scale)
        shift = negative(multiply(mean, factor))
        if offset is not None:
            shift = add(offset, shift)
        return add(multiply(x, factor), shift)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Returns x / sqrt(max(sum(x * x), epsilon)) along an axis (or several)."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "l2_normalize"):
        squares = reduce_sum(square(x), dim if axis is None else axis, keepdims=True)
        return multiply(x, rsqrt(maximum(squares, epsilon)))


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Returns which part of the elements is 0, as float32."""
    from flowscope.ops.elementwise import equal

    x = convert_to_tensor(value)
    with x.graph.name_scope(name or "zero_fraction"):
        return reduce_mean(cast(equal(x, 0), dtypes.float32))


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Returns the rows of `params` that `ids` name.

    Args:
        params: A tensor or variable, or a list with one.
        ids: Integers.
        partition_strategy: Not used: there is one part.
        name: Name of the operation.
        validate_indices: Not used: they are always checked.
        max_norm: Rows are scaled down to this norm at most.
    """
    from flowscope.ops.selection import clip_by_norm
    from flowscope.ops.slicing import gather

    if isinstance(params, list | tuple):
        if len(params) != 1:
            raise InvalidArgumentError(f"expected one table, got {len(params)}")
        params = params[0]
    rows = gather(params, ids, name=name or "embedding_lookup")
    return rows if max_norm is None else clip_by_norm(rows, max_norm, [-1])


@dataclass(frozen=True)
class InTopK(Op):
    """Whether each target is among its row's k largest predictions; those equal to the k-th count.

    Shapes: predictions [batch, classes], targets [batch] -> [batch]
    """

    k: int
    is_differentiable: ClassVar[bool] = False

    def infer(self, predictions: Spec, targets: Spec) -> Spec:
        check_kind(predictions.dtype, "f")
        check_kind(targets.dtype, "i")
        if predictions.rank not in (None, 2) or targets.rank not in (None, 1):
            raise InvalidArgumentError(
                f"expected predictions of rank 2 and targets of rank 1, got {predictions} and {targets}"
            )
        rows = None if predictions.shape is None else predictions.shape[:1]
        return Spec(dtypes.bool_, merge_dims(merge_dims(rows, targets.shape), (None,)))

    def kernel(self, xp: ArrayModule, predictions: Array, targets: Array) -> Array:
        inside = (targets >= 0) & (targets < predictions.shape[1])
        own = predictions[xp.arange(targets.size), xp.where(inside, targets, 0)]
        above = (predictions > own[:, None]).sum(axis=1)
        return inside & xp.isfinite(own) & (above < self.k)


def in_top_k(predictions: Any, targets: Any, k: int, name: str | None = None) -> Tensor:
    """Returns whether each target is among its row's k largest predictions."""
    return apply(
        InTopK(int(k)),
        convert_to_tensor(predictions),
        convert_to_tensor(targets, None, None, dtypes.int32),
        name=name,
    )


@dataclass(frozen=True)
class TopK(Op):
    """The k largest of each row, in falling order, and their positions; the first one at ties.

    Shapes: [..., n] -> values [..., k], indices [..., k]
    """

    k: int
    grad_reads: ClassVar[Any] = ("y",)

    def infer(self, x: Spec) -> Any:
        check_kind(x.dtype, "fiu")
        if x.shape == () or (x.shape and x.shape[-1] is not None and x.shape[-1] < self.k):
            raise InvalidArgumentError(f"expected a last axis of {self.k} at least, got {text(x.shape)}")
        dims = None if x.shape is None else (*x.shape[:-1], self.k)
        return Spec(x.dtype, dims), Spec(dtypes.int32, dims)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        if x.spec.shape is None or x.spec.shape[-1] is None:
            raise InvalidArgumentError(f"expected a known last axis for the gradient, got {x.spec}")
        from flowscope.ops.selection import one_hot
        from flowscope.ops.shaping import expand_axes

        places = one_hot(y[1], x.spec.shape[-1], dtype=x.dtype)
        return (reduce_sum(multiply(expand_axes(g[0], (-1,)), places), -2),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        if x.ndim == 0 or x.shape[-1] < self.k:
            raise InvalidArgumentError(f"expected a last axis of {self.k} at least, got {text(x.shape)}")
        # Sorting the mirrored row keeps the first of equal ones in front.
        order = xp.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., : self.k]
        places = x.shape[-1] - 1 - order
        return xp.take_along_axis(x, places, axis=-1), places.astype(xp.int32)


def top_k(input: Any, k: int = 1, sorted: bool = True, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns the k largest along the last axis and their positions.

    Args:
        input: A tensor of real numbers.
        k: How many.
        sorted: Not used: they always come in falling order.
        name: Name of the operation.
    """
    values, indices = apply_many(TopK(int(k)), convert_to_tensor(input), name=name or "TopKV2")
    return values, indices


