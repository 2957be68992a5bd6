"""Tensor arrays and what is built on them: map_fn, foldl, foldr, scan; gradients of any order."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.control.items import Items


def test_write_read_stack_size(sess):
    a = fs.TensorArray(fs.float32, 3)
    b = a.write(0, [1.0, 2.0]).write(2, [3.0, 4.0])
    c = b.write(1, [5.0, 6.0])
    assert c.element_shape == [2]
    assert sess.run([b.read(2), c.size()])[0].tolist() == [3, 4]
    assert sess.run(c.stack()).tolist() == [[1, 2], [5, 6], [3, 4]]
    assert sess.run(c.gather([2, 0])).tolist() == [[3, 4], [1, 2]]
    assert sess.run(a.size()) == 3


def test_old_versions_stay_what_they_were(sess):
    a = fs.TensorArray(fs.int32, 2).write(0, 1)
    b, c = a.write(1, 2), a.write(1, 3)
    assert [v.tolist() for v in sess.run([b.stack(), c.stack(), b.stack()])] == [
        [1, 2], [1, 3], [1, 2]
    ]  # fmt: skip


def test_unstack_scatter_split_concat(sess):
    x = fs.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    a = fs.TensorArray(fs.float32, 3).unstack(x)
    assert sess.run(a.read(1)).tolist() == [3, 4]
    b = fs.TensorArray(fs.float32, 3).scatter([2, 0, 1], x)
    assert sess.run(b.stack()).tolist() == [[3, 4], [5, 6], [1, 2]]
    c = fs.TensorArray(fs.float32, 2, infer_shape=False).split(x, [1, 2])
    assert sess.run(c.read(1)).tolist() == [[3, 4], [5, 6]]
    assert sess.run(c.concat()).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_errors(sess):
    i = fs.placeholder(fs.int32, [])
    a = fs.TensorArray(fs.float32, 2).write(0, 1.0)
    for array, message in (
        (a.write(i, 2.0), "index 0 was written before"),
        (a.write(i + 5, 2.0), "from 0 below the size 2, got 5"),
    ):
        with pytest.raises(fs.errors.InvalidArgumentError, match=message):
            sess.run(array.read(0), {i: 0})
    with pytest.raises(fs.errors.InvalidArgumentError, match="index 1 has no value"):
        sess.run(a.read(1))
    grows = fs.TensorArray(fs.float32, 0, dynamic_size=True).write(4, 1.0)
    assert sess.run(grows.size()) == 5
    with pytest.raises(TypeError, match="expected float32"):
        a.write(1, fs.constant(1))
    with pytest.raises(ValueError, match="do not fit together|of shape"):
        fs.TensorArray(fs.float32, 2, element_shape=[2]).write(0, [1.0])


def test_an_array_itself_is_neither_fetched_nor_fed(sess):
    a = fs.TensorArray(fs.float32, 2)
    with pytest.raises(ValueError, match=r"cannot be fetched: .*TensorArray.stack"):
        sess.run(a.flow)
    with pytest.raises(ValueError, match="is no array and cannot be fed"):
        sess.run(a.size(), {a.flow: 1})


def test_arrays_in_loops_and_branches(sess):
    n = fs.placeholder(fs.int32, [])
    p = fs.placeholder(fs.bool, [])

    def body(i, a):
        return i + 1, a.write(i, fs.cast(i, fs.float32) * 2.0)

    _, a = fs.while_loop(lambda i, a: i < n, body, [0, fs.TensorArray(fs.float32, n)])
    assert a.element_shape == []
    assert sess.run(a.read(n - 1), {n: 3}) == 4
    b = fs.cond(p, lambda: a, lambda: fs.TensorArray(fs.float32, 1).write(0, 9.0))
    assert sess.run(b.stack(), {n: 3, p: True}).tolist() == [0, 2, 4]
    assert sess.run(b.stack(), {n: 3, p: False}).tolist() == [9]


def test_gradients_of_every_method(sess):
    x = fs.placeholder(fs.float64, [3, 2])
    w = fs.constant(np.arange(1.0, 7).reshape(3, 2))
    a = fs.TensorArray(fs.float64, 3).unstack(x)
    b = fs.TensorArray(fs.float64, 3).write(0, a.read(1) * a.read(1)).write(2, a.read(0))
    c = b.write(1, a.read(1))
    d = fs.TensorArray(fs.float64, 2, infer_shape=False).split(c.stack(), [1, 2])
    y = fs.reduce_sum(d.concat() * w) + fs.reduce_sum(c.gather([1, 1]))
    (g,) = fs.gradients(y, x)
    (h,) = fs.gradients(fs.reduce_sum(g * g), x)
    v = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    want = np.array([[5, 6], [2 * 3 * 1 + 3 + 2, 2 * 4 * 2 + 4 + 2], [0, 0]])
    np.testing.assert_allclose(sess.run(g, {x: v}), want)
    np.testing.assert_allclose(sess.run(h, {x: v})[1], 2 * want[1] * [2, 4])


def test_map_fn(sess):
    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.map_fn(lambda v: v * v + 1.0, x)
    assert y.shape.as_list() == [None, 2]
    assert sess.run(y, {x: [[1, 2], [3, 4]]}).tolist() == [[2, 5], [10, 17]]
    pair = fs.constant([1, 2]), fs.constant([3, 4])
    a, b = fs.map_fn(lambda v: (v[0] + v[1], v[0] * v[1]), pair)
    assert [v.tolist() for v in sess.run([a, b])] == [[4, 6], [3, 8]]
    n = fs.map_fn(lambda v: fs.cast(v, fs.int32), x[:, 0], dtype=fs.int32)
    assert sess.run(n, {x: [[1, 2], [3, 4]]}).tolist() == [1, 3]
    (g,) = fs.gradients(y, x)
    assert sess.run(g, {x: [[1, 2], [3, 4]]}).tolist() == [[2, 4], [6, 8]]


def test_folds_and_scans(sess):
    x = fs.constant([1.0, 2.0, 3.0, 4.0])
    assert sess.run(fs.foldl(lambda a, v: a - v, x)) == -8
    assert sess.run(fs.foldl(lambda a, v: a - v, x, initializer=10.0)) == 0
    assert sess.run(fs.foldr(lambda a, v: a - v, x)) == -2
    assert sess.run(fs.foldr(lambda a, v: a - v, x, initializer=0.0)) == -10
    assert sess.run(fs.scan(lambda a, v: a + v, x)).tolist() == [1, 3, 6, 10]
    assert sess.run(fs.scan(lambda a, v: a + v, x, initializer=1.0)).tolist() == [2, 4, 7, 11]
    assert sess.run(fs.scan(lambda a, v: a + v, x, reverse=True)).tolist() == [10, 9, 7, 4]
    assert fs.scan(lambda a, v: a + v, x).shape == [4]


def test_derivatives_of_a_scan(sess):
    x, w = fs.placeholder(fs.float64, [None]), fs.placeholder(fs.float64, [])
    y = fs.scan(lambda a, v: a * w + v, x, initializer=fs.constant(1.0, fs.float64))
    loss = fs.reduce_sum(y * y)
    g = fs.gradients(loss, [w, x])
    (h,) = fs.gradients(g[0], w)

    def f(w, x):
        a, total = 1.0, 0.0
        for v in x:
            a = a * w + v
            total += a * a
        return total

    at, v, e = 0.7, np.array([0.5, -1.0, 2.0]), 1e-4
    gw, gx, hw = sess.run([*g, h], {w: at, x: v})
    np.testing.assert_allclose(gw, (f(at + e, v) - f(at - e, v)) / (2 * e), rtol=1e-6)
    np.testing.assert_allclose(hw, (f(at + e, v) + f(at - e, v) - 2 * f(at, v)) / e**2, rtol=1e-4)
    for i in range(3):
        d = np.eye(3)[i] * e
        np.testing.assert_allclose(gx[i], (f(at, v + d) - f(at, v - d)) / (2 * e), rtol=1e-6)


def test_elems_that_do_not_fit_are_refused(graph):
    with pytest.raises(ValueError, match="is a scalar"):
        fs.map_fn(lambda v: v, fs.constant(1.0))
    with pytest.raises(ValueError, match=r"one length, got \[2, 3\]"):
        fs.map_fn(lambda v: v[0], (fs.zeros([2]), fs.zeros([3])), dtype=fs.float32)


def test_versions_of_a_persistent_array():
    versions = [Items(3, False)]
    for i in range(3):
        versions.append(versions[-1].put(i, i * 10))
    branch = versions[1].put(1, 99)
    for _ in range(2):
        assert [v.indices() for v in versions] == [[], [0], [0, 1], [0, 1, 2]]
        assert (branch.get(1), versions[2].get(1), versions[1].get(1)) == (99, 10, None)
