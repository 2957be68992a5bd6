"""Names, groups and other things of op functions that no value shows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import all_ops


@pytest.fixture(autouse=True)
def graph() -> Any:
    with fs.Graph().as_default() as g:
        yield g


def test_default_names_are_tensorflows() -> None:
    names = {
        "Placeholder": lambda x, b: fs.placeholder(fs.float32),
        "Add": lambda x, b: fs.add(x, x),
        "add": lambda x, b: x + x,
        "Sub": lambda x, b: fs.subtract(x, x),
        "sub": lambda x, b: x - x,
        "Mul": lambda x, b: fs.multiply(x, x),
        "mul": lambda x, b: x * x,
        "truediv": lambda x, b: x / x,
        "floordiv": lambda x, b: x // x,
        "mod": lambda x, b: x % x,
        "pow": lambda x, b: x**x,
        "Pow": lambda x, b: fs.pow(x, x),
        "Neg": lambda x, b: -x,
        "Abs": lambda x, b: abs(x),
        "MatMul": lambda x, b: fs.matmul(x, x),
        "matmul": lambda x, b: x @ x,
        "and": lambda x, b: b & b,
        "or": lambda x, b: b | b,
        "xor": lambda x, b: b ^ b,
        "LogicalNot": lambda x, b: ~b,
        "Greater": lambda x, b: x > x,
        "Less": lambda x, b: x < x,
        "Sum": lambda x, b: fs.reduce_sum(x),
        "Mean": lambda x, b: fs.reduce_mean(x),
        "Max": lambda x, b: fs.reduce_max(x),
        "Any": lambda x, b: fs.reduce_any(b),
        "Relu": lambda x, b: fs.nn.relu(x),
        "Softmax": lambda x, b: fs.nn.softmax(x),
        "Reshape": lambda x, b: fs.reshape(x, [-1]),
        "transpose": lambda x, b: fs.transpose(x),
        "concat": lambda x, b: fs.concat([x, x], 0),
        "stack": lambda x, b: fs.stack([x, x]),
        "strided_slice": lambda x, b: x[0],
        "ExpandDims": lambda x, b: fs.expand_dims(x, 0),
        "Cast": lambda x, b: fs.cast(x, fs.int32),
        "Identity": lambda x, b: fs.identity(x),
        "zeros": lambda x, b: fs.zeros([2]),
        "ones": lambda x, b: fs.ones([2]),
        "range": lambda x, b: fs.range(3),
        "one_hot": lambda x, b: fs.one_hot([1], 2),
        "clip_by_value": lambda x, b: fs.clip_by_value(x, 0.0, 1.0),
        "Select": lambda x, b: fs.where(b, x, x),
        "ArgMax": lambda x, b: fs.argmax(x),
        "Tile": lambda x, b: fs.tile(x, [1, 1]),
        "Pad": lambda x, b: fs.pad(x, [[0, 0], [0, 0]]),
    }
    for name, make in names.items():
        with fs.Graph().as_default():
            x = fs.placeholder(fs.float32, [2, 2], "x")
            b = fs.placeholder(fs.bool, [2, 2], "b")
            assert make(x, b).op.name == name


def test_constants_are_named_after_their_op(graph: Any) -> None:
    x = fs.placeholder(fs.float32)
    fs.add(x, 1.0)
    _ = 2.0 * x
    assert [o.name for o in graph.get_operations()] == [
        "Placeholder",
        "Add/y",
        "Add",
        "mul/x",
        "mul",
    ]


def test_python_numbers_take_the_tensors_dtype() -> None:
    for dtype in (fs.float16, fs.float64, fs.int8, fs.complex64):
        x = fs.placeholder(dtype)
        assert (x + 1).dtype == (1 + x).dtype == (x - 1).dtype == dtype
    assert (np.float64(2) * fs.constant([1.0], fs.float64)).dtype == fs.float64


def test_variables_are_taken_as_tensors() -> None:
    v = fs.Variable([1.0, 2.0])
    c = fs.constant([3.0, 4.0])
    results = [v + 1, 1 - v, c * v, v[0], fs.stack([v, c]), fs.concat([v, c], 0), fs.reduce_sum(v)]
    results += [fs.where(v > 0.0, v, c), fs.add_n([v, c]), [v, v] + c]  # noqa: RUF005
    results += [fs.maximum(0.0, v), v / 2]
    with fs.Session() as s:
        s.run(fs.global_variables_initializer())
        values = s.run(results)
    np.testing.assert_array_equal(values[2], [3, 8])
    np.testing.assert_array_equal(values[4], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(values[9], [[4, 6], [4, 6]])


def test_group_and_no_op(graph: Any) -> None:
    v = fs.Variable(1.0)
    both = fs.group(v.assign_add(1.0), [fs.no_op(name="nothing"), None], name="both")
    assert both.name == "both"
    assert {o.name for o in both.control_inputs} >= {"nothing"}
    with fs.Session() as s:
        s.run(v.initializer)
        assert s.run(both) is None
        assert s.run(v) == 2
        assert s.run(fs.group()) is None


def test_tuple_waits_for_all() -> None:
    v = fs.Variable(1.0)
    out = fs.tuple([fs.constant(1.0), None, fs.constant(2)], control_inputs=[v.assign_add(1.0)])
    assert out[1] is None
    assert out[0].op.name == "tuple/control_dependency"
    with fs.Session() as s:
        s.run(v.initializer)
        assert s.run(out[2]) == 2
        assert s.run(v) == 2


def test_tuple_takes_operations() -> None:
    v = fs.Variable(1.0)
    later = v.assign_add(1.0)
    op, x = fs.tuple([fs.no_op(), fs.constant(2.0)], control_inputs=[later])
    assert isinstance(op, fs.Operation)
    assert x.shape == ()
    with fs.Session() as s:
        s.run(v.initializer)
        assert s.run(op) is None
        assert s.run(v) == 2


def test_add_n_of_one() -> None:
    x = fs.constant(1.0)
    assert fs.add_n([x]) is x
    assert fs.add_n([x], name="sum").op.name == "sum"
    v = fs.Variable(1.0)
    assert fs.add_n([v, x]).shape == ()


def test_gradients_stop_where_they_are_told() -> None:
    x = fs.placeholder(fs.float32)
    assert fs.gradients(fs.stop_gradient(x), x) == [None]
    assert fs.gradients(fs.floor(x), x) == [None]
    with pytest.raises(LookupError, match="no gradient is allowed here: because"):
        fs.gradients(fs.prevent_gradient(x, "because"), x)


def test_shapes_of_shapes_are_known() -> None:
    x = fs.placeholder(fs.float32, [None, 3, 4])
    n = fs.shape(x)
    assert fs.reshape(x, [n[0], n[1] * n[2]]).shape.as_list() == [None, 12]
    assert fs.reshape(x, fs.concat([n[:1], [2, 6]], 0)).shape.as_list() == [None, 2, 6]
    assert fs.zeros(fs.stack([n[0], 5])).shape.as_list() == [None, 5]
    assert fs.fill(fs.gather(n, [1, 0]), 1.0).shape.as_list() == [3, None]
    assert fs.zeros(n[1:]).shape.as_list() == [3, 4]
    assert fs.zeros(n[::-1]).shape.as_list() == [4, 3, None]
    assert fs.range(n[1]).shape.as_list() == [3]
    assert fs.zeros(fs.cast(n, fs.int64)).shape.as_list() == [None, 3, 4]
    assert fs.zeros(fs.unstack(n)[1:]).shape.as_list() == [3, 4]
    assert fs.tile(x, [2, 1, 3]).shape.as_list() == [None, 3, 12]
    assert fs.reshape(fs.zeros([4, 6]), [-1, 8]).shape.as_list() == [3, 8]
    assert fs.random_normal(n).shape.as_list() == [None, 3, 4]


def test_equal_shapes_need_no_sums_in_gradients(graph: Any) -> None:
    x, y = fs.placeholder(fs.float32, [2, 3]), fs.placeholder(fs.float32, [2, 3])
    fs.gradients(x + y, [x, y])
    assert {"Sum", "SumTo", "Shape"}.isdisjoint({o.type for o in graph.get_operations()})
    b = fs.placeholder(fs.float32, [3])
    rows = fs.placeholder(fs.float32, [None, 3])
    fs.gradients(rows + b, [rows, b])
    types = [o.type for o in graph.get_operations()]
    assert types.count("Sum") == 1
    assert "SumTo" not in types


def test_strings() -> None:
    x = fs.constant([["a", "b"], ["c", "d"]])
    with fs.Session() as s:
        assert s.run(fs.concat([x[0], x[1]], 0)).tolist() == [b"a", b"b", b"c", b"d"]
        assert s.run(x + "!").tolist() == [[b"a!", b"b!"], [b"c!", b"d!"]]
        assert s.run(fs.equal(x, "a")).tolist() == [[True, False], [False, False]]
        assert s.run(x[0, 1]) == b"b"
        assert s.run(fs.reshape(x, [-1])[3]) == b"d"
        assert s.run(fs.where([True, False], x[0], x[1])).tolist() == [b"a", b"d"]
        assert s.run(fs.gather(x, [1])).tolist() == [[b"c", b"d"]]


def test_bfloat16() -> None:
    x = fs.cast(fs.constant([1.0, 2.0, 3.0]), fs.bfloat16)
    with fs.Session() as s:
        for y, want in (
            (x + 1, [2, 3, 4]),
            (x * x, [1, 4, 9]),
            (fs.reduce_sum(x), 6),
            (fs.reduce_mean(x), 2),
            (fs.maximum(x, 2), [2, 2, 3]),
            (fs.nn.relu(-x), [0, 0, 0]),
            (fs.sqrt(fs.square(x)), [1, 2, 3]),
            (fs.gradients(fs.square(x), x)[0], [2, 4, 6]),
            (fs.reduce_max(x), 3),
            (x[0], 1),
        ):
            value = s.run(y)
            assert value.dtype.name == "bfloat16"
            np.testing.assert_array_equal(value.astype("f4"), want)


def test_ops_can_be_pickled() -> None:
    for cls in all_ops().values():
        if cls.__module__.startswith("flowscope.ops."):
            assert pickle.loads(pickle.dumps(cls)) is cls
    assert pickle.loads(pickle.dumps(fs.add(1, 2).op.definition)) == fs.add(1, 2).op.definition


def test_integer_division_by_zero_is_an_error() -> None:
    zero = fs.placeholder(fs.int32)
    with fs.Session() as s:
        for y in (7 // zero, 7 % zero, fs.constant([1, 2]) // zero, fs.constant(1) // 0):
            with pytest.raises(fs.errors.InvalidArgumentError, match="integer division by zero"):
                s.run(y, {zero: 0})
        assert np.isinf(s.run(fs.constant(1.0) / 0.0))


def test_a_stack_of_python_numbers_takes_the_dtype_that_fits_all():
    with fs.Graph().as_default(), fs.Session() as sess:
        mixed, nested = fs.stack([1, 2.5]), fs.stack([[1, 2], [3, 4]], axis=1)
        assert (mixed.dtype, nested.dtype) == (fs.float32, fs.int32)
        assert sess.run(mixed).tolist() == [1.0, 2.5]
        assert sess.run(nested).tolist() == [[1, 3], [2, 4]]
