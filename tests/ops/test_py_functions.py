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


MODES = ("compiled", "op", "tokens")


@pytest.mark.parametrize("mode", MODES)
def test_py_function_computes_with_operations(graph, mode):
    x = fs.constant(3.0)

    def f(a, b):
        assert isinstance(a, fs.Tensor) and a.dtype is fs.float32 and a.shape == []
        assert (a.numpy(), float(a), int(a)) == (3, 3, 3)
        return [fs.cond(a > 1, lambda: a * b, lambda: b) if a > 2 else b, fs.range(1, 3)]

    y, n = fs.py_function(f, [x, [1.0, 2.0]], [fs.float32, fs.int32])
    text = fs.py_function(lambda s: fs.strings.join([s, "b"]), [["a"]], fs.string)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert [v.tolist() for v in sess.run([y, n, text])] == [[3, 6], [1, 2], [b"ab"]]


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_py_function_are_known_to_any_order(graph, mode):
    x, k = fs.constant(3.0), fs.constant(2)
    y, z = fs.py_function(lambda a, n: (a**3, fs.cast(n, fs.float32) * a), [x, k], [fs.float32] * 2)
    first = fs.gradients(y, x)[0]
    assert first.shape == x.shape
    higher = fs.gradients(first, x)[0]
    both, of_k = fs.gradients([y, z], [x, k])
    assert of_k is None
    rounded = fs.gradients(fs.py_function(np.square, [x], fs.float32), x)[0]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert sess.run([y, first, higher, both, rounded]) == [27, 27, 18, 29, 0]


def test_the_gradient_of_py_function_in_a_loop(sess):
    x = fs.constant(3.0)

    def body(i, s):
        doubled = fs.py_function(lambda a: a * 2.0, [s], fs.float32)
        return i + 1, fs.ensure_shape(doubled, [])

    y = fs.while_loop(lambda i, s: i < 3, body, [0, x])[1]
    assert sess.run(fs.gradients(y, x)) == [8]


def test_effects_in_py_function_happen_once_and_in_order(sess):
    def f(a):
        v = fs.Variable(2.0)
        first = fs.identity(v.assign_add(a)).numpy()
        drawn = fs.random_uniform([])
        assert (drawn - drawn.numpy()).numpy() == 0
        last = fs.while_loop(lambda i: i < 10.0, lambda i: i + a, [a])
        return first, v, fs.gradients(last * last, a)[0]

    y = fs.py_function(f, [fs.constant(3.0)], [fs.float32] * 3)
    assert sess.run(y) == [5, 5, 96]


def test_errors_in_py_function_name_the_users_line(sess):
    y = fs.py_function(lambda a: fs.reshape(a, [2]), [1.0], fs.float32)
    with pytest.raises(fs.errors.InvalidArgumentError, match=r"line \d+ of .*test_py_functions"):
        sess.run(y)
    v = fs.Variable(1.0)
    with pytest.raises(fs.errors.InvalidArgumentError, match="give what the function uses"):
        sess.run(fs.py_function(lambda: v + 1.0, [], fs.float32))
    with pytest.raises(fs.errors.UnimplementedError, match="use numpy"):
        sess.run(fs.py_function(lambda a: a.eval(), [1.0], fs.float32))


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
