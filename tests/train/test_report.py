"""Reports about variables."""

import doctest

import numpy as np
import pytest

import flowscope as fs
from flowscope.train import report

pytestmark = pytest.mark.usefixtures("graph")


def test_a_report_counts_parameters_and_bytes():
    fs.Variable(fs.zeros([784, 256]), name="w")
    fs.Variable(np.zeros(10, np.float64), name="b")
    fs.Variable(0, trainable=False, name="n")
    found = fs.train.parameter_report()
    assert (found.count, found.nbytes) == (200_714, 802_896)
    assert [(r.name, r.count, r.nbytes) for r in found.rows] == [
        ("w", 200_704, 802_816),
        ("b", 10, 80),
    ]
    assert repr(found).splitlines() == [
        "name         type                count       size",
        "w            float32[784,256]  200,704  784.0 KiB",
        "b            float64[10]            10       80 B",
        "2 variables                    200,714  784.1 KiB",
    ]


def test_a_report_of_chosen_variables_and_of_unknown_shapes():
    x = fs.placeholder(fs.float32, [None])
    open_shape = fs.Variable(x, validate_shape=False, trainable=False, name="open")
    found = fs.train.parameter_report([open_shape])
    assert (found.count, found.nbytes) == (0, 0)
    assert repr(found).splitlines()[1].split() == ["open", "float32[...]", "?", "?"]
    empty = repr(fs.train.parameter_report([])).splitlines()
    assert empty[-1].split() == ["0", "variables", "0", "0", "B"]


def test_variables_with_numbers_that_are_none_are_named(sess):
    good = fs.Variable([1.0, 2.0], name="good")
    bad, worse = fs.Variable([1.0, np.inf], name="bad"), fs.Variable(np.nan, name="worse")
    fs.Variable(3, name="count")
    sess.run(fs.global_variables_initializer())
    assert fs.train.non_finite_variables(sess) == ["bad", "worse"]
    assert fs.train.non_finite_variables(sess, [good, worse]) == ["worse"]
    sess.run([bad.assign([1.0, 1.0]), worse.assign(0.0)])
    assert fs.train.non_finite_variables(sess) == []


def test_the_example_in_the_documentation():
    result = doctest.testmod(report)
    assert result.attempted and not result.failed
