"""hessians: values against formulas, shapes, several xs, unknown sizes."""

import inspect

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_of_a_vector(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [3])
        (h,) = fs.hessians(fs.reduce_prod(x), x)
    assert h.shape == [3, 3]
    np.testing.assert_allclose(
        sess.run(h, {x: [2.0, 3.0, 5.0]}), [[0, 5, 3], [5, 0, 2], [3, 2, 0]], atol=1e-12
    )


def test_of_several_ys_and_xs_of_any_rank(sess):
    with sess.graph.as_default():
        x, z = fs.placeholder(fs.float64, [1, 2]), fs.placeholder(fs.float64, [])
        hx, hz = fs.hessians([fs.reduce_sum(x**3.0) * z, z * z], [x, z])
    got = sess.run([hx, hz], {x: [[1.0, 2.0]], z: 2.0})
    np.testing.assert_allclose(got[0], [[[[12.0, 0.0]], [[0.0, 24.0]]]])
    assert got[1] == 2.0


def test_of_a_variable_and_through_slices(sess):
    with sess.graph.as_default():
        v = fs.Variable([1.0, 2.0, 3.0], dtype=fs.float64)
        (h,) = fs.hessians(fs.gather(v, [0, 2, 2]) ** 3.0, v)
        sess.run(fs.global_variables_initializer())
    np.testing.assert_allclose(sess.run(h), np.diag([6.0, 0.0, 36.0]))


def test_without_curvature_or_influence_it_is_zero(sess):
    with sess.graph.as_default():
        x, z = fs.placeholder(fs.float64, [2]), fs.placeholder(fs.float64, [2])
        hx, hz = fs.hessians(x * 2.0, [x, z])
    for h in sess.run([hx, hz], {z: [1.0, 2.0]}):
        np.testing.assert_array_equal(h, np.zeros((2, 2)))


def test_empty_ones(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [0, 2])
        (h,) = fs.hessians(fs.reduce_sum(x * x), x)
        assert fs.hessians(fs.reduce_sum(x), []) == []
    assert sess.run(h, {x: np.zeros((0, 2))}).shape == (0, 2, 0, 2)


def test_names_and_options():
    with fs.device("/cpu:0"):
        x = fs.placeholder(fs.float64, [2])
        y = fs.exp(x, name="y")
    (h,) = fs.hessians(y, x, name="curvature", colocate_gradients_with_ops=True)
    assert h.op.name.startswith("curvature/")
    made = [
        op for op in h.graph.get_operations() if op.name.startswith("curvature/gradients/y_grad/")
    ]
    assert made and all(op.colocation_groups() == [b"loc:@y"] for op in made)


def test_an_unknown_size_says_so_at_the_users_line():
    x = fs.placeholder(fs.float64, [None], name="x")
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(ValueError, match=rf'(?s)known shape, got "x:0" of shape \[\?\].*{line}'):
        fs.hessians(x * x, x)
