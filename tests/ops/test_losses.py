"""Losses beyond the table: collections, totals, dtypes, what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError


def test_losses_are_collected(sess):
    a = fs.losses.mean_squared_error([1.0], [3.0])
    with fs.name_scope("inner"):
        b = fs.losses.absolute_difference([1.0], [4.0])
    fs.losses.hinge_loss([1.0], [0.0], loss_collection=None)
    c = fs.losses.log_loss([1.0], [1.0], loss_collection="mine")
    fs.losses.add_loss(fs.constant(10.0))
    assert fs.losses.get_losses()[:2] == [a, b]
    assert fs.losses.get_losses("inner") == [b]
    assert fs.losses.get_losses(loss_collection="mine") == [c]
    fs.add_to_collection(fs.GraphKeys.REGULARIZATION_LOSSES, fs.constant(0.5))
    assert sess.run(fs.losses.get_total_loss()) == 17.5
    assert sess.run(fs.losses.get_total_loss(False)) == 17
    assert sess.run(fs.losses.get_total_loss(scope="inner")) == 3
    assert sess.run(fs.losses.get_regularization_loss()) == 0.5
    assert len(fs.losses.get_regularization_losses()) == 1


def test_without_regularizers_their_loss_is_zero(sess):
    assert sess.run(fs.losses.get_regularization_loss()) == 0


def test_names_are_tensorflows(graph):
    loss = fs.losses.mean_squared_error([1.0], [3.0])
    assert loss.op.name == "mean_squared_error/value"
    assert fs.losses.mean_squared_error([1.0], [3.0]).op.name == "mean_squared_error_1/value"


def test_low_precision_is_reduced_in_float32(sess):
    ones = np.ones(5000, "f2")
    loss = fs.losses.compute_weighted_loss(fs.constant(ones))
    assert loss.dtype is fs.float16
    assert sess.run(loss) == 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: fs.losses.mean_squared_error(x, fs.ones([3, 2])), "one shape"),
        (lambda x: fs.losses.hinge_loss(None, x), "got None"),
        (lambda x: fs.losses.compute_weighted_loss(x, fs.ones([3])), "rank 0"),
        (lambda x: fs.losses.compute_weighted_loss(x, fs.ones([2, 2])), "rank 0"),
        (lambda x: fs.losses.compute_weighted_loss(x, reduction="mean"), "weighted_mean"),
        (lambda x: fs.losses.cosine_distance(x, x), "axis"),
        (lambda x: fs.losses.get_total_loss(), "at least"),
    ],
)
def test_arguments_are_checked(graph, call, says):
    with pytest.raises(InvalidArgumentError, match=says):
        call(fs.ones([2, 3]))


def test_constant_weights(sess):
    loss = fs.losses.compute_weighted_loss([[1.0, 2.0], [3.0, 4.0]], [[2.0], [0.0]])
    assert sess.run(loss) == 3


def test_weights_are_checked_while_running(sess):
    x, w = fs.placeholder(fs.float32), fs.placeholder(fs.float32)
    loss = fs.losses.compute_weighted_loss(x, w)
    assert sess.run(loss, {x: [[1, 2, 3]], w: 2}) == 4
    with pytest.raises(InvalidArgumentError, match=r"expected weights .* got \[3\]"):
        sess.run(loss, {x: [[1, 2, 3]], w: [1, 1, 1]})


def test_classes_outside_a_confusion_matrix(sess):
    with pytest.raises(InvalidArgumentError, match=r"expected indices in \[0, 2\)"):
        sess.run(fs.confusion_matrix([0, 2], [0, 1], 2))
    assert fs.losses.Reduction.all()[0] == "none"


def test_arguments_that_do_not_fit_are_pythons_own_error(graph):
    with pytest.raises(
        TypeError, match=r"absolute_difference\(\) missing 1 required .*'predictions'"
    ):
        fs.losses.absolute_difference([1.0])
    with pytest.raises(
        TypeError, match=r"accuracy\(\) got an unexpected keyword argument 'wights'"
    ):
        fs.metrics.accuracy([1], [1], wights=1)
