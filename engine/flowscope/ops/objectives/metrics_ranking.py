"""Metrics of rankings: how many of an example's classes stand among the k best.

Labels are the classes of each example: integers [..., number], or a sparse tensor of them where the
number varies. They are sets: a class that is named twice counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import ones_like, range as range_
from flowscope.ops.array.shaping import expand_axes, shape_of
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import (
    add,
    div_no_nan,
    equal,
    logical_and,
    logical_not,
    minimum,
    multiply,
    realdiv,
)
from flowscope.ops.math.reductions import reduce_any, reduce_sum
from flowscope.ops.math.scans import cumsum
from flowscope.ops.nn.top_k import top_k
from flowscope.ops.objectives.metrics import (
    Collections,
    Pair,
    as_float,
    metric,
    metric_variable,
    ratio,
)
from flowscope.ops.objectives.weights import broadcast_weights
from flowscope.ops.sparse.conversion import sparse_tensor_to_dense
from flowscope.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue, as_sparse

__all__ = [
    "average_precision_at_k",
    "precision_at_k",
    "precision_at_top_k",
    "recall_at_k",
    "recall_at_top_k",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
]


class _Sets:
    """The classes of each example and those that were predicted for it, k of them, best first.

    Attributes:
        hits: Which predictions are among the labels, [..., k].
        wanted: Which labels count: those of sparse tensors that are there, each class once.
        found: Which labels are among the predictions.
    """

    def __init__(self, labels: Any, best: Tensor, class_id: int | None) -> None:
        classes, is_there = _dense(labels, best)
        pairs = equal(expand_axes(best, (-1,)), expand_axes(classes, (-2,)))
        pairs = logical_and(pairs, expand_axes(is_there, (-2,)))
        self.hits = reduce_any(pairs, -1)
        self.found = reduce_any(pairs, -2)
        self.wanted = logical_and(is_there, logical_not(_repeats(classes, is_there)))
        self.best, self.classes, self.is_there = best, classes, is_there
        self.is_sparse = isinstance(labels, SparseTensor | SparseTensorValue)
        self.class_id = class_id
        if class_id is not None:
            self._only(class_id)

    def _only(self, class_id: int) -> None:
        is_best = equal(self.best, constant(class_id, dtypes.int64))
        self.hits = logical_and(self.hits, is_best)
        self.misses = logical_and(logical_not(self.hits), is_best)
        self.wanted = logical_and(
            self.wanted, equal(self.classes, constant(class_id, dtypes.int64))
        )

    def true_positives(self) -> Tensor:
        """Returns how many predictions of each example are right."""
        return reduce_sum(cast(self.hits, dtypes.float32), -1)

    def false_positives(self) -> Tensor:
        """Returns how many are wrong."""
        wrong = getattr(self, "misses", None)
        return reduce_sum(as_float(logical_not(self.hits) if wrong is None else wrong), -1)

    def false_negatives(self) -> Tensor:
        """Returns how many classes of each example were not predicted."""
        return reduce_sum(as_float(logical_and(self.wanted, logical_not(self.found))), -1)

    def count(self) -> Tensor:
        """Returns how many classes each example has; in a dense tensor repeats count."""
        return reduce_sum(as_float(self.wanted if self.is_sparse else self.is_there), -1)


def _dense(labels: Any, best: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the classes in a dense tensor, and which of its elements are classes."""
    if isinstance(labels, SparseTensor | SparseTensorValue):
        x = as_sparse(labels)
        x = x.with_values(cast(x.values, dtypes.int64))
        there = x.with_values(ones_like(x.values, dtypes.bool_))
        return sparse_tensor_to_dense(x), sparse_tensor_to_dense(there)
    y = cast(convert_to_tensor(labels), dtypes.int64)
    ranks = (y.spec.rank, best.spec.rank)
    if None not in ranks and ranks[0] == ranks[1] - 1:  # type: ignore[operator]
        y = expand_axes(y, (-1,))
    return y, ones_like(y, dtypes.bool_)


def _repeats(classes: Tensor, is_there: Tensor) -> Tensor:
    """Returns which labels were named before in the same example."""
    same = equal(expand_axes(classes, (-1,)), expand_axes(classes, (-2,)))
    places = range_(shape_of(classes)[-1])
    before = expand_axes(places, (-1,)) > expand_axes(places, (0,))
    return reduce_any(logical_and(logical_and(same, before), expand_axes(is_there, (-2,))), -1)


