"""`vectorized_map`; the values are those of TensorFlow 2.21."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError, UnimplementedError

X = np.arange(6, dtype="f").reshape(3, 2)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_values_and_gradients(graph, mode):
    x, w = fs.constant(X), fs.constant([[1.0, 2.0]])
    called = []

    def outer(pair):
        called.append(1)
        part, one = pair
        return {"outer": fs.tensordot(part, part * one, 0), "count": fs.size(part)}

    y = fs.vectorized_map(outer, (x, w))
    g = fs.gradients(y["outer"], [x, w])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        values, (gx, gw) = sess.run([y, g])
    assert len(called) == 1
    assert y["outer"].shape == [3, 2, 2]
    assert values["count"].tolist() == [2, 2, 2]
    wanted = X[:, :, None] * (X * [1, 2])[:, None, :]
    np.testing.assert_array_equal(values["outer"], wanted)
    sums = X.sum(1, keepdims=True)
    np.testing.assert_allclose(gx, (X * [1, 2]).sum(1, keepdims=True) + sums * [1, 2])
    np.testing.assert_allclose(gw, (X * sums).sum(0, keepdims=True))


def test_all_of_length_one_and_of_unknown_length(graph, sess):
    one = fs.vectorized_map(lambda p: p + 1, fs.constant([[5]]))
    assert sess.run(one).tolist() == [[6]]
    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.vectorized_map(fs.reduce_sum, x)
    assert sess.run(y, {x: X}).tolist() == [1, 5, 9]


def test_errors(graph):
    with pytest.raises(DTypeError, match="expected a function as fn, got 3"):
        fs.vectorized_map(3, X)
    with pytest.raises(DTypeError, match="expected tensors as its results, got <fs.Operation"):
        fs.vectorized_map(lambda p: fs.no_op(), X)
    with pytest.raises(UnimplementedError, match="a map is a loop: use operations on a batch"):
        fs.vectorized_map(fs.exp, X, fallback_to_while_loop=False)
    with pytest.raises(InvalidArgumentError, match="elems must have one length"):
        fs.vectorized_map(lambda p: p[0], (X, X[:2]))
    with pytest.raises(InvalidArgumentError, match="is a scalar"):
        fs.vectorized_map(fs.exp, 1.0)


def test_operations_are_not_made_of_definitions(graph):
    node = fs.constant(1).op.node_def
    with pytest.raises(UnimplementedError, match="fs.raw_ops makes operations by op type"):
        fs.Operation.from_node_def(node, graph)
