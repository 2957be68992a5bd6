"""Metrics over many steps: means and errors. Each is a pair (value, update_op).

The update op takes one batch into account, in local variables, and returns the new value; the value
tensor only reads them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.arrays import ones_like, size, zeros, zeros_like
from flowscope.ops.array.selection import where
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import bound
from flowscope.ops.linalg.matrices import diag_part
from flowscope.ops.math.elementwise import (
    abs,
    add,
    div_no_nan,
    equal,
    greater,
    less,
    maximum,
    multiply,
    not_equal,
    realdiv,
    sqrt,
    square,
    subtract,
)
from flowscope.ops.math.reductions import reduce_mean, reduce_sum
from flowscope.ops.objectives.confusion import confusion_matrix
from flowscope.ops.objectives.weights import broadcast_weights, flat, same_ranks
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.scatters import scatter_add
from flowscope.ops.state.variable_scope import variable_scope
from flowscope.ops.state.variables import Variable

__all__ = [
    "accuracy",
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_per_class_accuracy",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "root_mean_squared_error",
]

F = TypeVar("F", bound=Callable[..., Any])
#: What a metric returns.
Pair = tuple[Tensor, Any]
Collections = str | list[str] | tuple[str, ...] | None


# -- what metrics share ---------------------------------------------------------------------------


def metric_variable(shape: Any, dtype: Any, name: str) -> Variable:
    """Returns a local variable of zeros."""
    keys = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return Variable(zeros(shape, dtype), trainable=False, collections=keys, name=name)


def metric(scope: str | Callable[..., str]) -> Callable[[F], F]:
    """Declares a metric: its body returns (value, update), and they are put into collections.

    Args:
        scope: Default name of the variable scope, or a function of the arguments that returns it.
    """

    def declare(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            known = bound(function, signature, args, kwargs).arguments
            default = scope if isinstance(scope, str) else scope(**known)
            with variable_scope(known["name"], default):
                found = function(*args, **kwargs)
            graph = get_default_graph()
            for keys, what in zip(
                (known["metrics_collections"], known["updates_collections"]), found
            ):
                if keys:
                    graph.add_to_collections([keys] if isinstance(keys, str) else list(keys), what)
            return found

        return call  # type: ignore[return-value]

    return declare


def as_float(x: Any) -> Tensor:
    """Returns numbers or bools as float32."""
    return cast(convert_to_tensor(x), dtypes.float32)


def ratio(part: Any, whole: Any, name: str | None = None) -> Tensor:
    """Returns part / whole, 0 where the whole is not above 0."""
    return div_no_nan(part, maximum(whole, 0.0), name)


def check_alike(labels: Tensor, predictions: Tensor) -> None:
    """Raises InvalidArgumentError unless both can have one shape."""
    if not compatible(labels.spec.shape, predictions.spec.shape):
        raise expected(
            "labels and predictions of one shape", labels.spec.shape, predictions.spec.shape
        )


def matched(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """Returns labels, predictions and weights, of matching ranks and shapes."""
    y, p, w = same_ranks(labels, predictions, weights)
    check_alike(y, p)
    return y, p, w


def _averaged(values: Any, weights: Any) -> tuple[Tensor, Any]:
    """Adds up a batch; returns the mean so far as (value, update)."""
    x = as_float(values)
    total = metric_variable([], dtypes.float32, "total")
    count = metric_variable([], dtypes.float32, "count")
    if weights is None:
        number = cast(size(x), dtypes.float32)
    else:
        x, _, w = same_ranks(x, x, weights)
        shares = broadcast_weights(as_float(w), x)
        x = multiply(x, shares)
        number = reduce_sum(shares)
    value = ratio(total.value(), count.value(), "value")
    new_total, new_count = total.assign_add(reduce_sum(x)), count.assign_add(number)
    return value, ratio(new_total, new_count, "update_op")


@metric("mean")
def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean of all values of all updates.

    Args:
        values: Numbers.
        weights: What each counts: a number, or a tensor of the values' rank that is broadcast.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update op.
        name: Name scope of variables and operations.
    """
    return _averaged(values, weights)


@metric("accuracy")
def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns how often predictions are equal to labels; see `mean` for the rest."""
    y, p, w = matched(labels, predictions, weights)
    hits = equal(cast(p, y.dtype), y)
    return _averaged(hits, w)


@metric("mean_absolute_error")
def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean of |predictions - labels|; see `mean` for the rest."""
    y, p, w = matched(as_float(labels), as_float(predictions), weights)
    return _averaged(abs(subtract(p, y)), w)