def _best(predictions: Any, k: int) -> Tensor:
    x = convert_to_tensor(predictions)
    return cast(top_k(x, k).indices, dtypes.int64)


def _summed(counts: Tensor, weights: Any) -> Tensor:
    counts = cast(counts, dtypes.float64)
    if weights is None:
        return reduce_sum(counts)
    shares = cast(convert_to_tensor(weights), dtypes.float64)
    return reduce_sum(multiply(counts, broadcast_weights(shares, counts)))


def _named(what: str, k: int | None, class_id: int | None) -> str:
    of_class = "" if class_id is None else f"_class{class_id}"
    return f"{what}_at_{'k' if k is None else k}{of_class}"


def _scope(what: str) -> Callable[..., str]:
    """Returns the default name of a metric's scope, by its arguments."""
    return lambda k, class_id, **_: _named(what, k, class_id)


def _shares(sets: _Sets, other: str, k: int | None, weights: Any) -> tuple[Tensor, Tensor]:
    """Returns (value, update) of the share of true positives; NaN as long as there is nothing."""
    names = [_named(n, k, sets.class_id) for n in ("true_positive", other.removesuffix("s"))]
    hits, others = (metric_variable([], dtypes.float64, n) for n in names)
    value = realdiv(hits.value(), add(hits.value(), others.value()), "value")
    new_hits = hits.assign_add(_summed(sets.true_positives(), weights))
    new_others = others.assign_add(_summed(getattr(sets, other)(), weights))
    return value, realdiv(new_hits, add(new_hits, new_others), "update_op")


@metric(_scope("recall"))
def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns which part of the classes stands among the k best of their examples.

    Args:
        labels: Classes of each example, dense [..., number] (or [...] for one) or sparse.
        predictions: A number per class [..., classes], the higher the better.
        k: How many are taken.
        class_id: The only class that counts; all by default.
        weights: What each example counts: a number, or a tensor that is broadcast.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update op.
        name: Name scope of variables and operations.
    """
    sets = _Sets(labels, _best(predictions, k), class_id)
    return _shares(sets, "false_negatives", k, weights)


@metric(_scope("recall"))
def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the same as `recall_at_k` for predictions that are given as classes [..., k]."""
    best = cast(convert_to_tensor(predictions_idx), dtypes.int64)
    sets = _Sets(labels, best, class_id)
    return _shares(sets, "false_negatives", k, weights)


@metric(_scope("precision"))
def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns which part of the k best is right; the arguments are those of `recall_at_k`."""
    sets = _Sets(labels, _best(predictions, k), class_id)
    return _shares(sets, "false_positives", k, weights)


sparse_precision_at_k = precision_at_k


@metric(_scope("precision"))
def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the same as `precision_at_k` for predictions that are given as classes [..., k]."""
    best = cast(convert_to_tensor(predictions_idx), dtypes.int64)
    sets = _Sets(labels, best, class_id)
    return _shares(sets, "false_positives", k, weights)


@metric(lambda k, **_: f"average_precision_at_{k}")
def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the mean over examples of the average precision at the places of right predictions.

    The arguments are those of `recall_at_k`.
    """
    if k < 1:
        raise expected("k of 1 at least", k)
    scores = _average_precision(_Sets(labels, _best(predictions, k), None), k)
    number = ones_like(scores)
    most = metric_variable([], dtypes.float64, "max")
    total = metric_variable([], dtypes.float64, "total")
    value = ratio(total.value(), most.value(), "mean")
    new_total = total.assign_add(_summed(scores, weights))
    new_most = most.assign_add(_summed(number, weights))
    update = ratio(new_total, new_most, "update")
    return value, update


sparse_average_precision_at_k = average_precision_at_k


def _average_precision(sets: _Sets, k: int) -> Tensor:
    hits = as_float(sets.hits)
    places = add(cast(range_(k), dtypes.float32), 1.0)
    at_hits = multiply(realdiv(cumsum(hits, -1), places), hits)
    return div_no_nan(reduce_sum(at_hits, -1), minimum(sets.count(), float(k)))
