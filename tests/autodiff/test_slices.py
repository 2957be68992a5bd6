"""IndexedSlices: what they are, gradients that are slices, sums of them, fetches and feeds."""

import inspect

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

TABLE = np.arange(6.0).reshape(3, 2)


def some(dense_shape=(3, 2)):
    return fs.IndexedSlices([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 2, 0], dense_shape)


# -- the class ------------------------------------------------------------------------------------


def test_what_they_know():
    s = some()
    assert (s.shape, s.dtype, s.name) == ([3, 2], fs.float32, s.values.name)
    assert s.get_shape() == s.shape
    assert s.op is s.values.op and s.graph is fs.get_default_graph() and s.device == ""
    assert s.indices.dtype == fs.int32 and s.dense_shape is not None
    assert "fs.IndexedSlices float32[3,2]: values=<fs.Tensor" in repr(s)
    assert some(None).dense_shape is None and some(None).shape.rank is None
    assert "dense_shape" not in repr(some(None))


def test_every_op_takes_them_dense(sess):
    with sess.graph.as_default():
        want = np.array([[6, 8], [0, 0], [3, 4]], "float32")
        s = some()
        got = sess.run([s + 0.0, 1.0 - s, fs.reduce_sum(s), fs.convert_to_tensor(s)])
    for g, w in zip(got, [want, 1 - want, want.sum(), want], strict=True):
        np.testing.assert_array_equal(g, w)


def test_negated_they_stay_slices(sess):
    with sess.graph.as_default():
        n = -some()
    assert isinstance(n, fs.IndexedSlices)
    np.testing.assert_array_equal(sess.run(n).values[:, 0], [-1, -3, -5])


def test_without_a_shape_they_cannot_be_dense():
    s = some(None)
    with pytest.raises(ValueError, match=r"(?s)without a dense_shape.*shape of the whole.*line"):
        fs.exp(s)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="expected int32 or int64 indices of slices, got float32"):
        fs.IndexedSlices([1.0], [0.0])
    with pytest.raises(TypeError, match="int32 or int64 dense_shape, got float32"):
        fs.IndexedSlices([1.0], [0], [2.0])
    # As in TensorFlow, what fits together is asked for where the whole is made.
    with pytest.raises(ValueError, match=r"expected slices of shape \[1\].*got \[2\]"):
        fs.convert_to_tensor(fs.IndexedSlices([1.0, 2.0], [0], [3]))
    with pytest.raises(ValueError, match=r"expected slices of shape \[1,3\].*got \[1,2\]"):
        fs.convert_to_tensor(fs.IndexedSlices([[1.0, 2.0]], [1], [3, 3]))


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_is_an_error_while_running(sess, index):
    with sess.graph.as_default():
        t = fs.convert_to_tensor(fs.IndexedSlices([[1.0, 2.0]], [index], [3, 2]))
    with pytest.raises(ValueError, match=rf"expected indices in \[0, 3\), got {index}"):
        sess.run(t)


def test_convert_to_tensor_or_indexed_slices():
    s = some()
    assert fs.convert_to_tensor_or_indexed_slices(s) is s
    assert fs.convert_to_tensor_or_indexed_slices(s, "float32") is s
    with pytest.raises(TypeError, match="expected float64, got float32"):
        fs.convert_to_tensor_or_indexed_slices(s, "float64")
    t = fs.convert_to_tensor_or_indexed_slices([1, 2], fs.float32, name="t")
    assert (t.name, t.dtype) == ("t:0", fs.float32)


def test_they_are_fetched_and_fed(sess):
    with sess.graph.as_default():
        s, n = some(), some(None)
        dense, doubled = s + 0.0, n.values * 2.0
    got = sess.run({"s": s, "n": [n]})
    assert isinstance(got["s"], fs.IndexedSlicesValue)
    np.testing.assert_array_equal(got["s"].indices, [0, 2, 0])
    np.testing.assert_array_equal(got["s"].dense_shape, [3, 2])
    assert got["n"][0].dense_shape is None
    fed = fs.IndexedSlicesValue([[7.0, 8.0]] * 3, [3, 1, 3], [4, 2])
    np.testing.assert_array_equal(sess.run(dense, {s: fed})[:, 0], [0, 7, 0, 14])
    two = [[7.0, 8.0]] * 3
    np.testing.assert_array_equal(sess.run(doubled, {n: (two, [3, 1, 3])})[0], [14, 16])
    with pytest.raises(ValueError, match=r"cannot feed the slices .* tuple of 3 arrays, got list"):
        sess.run(dense, {s: [1.0]})


