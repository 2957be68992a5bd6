"""Python functions as operations: what they get, what they may return, how they fail."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import flowscope as fs
from flowscope import errors


def test_the_function_gets_arrays(sess):
    seen = []

    def f(a, b, c):
        seen.extend([a, b, c])
        return a.sum() + b

    x = fs.constant([[1.0, 2.0]])
    y = fs.py_func(f, [x, np.float32(3.0), "text"], fs.float32)
    assert y.dtype is fs.float32
    assert y.shape.dims is None
    assert sess.run(y) == 6
    assert type(seen[0]) is np.ndarray
    assert seen[0].dtype == np.float32
    assert type(seen[1]) is np.float32
    assert seen[2] == b"text"


def test_the_function_must_not_change_what_it_gets(sess):
    def f(a):
        a[0] = 9
        return a

    with pytest.raises(errors.InvalidArgumentError, match="read-only"):
        sess.run(fs.py_func(f, [fs.constant([1.0])], fs.float32))


def test_results_are_copies(sess):
    kept = np.zeros(3, "f4")
    y = fs.py_func(lambda: kept, [], fs.float32)
    value = sess.run(y + 0.0)
    got = sess.run(y)
    kept += 1
    np.testing.assert_array_equal(got, 0)
    np.testing.assert_array_equal(value, 0)


def test_several_results_none_and_texts(sess):
    a, b = fs.py_func(lambda: (np.float64(1), [2, 3]), [], [fs.float64, fs.int64])
    first, second = sess.run([a, b])
    assert first == 1
    np.testing.assert_array_equal(second, [2, 3])
    ran = []
    op = fs.py_func(lambda: ran.append(1), [], [])
    assert sess.run(op) is None
    assert ran == [1]
    text = fs.py_func(lambda t: t + b"!", ["a"], fs.string)
    assert sess.run(text) == b"a!"
    texts = fs.py_func(lambda: np.array(["a", "\u00e9"]), [], fs.string)
    assert sess.run(texts).tolist() == [b"a", "\u00e9".encode()]
    assert sess.run(fs.py_func(lambda: [np.int32(7)], [], [fs.int32])) == [7]


@pytest.mark.parametrize(
    ("value", "dtype"), [(1.5, "float32"), (2, "int32"), (2, "float64"), (True, "bool")]
)
def test_plain_numbers_take_the_dtype(sess, value, dtype):
    got = sess.run(fs.py_func(lambda: value, [], dtype))
    assert got == value
    assert got.dtype == dtype


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.float64(1), "expected float32 as result 0 of <lambda>, got float64: return np.asarray"),
        (None, "got None"),
        ([np.float32(1), np.float32(2)], "expected 1 results of <lambda>, got 2"),
    ],
)
def test_results_must_have_the_dtype(sess, value, says):
    with pytest.raises(errors.InvalidArgumentError, match=says):
        sess.run(fs.py_func(lambda: value, [], fs.float32))


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (ValueError("oops"), errors.InvalidArgumentError),
        (TypeError("oops"), errors.InvalidArgumentError),
        (StopIteration("oops"), errors.OutOfRangeError),
        (MemoryError("oops"), errors.ResourceExhaustedError),
        (NotImplementedError("oops"), errors.UnimplementedError),
        (KeyError("oops"), errors.UnknownError),
        (errors.DataLossError("oops"), errors.DataLossError),
    ],
)
def test_errors_name_the_line_of_the_function_and_that_of_the_operation(sess, raised, error):
    def fails():
        raise raised

    with pytest.raises(error, match="oops") as e:
        sess.run(fs.py_func(fails, [], fs.float32))
    assert f"{type(raised).__name__} in fails (line " in e.value.message
    assert "test_py_functions.py" in e.value.message
    assert e.value.op_type == "PyFunc"
    assert "test_py_functions.py" in e.value.origin


def test_a_stateful_function_runs_each_time_and_a_stateless_one_may_be_merged(sess):
    runs = []

    def f(a):
        runs.append(1)
        return a

    x = fs.constant(1.0)
    y, z = [fs.py_func(f, [x], fs.float32) for _ in range(2)]
    sess.run([y, z])
    assert len(runs) == 2
    assert fs.py_func(f, [x], fs.float32).op.definition.is_stateful
    pure = fs.py_func(f, [x], fs.float32, stateful=False)
    assert pure.op.definition.is_pure
    assert sess.run(pure) == 1


def test_no_gradient_flows_through(graph):
    x = fs.constant(2.0)
    assert fs.gradients(fs.py_func(np.square, [x], fs.float32), [x]) == [None]
    with pytest.raises(LookupError, match="custom_gradient"):
        fs.gradients(fs.py_function(np.square, [x], fs.float32), [x])


def test_custom_gradients_may_use_python_functions(sess):
    @fs.custom_gradient
    def cube(x):
        y = fs.py_func(lambda a: a**3, [x], fs.float32)
        return y, lambda dy: dy * fs.py_func(lambda a: 3 * a**2, [x], fs.float32)

    x = fs.constant(2.0)
    assert sess.run(fs.gradients(cube(x), [x])[0]) == 12


def test_py_function_and_numpy_function(sess):
    x = fs.constant([1.0, 2.0])
    y = fs.py_function(func=lambda a: a.numpy() * 2, inp=[x], Tout=fs.float32)
    np.testing.assert_array_equal(sess.run(y), [2, 4])
    z = fs.py_function(lambda a, b: [a * 2, b.numpy()], [1.0, 3], [fs.float32, fs.int32])
    assert sess.run(z) == [2, 3]
    assert sess.run(fs.numpy_function(np.sum, [x], fs.float32)) == 3


def test_the_function_lives_as_long_as_the_graph():
    with fs.Graph().as_default() as g:
        y = fs.py_func(lambda: np.float32(5), [], fs.float32)
    text = g.text(exact=True)
    name = y.name
    again = fs.Graph.from_text(text)
    with fs.Session(graph=again) as sess:
        assert sess.run(name) == 5
    del g, y
    gc.collect()
    with fs.Session(graph=again) as sess, pytest.raises(errors.NotFoundError, match="lives in the"):
        sess.run(name)


def test_the_function_must_be_one(graph):
    with pytest.raises(errors.InvalidArgumentError, match="expected a function"):
        fs.py_func(3, [], fs.float32)


@pytest.mark.parametrize("value", [object(), {}, {1}, np.datetime64("2020"), [object()]])
def test_what_is_no_array_is_an_internal_error(sess, value):
    x = fs.py_func(lambda: [value], [], [fs.int64])
    with pytest.raises(errors.InternalError, match="as result 0 of <lambda>, got"):
        sess.run(x)


def test_functions_without_results(sess):
    assert fs.py_func(lambda: None, [], [], stateful=False) == []
    done = fs.py_func(list, [], [])
    assert isinstance(done, fs.Operation)
    assert sess.run(done) is None
    with pytest.raises(errors.InvalidArgumentError, match="expected 0 results of"):
        sess.run(fs.py_func(lambda: 5, [], []))
