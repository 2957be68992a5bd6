"""Metrics of yes/no questions: counts of true and false answers, at thresholds, areas below curves.

Predictions above a threshold count as yes. What the counts share is a product of two matrices: one
says for each threshold which predictions are above it, the other which examples count for what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.graph.constant import constant
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import stack
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes
from flowscope.ops.core.casting import cast
from flowscope.ops.host.checks import assert_greater_equal, assert_less_equal, with_dependencies
from flowscope.ops.linalg.products import matmul
from flowscope.ops.math.elementwise import (
    abs,
    add,
    div_no_nan,
    equal,
    greater,
    log,
    logical_and,
    logical_not,
    maximum,
    minimum,
    multiply,
    realdiv,
    subtract,
)
from flowscope.ops.math.reductions import reduce_min, reduce_sum
from flowscope.ops.math.scans import argmax, argmin, cumsum
from flowscope.ops.objectives.metrics import (
    Collections,
    Pair,
    as_float,
    matched,
    metric,
    metric_variable,
)
from flowscope.ops.objectives.weights import broadcast_weights, flat

__all__ = [
    "auc",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "sensitivity_at_specificity",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
]

#: Keeps divisors from 0, as in TensorFlow.
_TINY = 1e-7

_ARGUMENTS = """

    Args:
        labels: Whether each answer is yes: numbers or bools.
        predictions: {predictions}
        {more}weights: What each example counts: a number, or a tensor that is broadcast.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update op.
        name: Name scope of variables and operations.
    """


def _documented(call: Any, name: str, doc: str, predictions: str, more: str = "") -> Any:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc + _ARGUMENTS.format(predictions=predictions, more=more)
    return call


# -- answers of yes and no ------------------------------------------------------------------------


def _counted(values: Tensor, weights: Any, scope: str) -> tuple[Tensor, Tensor]:
    """Returns (value, update) of how much all true values count."""
    x = as_float(values)
    total = metric_variable([], dtypes.float32, f"{scope}count")
    if weights is not None:
        x = multiply(x, broadcast_weights(as_float(weights), x))
    value = total.value()
    return value, total.assign_add(reduce_sum(x))


def _yes(x: Tensor, wanted: bool) -> Tensor:
    is_true = cast(x, dtypes.bool_)
    return is_true if wanted else logical_not(is_true)


def _answers(y: Tensor, p: Tensor, w: Any, kind: tuple[bool, bool], scope: str = "") -> Any:
    truth, answer = kind
    return _counted(logical_and(_yes(y, truth), _yes(p, answer)), w, scope)


def _of_answers(
    function: str, doc: str, compute: Callable[[Tensor, Tensor, Any], Pair]
) -> Callable[..., Pair]:
    @metric(function)
    def call(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Collections = None,
        updates_collections: Collections = None,
        name: str | None = None,
    ) -> Pair:
        return compute(*matched(labels, predictions, weights))

    return _documented(call, function, doc, "Answers: numbers or bools.")  # type: ignore[no-any-return]


def _count(function: str, kind: tuple[bool, bool], doc: str) -> Callable[..., Pair]:
    return _of_answers(function, doc, lambda y, p, w: _answers(y, p, w, kind))


_TP, _FP, _FN, _TN = (True, True), (False, True), (True, False), (False, False)

true_positives = _count("true_positives", _TP, "Counts answers of yes that are right.")
true_negatives = _count("true_negatives", _TN, "Counts answers of no that are right.")
false_positives = _count("false_positives", _FP, "Counts answers of yes that are wrong.")
false_negatives = _count("false_negatives", _FN, "Counts answers of no that are wrong.")


def _share(function: str, other: tuple[bool, bool], names: str, doc: str) -> Callable[..., Pair]:
    def compute(y: Tensor, p: Tensor, w: Any) -> Any:
        hits = _answers(y, p, w, _TP, "true_positives/")
        others = _answers(y, p, w, other, f"{names}/")
        return [div_no_nan(h, add(h, o), n) for h, o, n in zip(hits, others, _NAMES)]

    return _of_answers(function, doc, compute)


_NAMES = ("value", "update_op")
precision = _share(
    "precision", _FP, "false_positives", "Which part of the answers of yes is right."
)
recall = _share("recall", _FN, "false_negatives", "Which part of the true yes was answered so.")


# -- at thresholds --------------------------------------------------------------------------------


def _at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns values and updates of the counts of some kinds ("tp", "fn", ...), per threshold."""
    y, p, w = matched(labels, as_float(predictions), weights)
    shares = None if w is None else flat(broadcast_weights(as_float(w), p))
    limits = constant(np.array(thresholds, np.float32))
    above = cast(greater(expand_axes(flat(p), (0,)), expand_axes(limits, (-1,))), dtypes.float32)
    truth = cast(_yes(flat(y), True), dtypes.float32)
    sides = stack([truth, subtract(1.0, truth)], 1)
    if shares is not None:
        sides = multiply(sides, expand_axes(shares, (-1,)))
    yes, no = matmul(above, sides), matmul(subtract(1.0, above), sides)
    batch = {"tp": yes[:, 0], "fp": yes[:, 1], "fn": no[:, 0], "tn": no[:, 1]}
    values, updates = {}, {}
    for kind in kinds.split():
        total = metric_variable([len(thresholds)], dtypes.float32, _LONG[kind])
        values[kind], updates[kind] = total.value(), total.assign_add(batch[kind])
    return values, updates


