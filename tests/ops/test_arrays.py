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


def test_parts_of_shapes_by_an_ellipsis():
    x = fs.placeholder(fs.float32, [None, 3])
    s = fs.shape(x)
    parts = [s[..., 0], s[0, ...], s[..., 1], s[1, ...], s[None, 0], s[..., None]]
    assert [p.spec.constant for p in parts[2:4]] == [3, 3]
    with fs.Session() as session:
        got = session.run(parts, {x: np.zeros((5, 3))})
    assert [v.tolist() for v in got] == [5, 5, 3, 3, [5], [[5], [3]]]


def test_long_integer_vectors_are_not_looked_at_one_by_one():
    n = 10**9
    x = fs.placeholder(fs.int32, [n])
    made = [x[:-1], fs.concat([x, x], 0), fs.gather(x, [1, 2]), fs.range(n), x * 2 + 1, x[3]]
    assert [t.shape.as_list() for t in made] == [[n - 1], [2 * n], [2], [n], [n], []]
    ranges = [(0.0, 1.0, 0.1), (1.0, 0.0, 0.1), (0.0, 1.0, 0.3), (5.0, 1.0, -0.7)]
    for ends in ranges:
        r = fs.range(*[fs.constant(v, fs.float32) for v in ends])
        with fs.Session() as session:
            assert session.run(r).shape == tuple(r.shape.as_list())
