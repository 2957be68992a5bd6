"""map_fn, foldl, foldr and scan: structures, empty tensors, errors, derivatives of any order."""

from collections import namedtuple

import numpy as np
import pytest

import flowscope as fs

Pair = namedtuple("Pair", "x y")


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


def test_structures_of_elems_and_results(sess):
    elems = {"a": fs.constant([1, 2]), "b": fs.constant([3, 4])}
    dtype = {"s": fs.int32, "t": Pair(fs.int32, fs.float32)}
    y = fs.map_fn(
        lambda d: {"s": d["a"] + d["b"], "t": Pair(d["a"], fs.cast(d["b"], fs.float32))},
        elems,
        dtype=dtype,
    )
    got = sess.run(y)
    assert got["s"].tolist() == [4, 6]
    assert (got["t"].x.tolist(), got["t"].y.tolist()) == ([1, 2], [3, 4])
    first = (fs.constant(0), fs.constant(1))
    a, b = fs.scan(lambda s, _: (s[1], s[0] + s[1]), fs.range(6), initializer=first)
    assert [v.tolist() for v in sess.run([a, b])] == [[1, 1, 2, 3, 5, 8], [1, 2, 3, 5, 8, 13]]
    a, b = fs.foldl(lambda s, v: (s[0] + v[0], s[1] * v[1]), (elems["a"], elems["b"]))
    assert sess.run([a, b]) == [3, 12]


@pytest.mark.parametrize("dims", [[0, 3], [None, 3]])
def test_empty_elems(sess, dims):
    x = fs.placeholder(fs.float32, dims)
    feed = {x: np.zeros([0, 3], "f")}
    one = fs.ones([3])
    assert sess.run(fs.map_fn(lambda v: v[:2] * 2.0, x), feed).shape == (0, 2)
    assert sess.run(fs.scan(lambda a, v: a + v, x, one), feed).shape == (0, 3)
    assert sess.run(fs.foldl(lambda a, v: a + v, x, one), feed).tolist() == [1, 1, 1]
    assert sess.run(fs.foldr(lambda a, v: a + v, x, one), feed).tolist() == [1, 1, 1]
    (g,) = fs.gradients(fs.map_fn(lambda v: v * v, x), x)
    assert sess.run(g, feed).shape == (0, 3)


def test_empty_elems_of_which_too_little_is_known(sess):
    x = fs.placeholder(fs.float32, None)
    with pytest.raises(ValueError, match="say element_shape"):
        sess.run(fs.map_fn(lambda v: v * 2.0, x), {x: np.zeros([0, 3])})
    with pytest.raises(ValueError, match='array "foldl/TensorArray" of size 0: expected an index'):
        sess.run(fs.foldl(lambda a, v: a + v, x), {x: np.zeros([0, 3])})
    for f in (fs.foldl, fs.foldr, fs.scan):
        with pytest.raises(ValueError, match="length 0 need an initializer"):
            f(lambda a, v: a + v, fs.zeros([0]))


def test_shapes_that_differ_from_part_to_part(sess):
    n = fs.constant([1, 2])
    with pytest.raises(ValueError, match=r"expected values of shape \[1\], got \[2\] at index 1"):
        sess.run(fs.map_fn(lambda k: fs.range(k), n))
    y = fs.map_fn(lambda k: fs.reduce_sum(fs.range(k)), n, infer_shape=False)
    assert sess.run(y).tolist() == [0, 1]


def test_maps_in_maps_and_their_derivatives(sess):
    x = fs.placeholder(fs.float64, [None, None])
    y = fs.map_fn(lambda row: fs.map_fn(lambda v: v * v * v, row), x)
    (g,) = fs.gradients(y, x)
    (h,) = fs.gradients(g, x)
    at = np.array([[1.0, 2.0], [3.0, 4.0]])
    got = sess.run([y, g, h], {x: at})
    for a, b in zip(got, (at**3, 3 * at**2, 6 * at), strict=True):
        np.testing.assert_allclose(a, b)


def test_results_that_do_not_fit_are_refused(graph):
    x = fs.ones([3])
    with pytest.raises(
        TypeError, match=r'int32\[\] \("map/while/body/Cast:0"\) as result 0, expected'
    ):
        fs.map_fn(lambda v: fs.cast(v, fs.int32), x)
    with pytest.raises(ValueError, match="another structure than elems: dtype=... says"):
        fs.map_fn(lambda v: (v, v), x)
    with pytest.raises(ValueError, match="another structure than the result so far"):
        fs.foldl(lambda a, v: (a, v), x)
    for f in (fs.map_fn, fs.foldl, fs.foldr, fs.scan):
        with pytest.raises(TypeError, match="expected a function as fn, got 3"):
            f(3, x)


def test_a_map_goes_through_the_rows_of_a_sparse_tensor(sess):
    x = fs.SparseTensor([[0, 0], [1, 1], [1, 2]], [5, 6, 7], [3, 4])
    same = fs.map_fn(lambda row: row, x)
    assert isinstance(same, fs.SparseTensor)
    got = sess.run(same)
    assert got.indices.tolist() == [[0, 0], [1, 1], [1, 2]] and got.values.tolist() == [5, 6, 7]
    assert got.dense_shape.tolist() == [3, 4]
    rows = fs.map_fn(lambda row: fs.sparse.reduce_sum(row), x, dtype=fs.int32)
    assert sess.run(rows).tolist() == [5, 13, 0]


def test_a_map_may_return_sparse_tensors(sess):
    ids = fs.constant([1, 3], fs.int64)
    spec = fs.SparseTensorSpec([None], fs.int64)
    y = fs.map_fn(lambda i: fs.SparseTensor([[i]], [i], [i + 1]), ids, fn_output_signature=spec)
    assert sess.run(fs.sparse.to_dense(y)).tolist() == [[0, 1, 0, 0], [0, 0, 0, 3]]
    with pytest.raises(TypeError, match="result 0, expected a sparse tensor"):
        fs.map_fn(lambda i: i, ids, dtype=spec)
    with pytest.raises(TypeError, match="result 0, expected a tensor"):
        fs.map_fn(lambda i: fs.SparseTensor([[i]], [i], [5]), ids)


def test_a_map_gives_what_its_signature_says(sess):
    x = fs.constant([1.0, 2.0])
    y = fs.map_fn(lambda v: fs.cast(v, "int32"), x, fn_output_signature=fs.TensorSpec([], "int32"))
    assert y.shape == [2] and sess.run(y).tolist() == [1, 2]
    with pytest.raises(TypeError, match="dtype was given twice"):
        fs.map_fn(lambda v: v, x, dtype="float32", fn_output_signature="float32")


def test_a_map_of_an_array_is_refused(graph):
    with pytest.raises(TypeError, match=r"use its stack\(\)"):
        fs.map_fn(lambda v: v, fs.TensorArray(fs.float32, 2))
