"""Metrics: each over three batches, against NumPy on all that was seen so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError

M = fs.metrics
RNG = np.random.default_rng(3)
#: Batches of three kinds: numbers, classes, and answers with probabilities; each with weights.
X, Y = RNG.normal(size=(2, 3, 4, 2)).astype("f4")
W = RNG.uniform(0.5, 2, (3, 4, 1)).astype("f4")
C, D = RNG.integers(0, 3, (2, 3, 6))
V = RNG.uniform(0.5, 2, (3, 6)).astype("f4")
B, A = RNG.integers(0, 2, (2, 3, 8))
P = RNG.random((3, 8)).astype("f4")
U = RNG.uniform(0.5, 2, (3, 8)).astype("f4")
#: Classes of four examples, and a number per class.
L = RNG.integers(0, 5, (3, 4, 2))
R = RNG.random((3, 4, 5)).astype("f4")
S = RNG.uniform(0.5, 2, (3, 4)).astype("f4")


def steps(sess: Any, call: Callable[..., Any], *batches: Any) -> list[Any]:
    """The value after each batch; the update op gives the same, but for the matrices."""
    xs = [fs.placeholder(b.dtype, b.shape[1:]) for b in batches]
    value, update = call(*xs)
    sess.run(fs.local_variables_initializer())
    out = []
    for i in range(3):
        new = sess.run(update, dict(zip(xs, [b[i] for b in batches])))
        out.append(sess.run(value))
        if np.shape(new) == np.shape(out[-1]):
            np.testing.assert_allclose(out[-1], new, rtol=1e-6)
    return out


def so_far(reference: Callable[..., Any], *batches: Any) -> list[Any]:
    return [reference(*[np.concatenate(b[: i + 1]) for b in batches]) for i in range(3)]


def average(x: Any, w: Any = 1.0) -> Any:
    w = np.broadcast_to(w, x.shape)
    return (x * w).sum() / w.sum()


def iou(y: Any, p: Any, w: Any = 1.0) -> Any:
    w = np.broadcast_to(w, y.shape)
    found = []
    for c in range(4):
        union = w[(y == c) | (p == c)].sum()
        found += [w[(y == c) & (p == c)].sum() / union] if union else []
    return np.mean(found)


def per_class(y: Any, p: Any, w: Any = 1.0) -> Any:
    w = np.broadcast_to(w, y.shape)
    return np.mean([w[(y == c) & (p == c)].sum() / max(w[y == c].sum(), 1e-9) for c in range(4)])


def count(truth: bool, answer: bool) -> Any:
    return lambda y, p, w=1.0: (w * ((y > 0) == truth) * ((p > 0) == answer)).sum()


TP, FP, FN, TN = count(True, True), count(False, True), count(True, False), count(False, False)


def at(*ts: float) -> Any:
    def counts(kind: Any, y: Any, p: Any, w: Any) -> Any:
        return np.array([kind(y, p > t, w) for t in ts])

    return counts


T = (0.2, 0.5, 0.9)
CASES = {
    "mean": (M.mean, average, X),
    "mean_weights": (M.mean, average, X, W),
    "mean_scalar": (lambda x: M.mean(x, 2.0), average, X),
    "mean_tensor": (M.mean_tensor, lambda x: x.reshape(-1, 4, 2).mean(0), X),
    "mean_tensor_weights": (
        M.mean_tensor,
        lambda x, w: (x * w).reshape(-1, 4, 2).sum(0) / w.reshape(-1, 4, 1).sum(0),
        X,
        W,
    ),
    "percentage_below": (lambda x: M.percentage_below(x, 0.2), lambda x: (x < 0.2).mean(), X),
    "accuracy": (M.accuracy, lambda y, p: (y == p).mean(), C, D),
    "accuracy_weights": (M.accuracy, lambda y, p, w: average(y == p, w), C, D, V),
    "absolute": (M.mean_absolute_error, lambda y, p: np.abs(y - p).mean(), X, Y),
    "squared": (M.mean_squared_error, lambda y, p, w: average((y - p) ** 2, w), X, Y, W),
    "root": (M.root_mean_squared_error, lambda y, p: np.sqrt(((y - p) ** 2).mean()), X, Y),
    "relative": (
        lambda y, p: M.mean_relative_error(y, p, fs.abs(y)),
        lambda y, p: (np.abs(y - p) / np.abs(y)).mean(),
        X,
        Y,
    ),
    "relative_zero": (
        lambda y, p: M.mean_relative_error(y, p, fs.zeros_like(y)),
        lambda y, p: 0.0,
        X,
        Y,
    ),
    "cosine": (
        lambda y, p: M.mean_cosine_distance(y, p, 1),
        lambda y, p: 1 - (y * p).sum(1).mean(),
        X,
        Y,
    ),
    "iou": (lambda y, p: M.mean_iou(y, p, 4), iou, C, D),
    "iou_weights": (lambda y, p, w: M.mean_iou(y, p, 4, w), iou, C, D, V),
    "per_class": (lambda y, p: M.mean_per_class_accuracy(y, p, 4), per_class, C, D),
    "per_class_weights": (
        lambda y, p, w: M.mean_per_class_accuracy(y, p, 4, w),
        per_class,
        C,
        D,
        V,
    ),
    "true_positives": (M.true_positives, TP, B, A),
    "true_negatives": (M.true_negatives, TN, B, A, U),
    "false_positives": (M.false_positives, FP, B, A),
    "false_negatives": (M.false_negatives, FN, B, A, U),
    "precision": (M.precision, lambda *x: TP(*x) / (TP(*x) + FP(*x)), B, A, U),
    "recall": (M.recall, lambda *x: TP(*x) / (TP(*x) + FN(*x)), B, A),
}
for _kind, _ref in (
    ("true_positives", TP),
    ("true_negatives", TN),
    ("false_positives", FP),
    ("false_negatives", FN),
):
    CASES[f"{_kind}_at"] = (
        lambda y, p, w, f=_kind: getattr(M, f"{f}_at_thresholds")(y, p, T, w),
        lambda y, p, w, r=_ref: at(*T)(r, y, p, w),
        B,
        P,
        U,
    )
for _kind, _ref in (("precision", FP), ("recall", FN)):
    CASES[f"{_kind}_at"] = (
        lambda y, p, w, f=_kind: getattr(M, f"{f}_at_thresholds")(y, p, T, w),
        lambda y, p, w, r=_ref: (lambda n, m: n / np.maximum(n + m, 1e-9))(
            at(*T)(TP, y, p, w), at(*T)(r, y, p, w)
        ),
        B,
        P,
        U,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_metric_is_that_of_all_batches(sess, name):
    call, reference, *batches = CASES[name]
    for got, want in zip(steps(sess, call, *batches), so_far(reference, *batches)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def area(y: Any, p: Any, w: Any) -> Any:
    """How often a right answer is above a wrong one: the area below the ROC curve."""
    yes, no = y > 0, y == 0
    above = (p[yes][:, None] > p[no][None]) * w[yes][:, None] * w[no][None]
    return above.sum() / (w[yes].sum() * w[no].sum())


def test_auc(sess):
    got = steps(sess, lambda y, p, w: M.auc(y, p, w, num_thresholds=2000), B, P, U)
    np.testing.assert_allclose(got, so_far(area, B, P, U), atol=2e-3)


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_how_areas_are_summed(sess, curve):
    found = {}
    for method in ("minoring", "trapezoidal", "majoring", "careful_interpolation"):
        with fs.name_scope(method):
            call = lambda y, p, m=method: M.auc(y, p, curve=curve, summation_method=m)  # noqa: E731
            found[method] = steps(sess, call, B, P)[-1]
    assert found["minoring"] <= found["trapezoidal"] <= found["majoring"]
    assert curve == "ROC" or found["minoring"] < found["majoring"]
    assert abs(found["careful_interpolation"] - found["trapezoidal"]) < 0.05


def test_rates_at_the_other_rate(sess):
    y, p = np.array([[0, 0, 0, 1, 1]] * 3), np.array([[0.1, 0.4, 0.6, 0.5, 0.9]] * 3, "f4")
    got = steps(sess, lambda y, p: M.sensitivity_at_specificity(y, p, 0.99), y, p)
    np.testing.assert_allclose(got, 0.5, rtol=1e-6)
    got = steps(sess, lambda y, p: M.specificity_at_sensitivity(y, p, 0.99), y, p)
    np.testing.assert_allclose(got, 2 / 3, rtol=1e-6)


# -- rankings -------------------------------------------------------------------------------------


def ranked(labels: Any, scores: Any, k: int) -> Any:
    best = np.argsort(-scores, kind="stable")[..., :k]
    pairs = zip(labels.reshape(-1, labels.shape[-1]).tolist(), best.reshape(-1, k).tolist())
    return [(set(y), p) for y, p in pairs]


def recall(y: Any, s: Any, k: int = 2) -> Any:
    rows = ranked(y, s, k)
    return sum(len(y & {*p}) for y, p in rows) / sum(len(y) for y, _ in rows)


def precision(y: Any, s: Any, k: int = 2) -> Any:
    return np.mean([len(y & {*p}) / k for y, p in ranked(y, s, k)])


def average_precision(y: Any, s: Any, k: int = 3) -> Any:
    out = []
    for classes, best in ranked(y, s, k):
        hits = np.array([c in classes for c in best])
        out.append((hits.cumsum() / np.arange(1, k + 1) * hits).sum() / 2)
    return np.mean(out)


RANKED = {
    "recall": (lambda y, s: M.recall_at_k(y, s, 2), recall),
    "recall_top": (lambda y, s: M.recall_at_top_k(y, fs.nn.top_k(s, 2).indices), recall),
    "precision": (lambda y, s: M.precision_at_k(y, s, 2), precision),
    "precision_top": (lambda y, s: M.precision_at_top_k(y, fs.nn.top_k(s, 2)[1], 2), precision),
    "average": (lambda y, s: M.average_precision_at_k(y, s, 3), average_precision),
}


@pytest.mark.parametrize("name", RANKED)
def test_rankings(sess, name):
    call, reference = RANKED[name]
    for got, want in zip(steps(sess, call, L, R), so_far(reference, L, R)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_one_class_of_a_ranking_alone(sess):
    rows = [r for i in range(3) for r in ranked(L[i], R[i], 3)]
    hits = sum(1 in y and 1 in p for y, p in rows)
    got = steps(sess, lambda y, s: M.recall_at_k(y, s, 3, class_id=1), L, R)[-1]
    assert got == pytest.approx(hits / sum(1 in y for y, _ in rows))
    got = steps(sess, lambda y, s: M.precision_at_k(y, s, 3, class_id=1), L, R)[-1]
    assert got == pytest.approx(hits / sum(1 in p for _, p in rows))


def test_weighted_examples_of_a_ranking(sess):
    got = steps(sess, lambda y, s, w: M.precision_at_k(y, s, 2, weights=w), L, R, S)[-1]
    hits = [len(y & {*p}) / 2 for i in range(3) for y, p in ranked(L[i], R[i], 2)]
    assert got == pytest.approx(average(np.array(hits), S.reshape(-1)), rel=1e-5)


def test_labels_may_be_sparse_or_single(sess):
    places = np.array([[0, 0], [0, 1], [2, 0]])
    labels = fs.SparseTensor(places, fs.constant([1, 0, 3], fs.int64), [3, 2])
    scores = fs.constant([[3.0, 2, 1, 0], [3, 2, 1, 0], [0, 1, 2, 3]])
    _, update = M.recall_at_k(labels, scores, 1)
    _, single = M.recall_at_k([0, 1, 2], scores, 1)
    _, mean = M.average_precision_at_k(labels, scores, 2)
    sess.run(fs.local_variables_initializer())
    assert sess.run(update) == pytest.approx(2 / 3)
    assert sess.run(single) == pytest.approx(1 / 3)
    assert sess.run(mean) == pytest.approx((1 + 0 + 1) / 3)


# -- names, collections, errors -------------------------------------------------------------------


def test_variables_are_local_and_named_as_in_tensorflow(graph):
    M.mean([1.0])
    M.precision([1], [1], name="p")
    M.recall_at_k([[1]], [[0.0, 1.0]], 1, class_id=1)
    names = [v.name for v in fs.local_variables()]
    assert names == [
        "mean/total:0",
        "mean/count:0",
        "p/true_positives/count:0",
        "p/false_positives/count:0",
        "recall_at_1_class1/true_positive_at_1_class1:0",
        "recall_at_1_class1/false_negative_at_1_class1:0",
    ]
    assert fs.get_collection(fs.GraphKeys.METRIC_VARIABLES) == fs.local_variables()
    assert fs.global_variables() == []


def test_collections(graph):
    value, update = M.mean([1.0], metrics_collections="a", updates_collections=["b", "c"])
    assert fs.get_collection("a") == [value]
    assert fs.get_collection("b") == fs.get_collection("c") == [update]
    assert update.op.name == "mean/update_op"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: M.accuracy([1, 2], [1, 2, 3]), "one shape"),
        (lambda: M.mean([[1.0, 2.0]], [1.0, 1.0, 1.0]), "rank 0"),
        (lambda: M.mean_tensor(fs.placeholder("float32")), "known shape"),
        (lambda: M.auc([1], [0.5], curve="XY"), "ROC or PR"),
        (lambda: M.sensitivity_at_specificity([1], [0.5], 2.0), r"\[0, 1\]"),
        (lambda: M.average_precision_at_k([[1]], [[1.0]], 0), "k of 1"),
    ],
)
def test_arguments_are_checked(graph, call, says):
    with pytest.raises(InvalidArgumentError, match=says):
        call()


def test_probabilities_are_checked(sess):
    p = fs.placeholder(fs.float32, [1])
    _, update = M.auc([1], p)
    sess.run(fs.local_variables_initializer())
    with pytest.raises(InvalidArgumentError, match=r"predictions in \[0, 1\]"):
        sess.run(update, {p: [1.5]})
