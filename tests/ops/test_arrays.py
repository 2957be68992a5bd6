"""What the table of ops cannot hold: scopes, times, constants of odd shapes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError


def test_timestamp(sess):
    t = fs.timestamp()
    before, first, second, after = time.time(), sess.run(t), sess.run(t), time.time()
    assert before <= first <= second <= after
    assert type(first) is np.float64


def test_constants_without_elements(sess):
    for value in (1.0, [1.0, 2.0], []):
        c = fs.constant(value, shape=[0])
        assert c.shape == [0]
        assert c.dtype is fs.float32
        assert sess.run(c).shape == (0,)
    assert fs.constant(1, "int64", [2, 0]).dtype is fs.int64
    assert fs.constant([], fs.string).dtype is fs.string
    assert fs.constant(np.zeros(0, object)).dtype is fs.string
    with pytest.raises(InvalidArgumentError, match="does not fit"):
        fs.constant(1.0, shape=[0], verify_shape=True)


def test_init_scope(graph):
    x = fs.constant(1.0, name="x")
    with fs.name_scope("outer"), fs.control_dependencies([x]), fs.init_scope():
        c = fs.constant(2.0, name="c")
    assert c.op.control_inputs == []
    assert c.op.name == "outer/c"
    made = []

    @fs.function
    def f(a):
        with fs.init_scope():
            made.append(fs.constant(3.0))
        return a * made[0]

    y = f(x)
    assert made[0].op.block is graph.root
    with fs.Session() as sess:
        assert sess.run([y, made[0]]) == [3, 3]


def test_the_gradient_of_a_cumulative_product_is_finite_at_zero(sess):
    x = fs.constant([1.0, 0.0, 3.0])
    assert sess.run(fs.gradients(fs.cumprod(x), x))[0].tolist() == [1, 0, 0]
