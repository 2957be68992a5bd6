"""Functions that take sparse tensors and slices where TensorFlow does; bits; values known early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with fs.Graph().as_default():
        yield


def _sparse() -> Any:
    return fs.SparseTensor([[0, 1], [1, 0]], fs.constant([-4.0, 2.0]), [2, 3])


def _slices() -> Any:
    return fs.IndexedSlices(fs.constant([[2.0]]), fs.constant([1]), fs.constant([3, 1]))


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (fs.abs, [4, 2]),
        (fs.square, [16, 4]),
        (fs.sign, [-1, 1]),
        (fs.negative, [4, -2]),
        (fs.tanh, np.tanh([-4, 2])),
        (fs.asinh, np.arcsinh([-4, 2])),
        (lambda x: fs.sqrt(fs.abs(x)), [2, 2**0.5]),
        (lambda x: fs.erf(fs.abs(x) * 0.0), [0, 0]),
        (lambda x: fs.cast(x, fs.int32), [-4, 2]),
        (fs.identity, [-4, 2]),
        (fs.stop_gradient, [-4, 2]),
        (fs.to_float, [-4, 2]),
    ],
)
def test_a_sparse_tensor_keeps_its_places(function: Any, want: Any) -> None:
    x = _sparse()
    y = function(x)
    assert isinstance(y, fs.SparseTensor)
    with fs.Session() as session:
        found = session.run(y)
    np.testing.assert_allclose(found.values, want, rtol=1e-6)
    np.testing.assert_array_equal(found.indices, [[0, 1], [1, 0]])


def test_shapes_of_sparse_tensors() -> None:
    x = _sparse()
    with fs.Session() as session:
        shape, size, rank, zeros = session.run(
            [fs.shape(x), fs.size(x), fs.rank(x), fs.zeros_like(x)]
        )
    assert (shape.tolist(), size, rank) == ([2, 3], 6, 2)
    np.testing.assert_array_equal(zeros, np.zeros((2, 3), np.float32))
    assert fs.is_tensor(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fs.scalar_mul(2.0, x),
        fs.identity,
        fs.stop_gradient,
        lambda x: fs.cast(x, fs.int32),
    ],
)
def test_slices_stay_slices(function: Any) -> None:
    assert isinstance(function(_slices()), fs.IndexedSlices)


def test_slices_of_any_parts_can_be_made() -> None:
    fs.IndexedSlices(fs.constant([1.0, 2.0]), fs.constant([[3, 2, 0], [4, 5, 1]]))


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_operators_on_the_bits_of_integers(mode: str) -> None:
    x, y = fs.constant([1, 2]), fs.constant([3, 1])
    truth = fs.constant([True, False])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        found = session.run([x & y, x | y, x ^ y, ~x, 1 | x, truth & True, ~truth])
    want = [[1, 0], [3, 3], [2, 3], [-2, -3], [1, 3], [True, False], [False, True]]
    assert [v.tolist() for v in found] == want
    with pytest.raises(TypeError, match="bool"):
        fs.constant([1.0]) & fs.constant([1.0])


def test_values_that_are_known_through_simple_operations() -> None:
    known = fs.get_static_value
    np.testing.assert_array_equal(known(fs.fill([2], 1.0)), [1, 1])
    assert known(fs.cast(fs.constant([1.5]), fs.float64)).dtype == np.float64
    assert known(fs.equal(fs.constant(1), 1))
    assert known(fs.stack([np.ones(2), np.ones(2)])).dtype == np.float64
    assert known(fs.unstack(fs.constant([[1, 2]]))[0]).tolist() == [1, 2]
    assert known("hi") == "hi"
    assert known(fs.Variable(1.0)) is None
    assert known(fs.placeholder(fs.float32)) is None
    assert known(fs.cast(fs.placeholder(fs.float32), fs.int32)) is None


def test_tensors_in_a_list_take_the_dtype_beside_it() -> None:
    i = fs.constant(3)
    both = fs.concat([fs.constant([[1]], fs.int64), [[i]]], 1)
    assert both.dtype == fs.int64
    with fs.Session() as session:
        assert session.run(both).tolist() == [[1, 3]]
    with pytest.raises(TypeError):
        fs.convert_to_tensor([fs.constant("a"), 1], fs.int32)


def test_an_array_of_a_tensor_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="run it in a session"):
        np.array(fs.constant(1))


def test_negative_sizes_are_refused_and_empty_ones_worked_out() -> None:
    x, none = fs.ones([4]), fs.ones([0])
    with pytest.raises(fs.errors.InvalidArgumentError, match="at most one -1"):
        fs.reshape(x, [-5])
    fed = fs.placeholder(fs.int32, [None])
    y, z = fs.reshape(x, fed), fs.reshape(none, fed)
    assert fs.reshape(none, [0, -1]).shape.as_list() == [0, 1]
    with fs.Session() as session:
        assert session.run(z, {fed: [0, -1]}).shape == (0, 1)
        assert session.run(y, {fed: [-1, 2]}).shape == (2, 2)
        for sizes in ([-5], [-1, -1], [-2, -2], [4, -2]):
            with pytest.raises(fs.errors.InvalidArgumentError, match="at most one -1"):
                session.run(y, {fed: sizes})
