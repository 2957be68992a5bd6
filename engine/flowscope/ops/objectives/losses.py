"""Losses: what training makes small. Each one is weighted, reduced and put into a collection.

They are computed in float32 (float64 for float64) and returned in the dtype of the predictions.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.arrays import ones_like, range as range_, rank, size, zeros_like
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import bound
from flowscope.ops.core.flow import stop_gradient
from flowscope.ops.math.arithmetic import add_n
from flowscope.ops.math.elementwise import (
    abs,
    add,
    div_no_nan,
    greater,
    log,
    maximum,
    minimum,
    multiply,
    not_equal,
    realdiv,
    square,
    squared_difference,
    subtract,
)
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.nn.activations import relu
from flowscope.ops.objectives.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from flowscope.ops.objectives.weights import as_real, broadcast_weights, same_ranks
from flowscope.ops.state.graph_keys import GraphKeys

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


class Reduction:
    """How losses per element are reduced to one number: the names."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Returns all names of reductions."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises InvalidArgumentError unless it names a reduction."""
        if key not in cls.all():
            raise expected(f"a reduction of {cls.all()}", repr(key))


F = TypeVar("F", bound=Callable[..., Any])
_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


# -- what losses share ----------------------------------------------------------------------------


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Puts a loss into a collection."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """Returns the losses of the default graph, of a name scope if it is given."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Returns the losses that regularizers have made."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """Returns the sum of the regularizers' losses."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name) if losses else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """Returns the sum of all losses, by default with the regularizers'.

    Raises:
        InvalidArgumentError: if there is none.
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return add_n(losses, name)


def _number_present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """Returns how many elements have a weight that is not 0."""
    if not per_batch and weights.spec.shape == ():
        return multiply(cast(size(losses), losses.dtype), _is_present(weights))
    present = broadcast_weights(_is_present(weights), losses)
    if per_batch:
        return reduce_sum(present, _inner_axes(losses), keepdims=True)
    return reduce_sum(present)


def _is_present(weight: Tensor) -> Any:
    known = weight.spec.constant
    if known is not None and not known.ndim:
        return float(known != 0)
    return cast(not_equal(weight, zeros_like(weight)), weight.dtype)


def _inner_axes(x: Tensor) -> Any:
    n = x.spec.rank
    return range_(1, rank(x)) if n is None else list(range(1, n))


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns losses times weights, reduced.

    Args:
        losses: A loss per element.
        weights: A number, or a tensor of the losses' rank, with lengths of 1 where it repeats.
        scope: Name scope of the operations.
        loss_collection: Where the result is put; None for nowhere.
        reduction: One of `Reduction`: nothing is reduced, or the sum is divided by 1, by the number
            of elements, by the sum of the weights, or by the number of weights that are not 0.
    """
    Reduction.validate(reduction)
    given = convert_to_tensor(losses)
    with given.graph.name_scope(scope or "weighted_loss"):
        wide = as_real(given)
        w = as_real(weights, wide.dtype)
        loss = multiply(wide, broadcast_weights(w, wide) if w.spec.shape != () else w)
        if reduction != Reduction.NONE:
            loss = _reduced(loss, wide, w, reduction)
        loss = cast(loss, given.dtype)
        add_loss(loss, loss_collection)
        return loss


def _reduced(loss: Tensor, losses: Tensor, weights: Tensor, reduction: str) -> Tensor:
    total = reduce_sum(loss)
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.MEAN:
        return div_no_nan(total, reduce_sum(multiply(ones_like(losses), weights)), "value")
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return div_no_nan(total, cast(size(losses), losses.dtype), "value")
    return div_no_nan(total, _number_present(losses, weights), "value")


def weighted_loss(scope: str, *pair: str) -> Callable[[F], F]:
    """Declares a loss: its body returns a loss per element, which `compute_weighted_loss` reduces.

    A body may return (losses, weights) where weights need another shape.

    Args:
        scope: Default name of the scope in which the body adds its operations.
        pair: Names of two arguments, labels and predictions, which the body gets as floating-point
            tensors of one dtype and shape.
    """

    def declare(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            given = bound(function, signature, args, kwargs)
            known = given.arguments
            if pair:
                y, p = pair
                known[y], known[p] = _pair(known[y], known[p], p)
            else:
                known["logits"] = convert_to_tensor(known["logits"])
            graph = known[pair[1] if pair else "logits"].graph
            with graph.name_scope(known["scope"] or scope) as inner:
                found = function(*given.args, **given.kwargs)
                losses, weights = found if isinstance(found, tuple) else (found, known["weights"])
                return compute_weighted_loss(
                    losses, weights, inner, known["loss_collection"], known["reduction"]
                )

        return call  # type: ignore[return-value]

    return declare


def _pair(labels: Any, predictions: Any, what: str = "predictions") -> tuple[Tensor, Tensor]:
    """Returns both as floating-point tensors of one dtype; raises unless they are of one shape."""
    if labels is None or predictions is None:
        raise expected(f"labels and {what}", "None")
    p = as_real(predictions)
    y = as_real(labels, p.dtype)
    if not compatible(y.spec.shape, p.spec.shape):
        raise expected(f"labels and {what} of one shape", y.spec.shape, p.spec.shape)
    return y, p


# -- the losses -----------------------------------------------------------------------------------


@weighted_loss("absolute_difference", "labels", "predictions")
def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted loss |predictions - labels|; see `compute_weighted_loss`."""
    return abs(subtract(predictions, labels))


