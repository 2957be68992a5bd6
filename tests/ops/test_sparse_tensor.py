"""Sparse tensors as objects: made, fed, fetched, written; and what fails."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

VALUE = fs.SparseTensorValue([[0, 1], [2, 0]], np.array([1.5, 2.5], "f4"), [3, 2])
DENSE = np.array([[0, 1.5], [0, 0], [2.5, 0]], "f4")


def same(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_sparse_tensor_is_fetched_as_its_value(sess):
    x = fs.SparseTensor([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
    found = sess.run({"x": x, "y": [x.values, x]})
    assert isinstance(found["x"], fs.SparseTensorValue)
    same(found["x"], VALUE)
    same(found["y"][1], VALUE)
    with sess.as_default():
        same(x.eval(), VALUE)


def test_what_is_known_of_it(graph):
    x = fs.SparseTensor.from_value(VALUE)
    assert x.shape == x.get_shape() == [3, 2]
    assert x.rank == 2
    assert x.dtype is fs.float32
    assert x.graph is graph
    assert x.op is x.values.op
    assert fs.SparseTensor.from_value(x) is x
    assert "float32[3,2]" in repr(x)
    assert x.consumers() == []
    other = x.with_values([1, 2])
    assert other.dtype is fs.int32
    assert other.indices is x.indices
    unknown = fs.SparseTensor(fs.placeholder("int64"), fs.placeholder("int32"), [1, 2, 3])
    assert unknown.rank == 3
    with pytest.raises(ValueError, match="do not fit"):
        unknown.set_shape([2, 2, 3])


@pytest.mark.parametrize("fed", [VALUE, tuple(VALUE)])
@pytest.mark.parametrize("shape", [None, [3, 2], [None, 2]])
def test_a_placeholder_is_fed_by_a_value(sess, fed, shape):
    x = fs.sparse_placeholder(fs.float32, shape, name="x")
    assert x.shape == fs.TensorShape(shape)
    assert [t.op.name for t in (x.indices, x.values, x.dense_shape)] == [
        "x/indices",
        "x/values",
        "x/shape",
    ]
    y = fs.sparse_tensor_to_dense(x)
    np.testing.assert_array_equal(sess.run(y, {x: fed}), DENSE)
    same(sess.run(x, {x: fed}), VALUE)


def test_a_known_shape_need_not_be_fed(sess):
    x = fs.sparse_placeholder(fs.float32, [3, 2])
    y = fs.sparse_tensor_to_dense(x)
    parts = {x.indices: VALUE.indices, x.values: VALUE.values}
    np.testing.assert_array_equal(sess.run(y, parts), DENSE)


def test_any_sparse_tensor_can_be_fed(sess):
    x = fs.SparseTensor([[0]], [1.0], [2])
    y = fs.sparse_tensor_to_dense(x)
    np.testing.assert_array_equal(sess.run(y, {x: ([[1]], [3.0], [2])}), [0, 3])


@pytest.mark.parametrize("value", [[1.0], (1, 2), DENSE])
def test_other_values_are_refused(sess, value):
    x = fs.sparse_placeholder(fs.float32)
    with pytest.raises(InvalidArgumentError, match=r"feed the sparse tensor .*SparseTensorValue"):
        sess.run(x.values, {x: value})


def test_conversion(graph):
    x = fs.convert_to_tensor_or_sparse_tensor(VALUE, fs.float32)
    assert isinstance(x, fs.SparseTensor)
    assert fs.convert_to_tensor_or_sparse_tensor(x) is x
    assert isinstance(fs.convert_to_tensor_or_sparse_tensor([1.0]), fs.Tensor)
    with pytest.raises(DTypeError, match="expected int32, got float32"):
        fs.convert_to_tensor_or_sparse_tensor(x, fs.int32)
    with pytest.raises(DTypeError, match="SparseTensorValue"):
        fs.SparseTensor.from_value([1])
    with pytest.raises(DTypeError, match=r"expected fs.SparseTensor, got"):
        fs.sparse_reorder([1.0])


def test_specs():
    spec = fs.SparseTensorSpec([3, None], fs.float32)
    assert spec.shape == [3, None]
    assert spec.rank == 2
    assert spec.dtype is fs.float32
    assert spec.value_type is fs.SparseTensor
    assert spec == fs.SparseTensorSpec((3, None), "float32")
    assert spec != fs.SparseTensorSpec([3, None], "int32")
    assert hash(spec) == hash(fs.SparseTensorSpec((3, None)))
    assert spec.is_compatible_with(VALUE)
    assert spec.is_compatible_with(fs.SparseTensorSpec())
    assert not spec.is_compatible_with(DENSE)
    assert fs.SparseTensorSpec.from_value(VALUE) == fs.SparseTensorSpec([3, 2])
    assert "Dimension(3), Dimension(None)" in repr(spec)
    with pytest.raises(DTypeError):
        fs.SparseTensorSpec.from_value(DENSE)


@pytest.mark.parametrize(
    "parts",
    [
        ([0, 1], [1.0, 2.0], [3]),
        ([[0, 1]], [1.0, 2.0], [3, 2]),
        ([[0, 1]], [1.0], [3]),
        ([[0, 1]], 1.0, [3, 2]),
    ],
)
def test_parts_must_fit_together(graph, parts):
    with pytest.raises(InvalidArgumentError, match=r"expected indices \[n, rank\]"):
        fs.SparseTensor(*parts)


def test_collections_are_written_with_sparse_tensors(graph):
    x = fs.sparse_placeholder(fs.float32, [None, 2], name="x")
    fs.add_to_collection("inputs", x)
    meta = fs.train.export_meta_graph()
    with fs.Graph().as_default():
        fs.train.import_meta_graph(meta)
        (y,) = fs.get_collection("inputs")
        assert y.shape == [None, 2]
        assert y.indices.name == "x/indices:0"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: fs.sparse_reorder(fs.SparseTensor([[3, 0]], [1.0], x)),
         "inside [3,2], got [3, 0]"),
        (lambda x: fs.sparse_tensor_to_dense(fs.SparseTensor([[1, 0], [0, 1]], [1.0, 1.0], x)),
         "row-major order, each once, got [0, 1]"),
        (lambda x: fs.sparse_tensor_to_dense(fs.SparseTensor([[1, 0], [1, 0]], [1.0, 1.0], x)),
         "out of place"),
        (lambda x: fs.sparse_reshape(fs.SparseTensor([[1, 0]], [1.0], x), [4, 2]), "6 elements"),
        (lambda x: fs.sparse_reshape(fs.SparseTensor([[1, 0]], [1.0], x), [-1, -1]), "one -1"),
        (lambda x: fs.sparse_reset_shape(fs.SparseTensor([[1, 0]], [1.0], x), [2, 2]),
         "holds [3,2], got [2,2]"),
        (lambda x: fs.sparse_tensor_dense_matmul(fs.SparseTensor([[5, 0]], [1.0], x),
                                                 fs.ones([2, 1])), "inside [3,2]"),
        (lambda x: fs.sparse_concat(0, [fs.SparseTensor([[0, 0]], [1.0], x),
                                        fs.SparseTensor([[0, 0]], [1.0], [3, 3])]), "axis 0"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(sess, call, says):
    shape = fs.placeholder(fs.int64, [2])
    found = call(shape)
    with pytest.raises(InvalidArgumentError) as e:
        sess.run(found, {shape: [3, 2]})
    assert says in str(e.value)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: fs.sparse_split(x, 2, 0), InvalidArgumentError, "by name"),
        (lambda x: fs.sparse_concat(0, []), InvalidArgumentError, "got none"),
        (lambda x: fs.sparse_add([1.0], [1.0]), InvalidArgumentError, "two dense"),
        (lambda x: fs.sparse_add(x, x.with_values([1, 2])), InvalidArgumentError, "one dtype"),
        (lambda x: x * fs.ones([1, 3, 2]), InvalidArgumentError, "rank of 2 at most"),
        (lambda x: fs.sparse_to_indicator(x, 3), DTypeError, "integers"),
        (lambda x: fs.sparse_merge([x], x, [3, 4]), InvalidArgumentError, "sizes of vocabularies"),
        (lambda x: fs.sparse_mask(x, [1]), DTypeError, "IndexedSlices"),
        (lambda x: fs.sparse_tensor_dense_matmul(x, [[1.0]]), InvalidArgumentError, "expected 2"),
        (lambda x: fs.nn.embedding_lookup_sparse([[1.0]], x, None), DTypeError, "integer ids"),
        (lambda x: fs.nn.embedding_lookup_sparse([[1.0]], x, None, combiner="max"),
         InvalidArgumentError, "sqrtn"),
    ],
)  # fmt: skip
def test_arguments_are_checked(graph, call, error, says):
    with pytest.raises(error, match=says):
        call(fs.SparseTensor.from_value(VALUE))


def test_strings_in_sparse_tensors(sess):
    x = fs.SparseTensor([[0, 1], [1, 0]], ["a", "b"], [2, 2])
    dense = sess.run(fs.sparse_tensor_to_dense(x))
    assert dense.tolist() == [[b"", b"a"], [b"b", b""]]
    back = sess.run(fs.sparse.from_dense(fs.sparse_tensor_to_dense(x)))
    assert back.values.tolist() == [b"a", b"b"]


def test_an_identity_matrix(sess):
    np.testing.assert_array_equal(
        sess.run(fs.sparse_tensor_to_dense(fs.sparse.eye(2, 3))), np.eye(2, 3)
    )


def test_only_rows_that_were_looked_up_are_trained(sess):
    """SPEC O11: the table's gradient is sparse, whatever its size."""
    table = fs.Variable(np.ones((1000, 2), "f4"))
    ids = fs.SparseTensor([[0, 0], [0, 1], [1, 0]], fs.constant([7, 5, 7], fs.int64), [2, 2])
    y = fs.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    (g,) = fs.gradients(y, table)
    assert isinstance(g, fs.IndexedSlices)
    sess.run(fs.global_variables_initializer())
    found = sess.run(g)
    assert found.indices.tolist() == [5, 7]
    assert found.values.tolist() == [[1, 1], [2, 2]]
