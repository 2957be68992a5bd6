"""Checks that run with the graph."""

import re

import pytest

import flowscope as fs


def test_an_assertion_says_what_it_was_given(sess):
    x = fs.placeholder(fs.int32, [None])
    check = fs.Assert(fs.reduce_sum(x) < 10, ["too much:", x, 1.5], summarize=2)
    with fs.control_dependencies([check]):
        y = fs.identity(x)
    assert sess.run(y, {x: [1, 2]}).tolist() == [1, 2]
    with pytest.raises(fs.errors.InvalidArgumentError, match=re.escape("too much: [5 6 ...] [1.5]")):
        sess.run(y, {x: [5, 6, 7]})


def test_every_element_counts(sess):
    x = fs.placeholder(fs.bool, [None])
    check = fs.Assert(x, [])
    sess.run(check, {x: [True, True]})
    with pytest.raises(fs.errors.InvalidArgumentError, match="assertion failed"):
        sess.run(check, {x: [True, False]})


def test_the_condition_must_be_a_bool(graph):
    with pytest.raises(TypeError, match="expected a bool as condition, got int32"):
        fs.Assert(fs.constant(1), [])
