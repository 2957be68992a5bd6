"""What loops and branches carry: structures, arrays, slices, sparse tensors; written forms."""

from collections import namedtuple

import numpy as np
import pytest

import flowscope as fs

Pair = namedtuple("Pair", "x y")


def test_nested_structures_of_variables(sess):
    def body(i, state):
        n, rest = state
        return i + 1, [n + 1, {"k": rest["k"] * 2.0, "p": Pair(rest["p"].y, rest["p"].x)}]

    start = [1, {"k": 1.0, "p": Pair(3, 4)}]
    found = fs.while_loop(lambda i, _: i < 3, body, (0, start))
    assert sess.run(found) == (3, [4, {"k": 8, "p": Pair(4, 3)}])
    top = fs.while_loop(lambda x, y: x < 3, lambda x, y: Pair(x + 1, y * 2.0), Pair(0, 1.0))
    assert sess.run(top) == Pair(3, 8)


def test_what_comes_out_has_the_form_that_the_body_returns(graph):
    def form(start, after):
        return type(fs.while_loop(lambda i, j: i < 3, lambda i, j: after(i + 1, j), start))

    pair, many = (lambda i, j: (i, j)), lambda i, j: [i, j]
    assert [form(s, a) for s in ([0, 1], (0, 1)) for a in (pair, many)] == [tuple, list] * 2
    assert form(Pair(0, 1), Pair) is Pair and form(Pair(0, 1), pair) is tuple


def test_an_empty_structure_beside_a_variable(sess):
    def loop(**options):
        return fs.while_loop(lambda i, _: i < 9, lambda i, _: [i + 1, []], [0, []], **options)

    assert sess.run(loop(maximum_iterations=50)) == [9, []]
    assert sess.run(loop()) == 9


def test_one_structure_comes_as_in_tensorflow(graph):
    def loop(**options):
        return fs.while_loop(lambda p: p.x < 3, lambda p: [Pair(p.x + 1, p.y)], [Pair(0, 1)],
                             **options)  # fmt: skip

    assert isinstance(loop(), list)
    assert isinstance(loop(maximum_iterations=9), Pair)
    assert isinstance(loop(maximum_iterations=9, return_same_structure=True), list)


def test_slices_as_variables(sess):
    def body(i, s):
        values, indices = fs.concat([s.values, s.values], 0), fs.concat([s.indices, s.indices], 0)
        return i + 1, fs.IndexedSlices(values, indices, s.dense_shape)

    start = fs.IndexedSlices(fs.ones([1, 2]), [1], [3, 2])
    _, a = fs.while_loop(lambda i, _: i < 3, body, [0, start])
    assert isinstance(a, fs.IndexedSlices)
    assert a.values.shape.as_list() == [None, 2]
    assert sess.run(fs.convert_to_tensor(a)).tolist() == [[0, 0], [8, 8], [0, 0]]
    shapes = [fs.TensorShape([]), fs.TensorShape([None, 2])]
    _, b = fs.while_loop(lambda i, _: i < 3, body, [0, start], shapes)
    assert sess.run(b.values).shape == (8, 2)
    open_ended = fs.IndexedSlices(fs.ones([1, 2]), [1])
    _, c = fs.while_loop(
        lambda i, _: i < 3,
        lambda i, s: (i + 1, fs.IndexedSlices(s.values * 2.0, s.indices)),
        [0, open_ended],
    )
    assert c.dense_shape is None
    assert sess.run(c.values).tolist() == [[8, 8]]
    with pytest.raises(TypeError, match="one of them without a dense_shape"):
        fs.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, start), [0, open_ended])