def test_tuple_keeps_them_sparse(sess):
    with sess.graph.as_default():
        s, t = fs.tuple([some(), fs.constant(1.0)])
    assert isinstance(s, fs.IndexedSlices)
    (gate,) = s.op.control_inputs
    assert {op.type for op in gate.control_inputs} == {"Const"}
    np.testing.assert_array_equal(sess.run([s, t])[0].indices, [0, 2, 0])


def test_control_dependencies_on_slices():
    s = some()
    with fs.control_dependencies([s]):
        assert fs.no_op().control_inputs == [s.values.op]


# -- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lookup", [fs.gather, fs.nn.embedding_lookup])
def test_the_gradient_of_a_lookup_is_slices(sess, lookup):
    with sess.graph.as_default():
        v = fs.Variable(TABLE)
        rows = lookup(v, fs.constant([[0, 2], [0, 0]]))
        (g,) = fs.gradients(rows * rows, v)
        sess.run(fs.global_variables_initializer())
    assert isinstance(g, fs.IndexedSlices) and g.shape == [3, 2]
    got = sess.run(g)
    np.testing.assert_array_equal(got.indices, [0, 2, 0, 0])
    np.testing.assert_array_equal(got.values, 2 * TABLE[[0, 2, 0, 0]])
    np.testing.assert_array_equal(got.dense_shape, [3, 2])


def test_no_dense_operation_is_made_for_it():
    v = fs.Variable(TABLE)
    loss = fs.reduce_sum(fs.gather(v, [0, 2]))
    before = len(fs.get_default_graph())
    (g,) = fs.gradients(loss, v)
    made = fs.get_default_graph().operations_since(before)
    assert isinstance(g, fs.IndexedSlices)
    assert all(t.spec.shape != (3, 2) for op in made for t in op.outputs)


def test_a_single_index(sess):
    with sess.graph.as_default():
        x = fs.constant(TABLE)
        (g,) = fs.gradients(fs.gather(x, 1) ** 2.0, x)
    got = sess.run(g)
    np.testing.assert_array_equal(got.values, [[4, 6]])
    np.testing.assert_array_equal(got.indices, [1])


def test_unknown_shapes(sess):
    with sess.graph.as_default():
        x, i = fs.placeholder(fs.float64), fs.placeholder(fs.int64)
        (g,) = fs.gradients(fs.gather(x, i) ** 2.0, x)
    got = sess.run(g, {x: TABLE, i: [[2, 0]]})
    np.testing.assert_array_equal(got.values, [[8, 10], [0, 2]])
    np.testing.assert_array_equal(got.indices, [2, 0])
    np.testing.assert_array_equal(got.dense_shape, [3, 2])


def test_along_another_axis_it_is_dense(sess):
    with sess.graph.as_default():
        x = fs.constant(TABLE)
        (g,) = fs.gradients(fs.gather(x, [1, 1], axis=1), x)
    assert isinstance(g, fs.Tensor)
    np.testing.assert_array_equal(sess.run(g), [[0, 2]] * 3)


def test_slices_alone_are_put_together(sess):
    with sess.graph.as_default():
        v = fs.Variable(TABLE)
        a, b = fs.gather(v, [0, 2]), fs.gather(v, fs.constant([1, 1], fs.int64))
        (g,) = fs.gradients([a * a, b], v)
        sess.run(fs.global_variables_initializer())
    assert g.indices.dtype == fs.int64 and g.shape == [3, 2]
    got = sess.run(g)
    found = sorted(zip(got.indices.tolist(), got.values.tolist(), strict=True))
    assert found == [(0, [0, 2]), (1, [1, 1]), (1, [1, 1]), (2, [8, 10])]