@metric("mean_squared_error")
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean of (predictions - labels)^2; see `mean` for the rest."""
    y, p, w = matched(as_float(labels), as_float(predictions), weights)
    return _averaged(square(subtract(y, p)), w)


@metric("root_mean_squared_error")
def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the root of the mean of (predictions - labels)^2; see `mean` for the rest."""
    y, p, w = matched(as_float(labels), as_float(predictions), weights)
    value, update = _averaged(square(subtract(y, p)), w)
    return sqrt(value), sqrt(update)


@metric("mean_relative_error")
def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean of |predictions - labels| / normalizer, where that is not 0; see `mean`."""
    y, p, w = matched(as_float(labels), as_float(predictions), weights)
    p, norm, _ = matched(p, as_float(normalizer), None)
    is_zero = equal(norm, zeros_like(norm))
    errors = where(is_zero, zeros_like(y), realdiv(abs(subtract(y, p)), norm))
    return _averaged(errors, w)


@metric("mean_cosine_distance")
def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean of 1 - labels . predictions, of vectors of length 1 along axis `dim`.

    The rest as for `mean`.
    """
    y, p, w = matched(as_float(labels), as_float(predictions), weights)
    products = reduce_sum(multiply(p, y), [dim], keepdims=True)
    value, update = _averaged(products, w)
    return subtract(1.0, value), subtract(1.0, update)


@metric("percentage_below_threshold")
def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns which part of the values is below a threshold; see `mean` for the rest."""
    x = convert_to_tensor(values)
    return _averaged(less(x, threshold), weights)


@metric("mean")
def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean over all updates element by element; see `mean` for the rest."""
    x = as_float(values)
    if not x.spec.is_static:
        raise expected("values of known shape", x.spec)
    total = metric_variable(x.spec.shape, dtypes.float32, "total_tensor")
    count = metric_variable(x.spec.shape, dtypes.float32, "count_tensor")
    number = ones_like(x)
    if weights is not None:
        x, _, w = same_ranks(x, x, weights)
        shares = broadcast_weights(as_float(w), x)
        x, number = multiply(x, shares), multiply(number, shares)
    value = ratio(total.value(), count.value(), "value")
    new_total, new_count = total.assign_add(x), count.assign_add(number)
    return value, ratio(new_total, new_count, "update_op")


# -- classes --------------------------------------------------------------------------------------


@metric("mean_iou")
def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean over classes of intersection over union; the update op is the matrix.

    Args:
        labels: True classes, integers from 0 on.
        predictions: Classes that were predicted.
        num_classes: Number of classes.
        weights: What each example counts, see `mean` for the rest.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update op.
        name: Name scope of variables and operations.
    """
    total = metric_variable([num_classes] * 2, dtypes.float64, "total_confusion_matrix")
    value = _mean_iou(total.value())
    y, p, w = matched(labels, predictions, weights)
    shares = None if w is None else broadcast_weights(cast(w, dtypes.float64), p)
    batch = confusion_matrix(y, p, num_classes, dtypes.float64, weights=shares)
    return value, total.assign_add(batch, name="update_op")


def _mean_iou(matrix: Tensor) -> Tensor:
    hits = cast(diag_part(matrix), dtypes.float32)
    both = add(reduce_sum(matrix, 0), reduce_sum(matrix, 1))
    union = subtract(cast(both, dtypes.float32), hits)
    present = cast(not_equal(union, 0.0), dtypes.float32)
    shares = realdiv(hits, where(greater(union, 0.0), union, ones_like(union)))
    return div_no_nan(reduce_sum(shares), reduce_sum(present), "mean_iou")


@metric("mean_accuracy")
def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean over classes of how often each was found; see `mean_iou` for the rest."""
    y, p, w = matched(labels, predictions, weights)
    places = flat(cast(y, dtypes.int64))
    total = metric_variable([num_classes], dtypes.float32, "total")
    count = metric_variable([num_classes], dtypes.float32, "count")
    hits = cast(equal(flat(cast(p, dtypes.int64)), places), dtypes.float32)
    number = ones_like(hits)
    if w is not None:
        shares = flat(broadcast_weights(as_float(w), p))
        hits, number = multiply(hits, shares), multiply(number, shares)
    value = reduce_mean(ratio(count.value(), total.value()), name="mean_accuracy")
    new_total = scatter_add(total, places, number)
    new_count = scatter_add(count, places, hits)
    return value, ratio(new_count, new_total, "update_op")