def test_slices_become_dense_where_a_tensor_is_expected(sess):
    s = fs.IndexedSlices(fs.ones([1, 2]), [1], [2, 2])
    _, a = fs.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, s), [0, fs.zeros([2, 2])])
    assert sess.run(a).tolist() == [[0, 0], [1, 1]]
    p = fs.placeholder(fs.bool, [])
    for b in (fs.cond(p, lambda: s, lambda: fs.zeros([2, 2])),
              fs.cond(p, lambda: fs.convert_to_tensor(s), lambda: s)):  # fmt: skip
        assert isinstance(b, fs.Tensor)
        assert sess.run(b, {p: True}).tolist() == [[0, 0], [1, 1]]
    both = fs.cond(p, lambda: s, lambda: fs.IndexedSlices([[5.0, 6.0]], [0], [2, 2]))
    assert isinstance(both, fs.IndexedSlices)
    assert sess.run(both.values, {p: False}).tolist() == [[5, 6]]


def test_sparse_tensors(sess):
    values = fs.placeholder(fs.float32, [1])
    start = fs.SparseTensor([[0, 1]], values, [2, 2])

    def body(i, s):
        return i + 1, fs.SparseTensor(s.indices, s.values * s.values, s.dense_shape)

    def squared():
        shapes = [fs.TensorShape([]), fs.TensorShape([2, 2])]
        return fs.while_loop(lambda i, _: i < 2, body, [0, start], shapes)[1]

    p = fs.placeholder(fs.bool, [])
    z = fs.cond(p, squared, lambda: fs.SparseTensor([[0, 0]], values * 3.0, [2, 2]))
    (g,) = fs.gradients(z.values, values)
    dense = fs.sparse.to_dense(z)
    found = sess.run([dense, g], {values: [2], p: True})
    assert [v.tolist() for v in found] == [[[0, 16], [0, 0]], [32]]
    assert sess.run([dense, g], {values: [2], p: False})[0].tolist() == [[6, 0], [0, 0]]


def test_a_loop_in_a_function_in_a_loop(sess):
    @fs.function
    def cube(x):
        return fs.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x])[1]

    x = fs.placeholder(fs.float64, [])
    _, y = fs.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, cube(a)), [0, x])
    (g,) = fs.gradients(y, x)
    (h,) = fs.gradients(g, x)
    assert sess.run([y, g, h], {x: 2}) == [2**9, 9 * 2**8, 72 * 2**7]


def test_variables_made_in_a_body_are_the_graphs(sess):
    def body(i, a):
        with fs.variable_scope("s", reuse=fs.AUTO_REUSE):
            w = fs.get_variable("w", [], initializer=fs.constant_initializer(2.0))
        return i + 1, a * w

    _, y = fs.while_loop(lambda i, _: i < 3, body, [0, 1.0])
    (w,) = fs.global_variables()
    sess.run(w.initializer)
    assert sess.run([y, *fs.gradients(y, w)]) == [8, 12]


def everything(x):
    """A loop with a branch, an array and records, and its derivatives."""
    records = []

    def body(i, a, y):
        records.append(fs.record(y, limit=2))
        records.append(fs.record(y))
        y = fs.cond(y > 3.0, lambda: y + 1.0, lambda: y * x)
        return i + 1, a.write(i, y), y

    array = fs.TensorArray(fs.float32, 3, clear_after_read=True, name="array")
    _, array, _ = fs.while_loop(lambda i, *_: i < 3, body, [0, array, x], name="loop")
    z = array.stack()
    (g,) = fs.gradients(z, x)
    (h,) = fs.gradients(g, x)
    return [z, g, h, *map(fs.convert_to_tensor, records)]


def test_written_forms_of_everything(sess):
    x = fs.placeholder(fs.float32, [], name="x")
    results = everything(x)
    names = [t.name for t in results]
    want = sess.run(results, {x: 2.0})
    written = sess.graph.as_graph_def()
    with fs.Graph().as_default():
        x, *again = fs.import_graph_def(written, return_elements=["x:0", *names], name="imported")
        assert again[0].op.name.startswith("imported/")
        with fs.Session(config=fs.ConfigProto(mode=sess.config.mode)) as other:
            for a, b in zip(want, other.run(again, {x: 2.0}), strict=True):
                np.testing.assert_array_equal(a, b)