_LONG = {
    "tp": "true_positives",
    "fp": "false_positives",
    "fn": "false_negatives",
    "tn": "true_negatives",
}


def _at_list(
    function: str,
    kinds: str,
    compute: Callable[[dict[str, Tensor]], Tensor],
    doc: str,
    scope: str | None = None,
) -> Callable[..., Pair]:
    @metric(scope or function)
    def call(
        labels: Any,
        predictions: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Collections = None,
        updates_collections: Collections = None,
        name: str | None = None,
    ) -> Pair:
        limits = [float(t) for t in thresholds]
        both = _at_thresholds(labels, predictions, limits, weights, kinds)
        return compute(both[0]), compute(both[1])

    more = "thresholds: A list of numbers.\n        "
    return _documented(call, function, doc, "Numbers.", more)  # type: ignore[no-any-return]


true_positives_at_thresholds = _at_list(
    "true_positives_at_thresholds", "tp", lambda n: n["tp"],
    "Counts the predictions above each threshold whose label is yes.",
    "true_positives")  # fmt: skip
true_negatives_at_thresholds = _at_list(
    "true_negatives_at_thresholds", "tn", lambda n: n["tn"],
    "Counts the predictions up to each threshold whose label is no.",
    "true_negatives")  # fmt: skip
false_positives_at_thresholds = _at_list(
    "false_positives_at_thresholds", "fp", lambda n: n["fp"],
    "Counts the predictions above each threshold whose label is no.",
    "false_positives")  # fmt: skip
false_negatives_at_thresholds = _at_list(
    "false_negatives_at_thresholds", "fn", lambda n: n["fn"],
    "Counts the predictions up to each threshold whose label is yes.",
    "false_negatives")  # fmt: skip
precision_at_thresholds = _at_list(
    "precision_at_thresholds", "tp fp",
    lambda n: realdiv(n["tp"], add(add(n["tp"], n["fp"]), _TINY)),
    "Which part of the predictions above each threshold has the label yes.")  # fmt: skip
recall_at_thresholds = _at_list(
    "recall_at_thresholds", "tp fn",
    lambda n: realdiv(n["tp"], add(add(n["tp"], n["fn"]), _TINY)),
    "Which part of the labels of yes is predicted above each threshold.")  # fmt: skip


def _spread(num: int) -> list[float]:
    """Returns `num` thresholds from just below 0 to just above 1."""
    inner = [(i + 1) / (num - 1) for i in range(num - 2)]
    return [0.0 - _TINY, *inner, 1.0 + _TINY]


def _probabilities(predictions: Any) -> Tensor:
    """Returns predictions; an error while running unless they lie in [0, 1]."""
    p = as_float(predictions)
    says = "expected predictions in [0, 1]"
    checks = [assert_greater_equal(p, 0.0, message=says), assert_less_equal(p, 1.0, message=says)]
    return with_dependencies(checks, p)  # type: ignore[no-any-return]


@metric("auc")
def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> Pair:
    """Returns the area below the curve of true over false positives, or of precision over recall.

    Args:
        labels: Whether each answer is yes: numbers or bools.
        predictions: Numbers in [0, 1].
        weights: What each example counts: a number, or a tensor that is broadcast.
        num_thresholds: At how many points the curve is known.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update op.
        curve: "ROC" or "PR".
        name: Name scope of variables and operations.
        summation_method: "trapezoidal", "minoring", "majoring" (the lower or higher of neighbours),
            or "careful_interpolation" (for "PR"; Davis and Goadrich 2006).
        thresholds: A list of numbers in (0, 1), in place of `num_thresholds`.
    """
    methods = ("trapezoidal", "minoring", "majoring", "careful_interpolation")
    if curve not in ("ROC", "PR") or summation_method not in methods:
        raise expected(
            f"a curve ROC or PR and a summation_method of {methods}",
            repr(curve),
            repr(summation_method),
        )
    given = None if thresholds is None else sorted(float(t) for t in thresholds)
    limits = _spread(num_thresholds) if given is None else [0 - _TINY, *given, 1 + _TINY]
    p = _probabilities(predictions)
    both = _at_thresholds(labels, p, limits, weights, "tp fn tn fp")
    return _area(both[0], curve, summation_method), _area(both[1], curve, summation_method)