def test_slices_and_a_tensor_make_a_tensor(sess):
    with sess.graph.as_default():
        v = fs.Variable(TABLE)
        (g,) = fs.gradients([fs.gather(v, [0, 0]), v * 3.0], v)
        sess.run(fs.global_variables_initializer())
    assert isinstance(g, fs.Tensor)
    np.testing.assert_array_equal(sess.run(g), [[5, 5], [3, 3], [3, 3]])


def test_through_identity_they_stay_and_through_arithmetic_they_become_dense(sess):
    with sess.graph.as_default():
        x = fs.constant(TABLE)
        (kept,) = fs.gradients(fs.gather(fs.identity(x), [0, 2]), x)
        (dense,) = fs.gradients(fs.gather(x * 2.0, [0, 2]), x)
    assert isinstance(kept, fs.IndexedSlices) and isinstance(dense, fs.Tensor)
    np.testing.assert_array_equal(sess.run(dense), [[2, 2], [0, 0], [2, 2]])


def test_given_cotangents_may_be_slices(sess):
    with sess.graph.as_default():
        x = fs.constant(TABLE)
        given = fs.IndexedSlices(np.full((1, 2), 2.0), [1], [3, 2])
        (g,) = fs.gradients(x * x, x, grad_ys=[given])
    np.testing.assert_array_equal(sess.run(g), [[0, 0], [8, 12], [0, 0]])


def test_given_slices_must_fit():
    x = fs.constant(TABLE, fs.float32)
    with pytest.raises(ValueError, match=r"its y's shape \[3,2\], got \[4,2\]"):
        fs.gradients(x * x, x, grad_ys=fs.IndexedSlices([[2.0, 2.0]], [1], [4, 2]))


def test_slices_are_no_xs_but_their_values_are(sess):
    with sess.graph.as_default():
        s = some()
        y = fs.reduce_sum(s * s)
        with pytest.raises(TypeError, match='got the slices "Const:0": give their values'):
            fs.gradients(y, s)
        (g,) = fs.gradients(y, s.values)
    np.testing.assert_array_equal(sess.run(g), [[12, 16], [6, 8], [12, 16]])


def test_second_derivatives(sess):
    with sess.graph.as_default():
        v = fs.Variable(TABLE)
        rows = fs.gather(v, [0, 2, 0])
        (g,) = fs.gradients(rows**3.0, v)
        (dense_second,) = fs.gradients(fs.convert_to_tensor(g) * [[1.0], [10.0], [100.0]], v)
        (second,) = fs.gradients(g.values, v)
        sess.run(fs.global_variables_initializer())
    factor = np.array([[2.0], [0.0], [100.0]])
    got = sess.run(fs.convert_to_tensor(dense_second))
    np.testing.assert_array_equal(got, 6 * TABLE * factor)
    np.testing.assert_array_equal(sess.run(second).values, 6 * TABLE[[0, 2, 0]])


def test_a_sparse_gradient_stays_so_in_a_step_of_any_size():
    """O11: the operations that run do not depend on the table's size."""
    programs = []
    for rows in (10, 100_000):
        with fs.Graph().as_default(), fs.Session() as sess:
            v = fs.Variable(fs.zeros([rows, 2]), name="v")
            (g,) = fs.gradients(fs.reduce_sum(fs.gather(v, [0, 2, 0]) ** 2.0), v)
            nodes = sess.plan(g).program.nodes
            programs.append([(n.op.type, n.outputs[0].spec.shape) for n in nodes])
    small, large = programs
    assert [t for t, _ in small] == [t for t, _ in large]
    assert [shape for _, shape in large if shape == (100_000, 2)] == [(100_000, 2)]  # the read


def test_the_users_line_of_a_wrong_whole(sess):
    with sess.graph.as_default():
        shape = fs.placeholder(fs.int32, [2])
        t = fs.convert_to_tensor(fs.IndexedSlices([[1.0, 2.0]], [1], shape))
        line = inspect.currentframe().f_lineno - 1
    with pytest.raises(ValueError, match=rf"(?s)slices of shape \[1,3\].*line {line}"):
        sess.run(t, {shape: [3, 3]})