@weighted_loss("cosine_distance_loss", "labels", "predictions")
def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: Any = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
    dim: Any = None,
) -> Tensor:
    """Returns the weighted loss 1 - labels . predictions, of vectors of length 1 along an axis.

    Args:
        labels: Vectors.
        predictions: Vectors.
        axis: The axis along which they lie.
        weights: See `compute_weighted_loss`, as the rest.
        scope: Name scope of the operations.
        loss_collection: Where the result is put.
        reduction: How elements become one.
        dim: Old name of `axis`.
    """
    place = dim if axis is None else axis
    if place is None:
        raise expected("an axis", "None")
    return subtract(1.0, reduce_sum(multiply(predictions, labels), [int(place)], keepdims=True))


@weighted_loss("hinge_loss", "labels", "logits")
def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted loss max(0, 1 - (2 labels - 1) logits), for labels of 0 and 1."""
    signs = subtract(multiply(2.0, labels), 1.0)
    return relu(subtract(1.0, multiply(signs, logits)))


@weighted_loss("huber_loss", "labels", "predictions")
def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted loss that is half the square of errors up to `delta`, then linear."""
    error = abs(subtract(predictions, labels))
    near = minimum(error, delta)
    return add(multiply(0.5, multiply(near, near)), multiply(delta, subtract(error, near)))


@weighted_loss("log_loss", "labels", "predictions")
def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted loss -labels log(p) - (1 - labels) log(1 - p), `epsilon` inside logs."""
    hit = multiply(labels, log(add(predictions, epsilon)))
    miss = multiply(subtract(1.0, labels), log(add(subtract(1.0, predictions), epsilon)))
    return subtract(-hit, miss)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """Returns the mean square of how errors differ, over the pairs of elements of each example.

    Args:
        labels: One example along the first axis each.
        predictions: Likewise.
        weights: A number, or one per example.
        scope: Name scope of the operations.
        loss_collection: Where the result is put.
    """
    y, p = _pair(labels, predictions)
    with p.graph.name_scope(scope or "mean_pairwise_squared_error"):
        w = as_real(weights, p.dtype)
        errors = subtract(p, y)
        axes = _inner_axes(errors)
        count = _number_present(errors, w, per_batch=True)
        others = maximum(subtract(count, 1.0), 0.0)
        squares = reduce_sum(square(errors), axes, keepdims=True)
        first = multiply(2.0, div_no_nan(squares, others))
        totals = reduce_sum(errors, axes, keepdims=True)
        second = multiply(2.0, div_no_nan(square(totals), multiply(count, others)))
        loss = reduce_sum(multiply(subtract(first, second), w))
        mean = where(greater(reduce_sum(count), 0.0), loss, zeros_like(loss), name="value")
        add_loss(mean, loss_collection)
        return mean


@weighted_loss("mean_squared_error", "labels", "predictions")
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted loss (predictions - labels)^2; see `compute_weighted_loss`.

    Example:
        >>> fs.Session().run(fs.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0]))
        np.float32(2.0)
    """
    return squared_difference(predictions, labels)


@weighted_loss("sigmoid_cross_entropy_loss")
def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted sigmoid cross entropy.

    Args:
        multi_class_labels: Numbers in [0, 1], of the logits' shape.
        logits: Unnormalised log-odds.
        weights: See `compute_weighted_loss`, as the rest.
        label_smoothing: Labels become (1 - this) labels + this / 2.
        scope: Name scope of the operations.
        loss_collection: Where the result is put.
        reduction: How elements become one.
    """
    y = cast(convert_to_tensor(multi_class_labels), logits.dtype)
    if label_smoothing > 0:
        y = add(multiply(y, 1 - label_smoothing), 0.5 * label_smoothing)
    return sigmoid_cross_entropy_with_logits(labels=y, logits=logits, name="xentropy")


@weighted_loss("softmax_cross_entropy_loss")
def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted softmax cross entropy; no gradient reaches the labels.

    Args:
        onehot_labels: Probabilities of the classes, of the logits' shape.
        logits: Unnormalised log-probabilities [..., classes].
        weights: One per example, see `compute_weighted_loss`, as the rest.
        label_smoothing: Labels become (1 - this) labels + this / classes.
        scope: Name scope of the operations.
        loss_collection: Where the result is put.
        reduction: How elements become one.
    """
    y = cast(convert_to_tensor(onehot_labels), logits.dtype)
    if label_smoothing > 0:
        share = _share(label_smoothing, y)
        y = add(multiply(y, 1 - label_smoothing), share)
    return softmax_cross_entropy_with_logits_v2(
        labels=stop_gradient(y), logits=logits, name="xentropy"
    )


def _share(number: float, y: Tensor) -> Any:
    """Returns a number divided by the length of y's last axis."""
    if y.spec.shape and y.spec.shape[-1] is not None:
        return number / y.spec.shape[-1]
    return realdiv(convert_to_tensor(number, y.dtype), cast(shape_of(y)[-1], y.dtype))


@weighted_loss("sparse_softmax_cross_entropy_loss")
def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Returns the weighted softmax cross entropy for classes given by number.

    Args:
        labels: Numbers of the classes.
        logits: Unnormalised log-probabilities, of labels' shape and one more axis.
        weights: One per example, see `compute_weighted_loss`, as the rest.
        scope: Name scope of the operations.
        loss_collection: Where the result is put.
        reduction: How elements become one.
    """
    y, logits, w = same_ranks(labels, logits, weights, expected_rank_diff=1)
    losses = sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits, name="xentropy")
    return losses, w  # type: ignore[return-value]