def _area(n: dict[str, Tensor], curve: str, method: str) -> Tensor:
    tp, fn, tn, fp = (n[k] for k in ("tp", "fn", "tn", "fp"))
    if curve == "PR" and method == "careful_interpolation":
        return _careful_area(tp, fp, fn)
    found = realdiv(add(tp, _TINY), add(add(tp, fn), _TINY))
    if curve == "ROC":
        x, y = realdiv(fp, add(add(fp, tn), _TINY)), found
    else:
        x, y = found, realdiv(add(tp, _TINY), add(add(tp, fp), _TINY))
    steps, left, right = subtract(x[:-1], x[1:]), y[:-1], y[1:]
    height = {
        "minoring": lambda: minimum(left, right),
        "majoring": lambda: maximum(left, right),
    }.get(method, lambda: multiply(0.5, add(left, right)))()
    return reduce_sum(multiply(steps, height))


def _careful_area(tp: Tensor, fp: Tensor, fn: Tensor) -> Tensor:
    """Returns the area below precision over recall where true positives, not precision, are linear.

    Source: Davis and Goadrich 2006, "The relationship between precision-recall and ROC curves".
    """
    positives = add(tp, fp)
    before, after = positives[:-1], positives[1:]
    hits = subtract(tp[:-1], tp[1:])
    slope = div_no_nan(hits, maximum(subtract(before, after), 0.0))
    offset = subtract(tp[1:], multiply(slope, after))
    is_both = logical_and(greater(before, 0.0), greater(after, 0.0))
    quotient = div_no_nan(before, maximum(after, 0.0))
    safe = where(is_both, quotient, add(multiply(quotient, 0.0), 1.0))
    part = multiply(slope, add(hits, multiply(offset, log(safe))))
    return reduce_sum(div_no_nan(part, maximum(add(tp[1:], fn[1:]), 0.0)))


def _picked(n: dict[str, Tensor], where_: str, target: float) -> Tensor:
    """Returns one rate at the threshold where the other comes next to its target."""
    specific = realdiv(n["tn"], add(add(n["tn"], n["fp"]), _TINY))
    sensitive = realdiv(n["tp"], add(add(n["tp"], n["fn"]), _TINY))
    if where_ == "specificity":
        return gather(sensitive, argmin(abs(subtract(specific, target)), 0))
    distance = abs(subtract(sensitive, target))
    nearest = cast(equal(distance, reduce_min(distance)), dtypes.int64)
    return gather(specific, argmax(cumsum(nearest), 0))  # the last of those


def _rate(
    where_: str, target: float, labels: Any, predictions: Any, weights: Any, num: int
) -> Pair:
    """Returns (value, update) of one rate where the other one is at its target."""
    if not 0 <= target <= 1:
        raise expected(f"a {where_} in [0, 1]", target)
    p = _probabilities(predictions)
    both = _at_thresholds(labels, p, _spread(num), weights, "tp fn tn fp")
    return _picked(both[0], where_, target), _picked(both[1], where_, target)


@metric("sensitivity_at_specificity")
def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the rate of true positives at the threshold with a given rate of true negatives.

    Args:
        labels: Whether each answer is yes: numbers or bools.
        predictions: Numbers in [0, 1].
        specificity: The rate of true negatives, in [0, 1].
        weights: What each example counts: a number, or a tensor that is broadcast.
        num_thresholds: How many thresholds are tried.
        metrics_collections: Collections for the value.
        updates_collections: Collections for the update op.
        name: Name scope of variables and operations.
    """
    return _rate("specificity", specificity, labels, predictions, weights, num_thresholds)


@metric("specificity_at_sensitivity")
def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Pair:
    """Returns the rate of true negatives at the threshold with a given rate of true positives.

    The arguments are those of `sensitivity_at_specificity`.
    """
    return _rate("sensitivity", sensitivity, labels, predictions, weights, num_thresholds)
