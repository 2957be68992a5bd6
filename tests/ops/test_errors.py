"""What op functions say when arguments do not fit: what was expected, what came, and where."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

#: (call of tensors, their dtypes and shapes, error class, what its text holds).
STATIC: list[tuple[Callable[..., Any], list[tuple[str, Any]], type[Exception], list[str]]] = []


def static(
    call: Any, *inputs: tuple[str, Any], error: Any = InvalidArgumentError, says: str
) -> None:
    STATIC.append((call, list(inputs), error, says.split("|")))


def f(*shape: Any) -> tuple[str, Any]:
    return "float32", list(shape)


def i(*shape: Any) -> tuple[str, Any]:
    return "int32", list(shape)


b = ("bool", [2, 3])

for _call in (fs.add, fs.multiply, fs.maximum, fs.realdiv, fs.squared_difference, fs.less):
    static(_call, f(2, 3), f(2, 4), says="[2,3]|[2,4]|broadcast")
    static(
        _call,
        f(2, 3),
        ("float64", [2, 3]),
        error=DTypeError,
        says="expected both of one dtype|float32|float64",
    )
    static(_call, b, b, error=DTypeError, says="expected|got bool")
for _call in (fs.exp, fs.sqrt, fs.sigmoid, fs.floor, fs.nn.elu, fs.nn.softmax, fs.is_nan):
    static(_call, i(2), error=DTypeError, says="expected|floating-point|got int32")
static(fs.logical_and, f(2), f(2), error=DTypeError, says="expected|bool|got float32")
static(fs.matmul, f(2, 3), f(2, 3), says="inner dimensions|expected 3|got 2")
static(fs.matmul, f(3), f(3, 2), says="rank 2|got [3]")
static(fs.matmul, f(2, 3), i(3, 2), error=DTypeError, says="float32|int32")
static(fs.matmul, f(2, 2, 3), f(3, 3, 4), says="[2]|[3]")
static(lambda x: fs.reduce_sum(x, 2), f(2, 3), says="expected an axis in [-2, 2)|got 2")
static(lambda x: fs.reduce_sum(x, [0, -2]), f(2, 3), says="each axis once|[0, -2]")
static(fs.reduce_max, b, error=DTypeError, says="expected|got bool")
static(fs.reduce_all, f(2), error=DTypeError, says="bool|got float32")
static(lambda x: fs.argmax(x, 1), f(2), says="expected an axis|got 1")
static(lambda x: fs.cumsum(x, 1), f(2), says="expected an axis|got 1")
static(lambda x: fs.reshape(x, [4]), f(2, 3), says="6 elements|got [4]|[2,3]")
static(lambda x: fs.reshape(x, [4, -1]), f(2, 3), says="6 elements|got [4,?]")
static(lambda x: fs.reshape(x, [-1, -1]), f(2, 3), says="at most one -1|[-1, -1]")
static(lambda x: fs.reshape(x, [2.5]), f(2, 3), error=DTypeError, says="int32|got float32")
static(lambda x: fs.transpose(x, [0, 0]), f(2, 3), says="permutation of 2 axes|got [0, 0]")
static(lambda x: fs.squeeze(x, 0), f(2, 3), says="length 1 at axis 0|got [2,3]")
static(lambda x: fs.expand_dims(x, 4), f(2, 3), says="expected an axis in [-3, 3)|got 4")
static(lambda x, y: fs.concat([x, y], 0), f(2, 3), f(2, 4), says="axis 0|[2,3]|[2,4]")
static(lambda x, y: fs.concat([x, y], 0), f(2), i(2), error=DTypeError, says="float32|int32")
static(lambda x, y: fs.concat([x, y], 0), f(), f(), says="rank 1|got []")
static(lambda x, y: fs.stack([x, y]), f(2), f(3), says="one shape|[2]|[3]")
static(lambda x: fs.unstack(x, 3), f(2), says="expected 3|got 2")
static(lambda x: fs.split(x, 2, 1), f(2, 3), says="multiple of 2|got 3")
static(lambda x: fs.split(x, [1, 1], 1), f(2, 3), says="add up to 3|got [1, 1]")
static(lambda x: fs.tile(x, [2]), f(2, 3), says="expected 2 multiples|got 1")
static(lambda x: fs.pad(x, [[1, 1]]), f(2, 3), says="[2,2]|got [1,2]")
static(lambda x: x[2], f(2, 3), says="expected an index in [-2, 2)|got 2")
static(lambda x: x[0, 0, 0], f(2, 3), says="at most 2 indices|got 3")
static(lambda x: x[::0], f(2, 3), says="step|got 0")
static(lambda x: x["a"], f(2, 3), error=DTypeError, says="expected integers|got 'a'")
static(lambda x, y: x[y], f(2, 3), f(), error=DTypeError, says="integer|got float32")
static(lambda x: fs.slice(x, [0, 1], [1, 3]), f(2, 3), says="inside an axis of 3|got 3 from 1")
static(fs.gather, f(2), f(2), error=DTypeError, says="integer|got float32")
static(fs.gather_nd, f(2), i(1, 2), says="at most 1|got 2")
static(lambda c, x, y: fs.where(c, x, y), b, f(2, 3), f(2, 4), says="one shape|[2,3]|[2,4]")
static(lambda c, x: fs.where(c, x, x), i(2, 3), f(2, 3), error=DTypeError, says="bool|got int32")
static(lambda c, x: fs.where(c, x, x), ("bool", [4]), f(2, 3), says="[2,3]|got [4]")
static(lambda x: fs.broadcast_to(x, [2]), f(3), says="[2]|[3]")
static(lambda x: fs.fill([2], x), f(2), says="scalar|got [2]")
static(lambda x: fs.fill([-2], x), f(), says="negative|got [-2]")
static(lambda x: fs.cast(x, "string"), f(2), error=DTypeError, says="cast to string|got float32")
static(lambda x, y: fs.add_n([x, y]), f(2), f(3), says="one shape|[2]|[3]")
static(lambda x, y: fs.add_n([x, y]), f(2), i(2), error=DTypeError, says="float32|int32")
static(fs.nn.bias_add, f(2, 3), f(2), says="[3]|got [2]")
static(
    lambda z, x: fs.nn.softmax_cross_entropy_with_logits_v2(z, x),
    f(2, 4),
    f(2, 3),
    says="[2,3]|got [2,4]",
)
static(
    lambda z, x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x),
    i(3),
    f(2, 3),
    says="[2]|got [3]",
)
static(
    lambda z, x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x),
    f(2),
    f(2, 3),
    error=DTypeError,
    says="integer|got float32",
)
static(lambda x: fs.nn.top_k(x, 4), f(2, 3), says="4|got [2,3]")
static(lambda x: fs.placeholder_with_default(x, [3]), f(2), says="[3]|got [2]")
static(lambda x: x + 1.5, i(2), error=DTypeError, says="expected int32|1.5")
static(lambda x: x + "a", f(2), error=DTypeError, says="expected float32|'a'")
static(lambda x: fs.range(x), f(2), says="scalars|got [2]")
static(lambda x: fs.one_hot(x, 3), f(2), error=DTypeError, says="integer|got float32")


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{n}") for n, c in enumerate(STATIC)])
def test_while_building(case: Any) -> None:
    call, inputs, error, says = case
    with fs.Graph().as_default() as graph:
        xs = [fs.placeholder(d, s) for d, s in inputs]
        before = len(graph)
        with pytest.raises(error) as caught:
            call(*xs)
    for part in says:
        assert part in caught.value.message, caught.value.message
    assert caught.value.message[0].islower() or caught.value.message[0] == '"'
    assert not any(
        o.type not in ("Const", "Cast", "Shape", "Pack", "Abs")
        for o in graph.get_operations()[before:]
    )


def test_the_error_points_to_the_users_line() -> None:
    with fs.Graph().as_default():
        x, y = fs.placeholder("float32", [2, 3], "x"), fs.placeholder("float32", [2], "y")
        with pytest.raises(InvalidArgumentError) as caught:
            fs.matmul(x, x, name="product")
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        assert caught.value.origin == f"test_errors.py, line {line}"
        assert caught.value.op_name == "product"
        assert caught.value.op_type == "MatMul"
        assert caught.value.inputs[0] == 'input 0: float32[2,3]   from "x:0"'
        with pytest.raises(InvalidArgumentError, match="broadcast") as caught:
            _ = x + y
        assert caught.value.origin == f"test_errors.py, line {line + 7}"


#: The same while the step runs, where shapes were not known: (call, values, what the error holds).
DYNAMIC: list[tuple[Callable[..., Any], list[Any], list[str]]] = []


def dynamic(call: Any, *values: Any, says: str) -> None:
    DYNAMIC.append((call, [np.asarray(v) for v in values], says.split("|")))


X = np.ones((2, 3), "f4")
dynamic(fs.add, X, np.ones((2, 4), "f4"), says="[2,3]|[2,4]")
dynamic(fs.matmul, X, X, says="inner dimensions|expected 3|got 2")
dynamic(fs.matmul, X[0], X, says="rank 2|[3]")
dynamic(lambda x: fs.reduce_sum(x, 2), X, says="expected an axis in [-2, 2)|got 2")
dynamic(lambda x: fs.reshape(x, [4]), X, says="6 elements|got [4]")
dynamic(lambda x: fs.transpose(x, [0, 1, 2]), X, says="permutation of 2 axes|got [0, 1, 2]")
dynamic(lambda x: fs.squeeze(x, 0), X, says="length 1 at axis 0|got [2,3]")
dynamic(lambda x, y: fs.concat([x, y], 0), X, X[:, 1:], says="axis 0|[2,3]|[2,2]")
dynamic(lambda x, y: fs.stack([x, y]), X, X[0], says="one shape|[2,3]|[3]")
dynamic(lambda x: fs.unstack(x, 3), X, says="expected 3|got 2")
dynamic(lambda x: fs.split(x, 2, 1), X, says="multiple of 2|got 3")
dynamic(lambda x: x[2], X, says="expected an index in [-2, 2)|got 2")
dynamic(lambda x: x[0, 0, 0], X, says="at most 2 indices|got 3")
dynamic(lambda x, k: x[k], X, np.int32(5), says="expected an index in [-2, 2)|got 5")
dynamic(fs.gather, X, np.array([0, 2], "i4"), says="expected indices in [0, 2)|got 2")
dynamic(fs.gather, X, np.array([0, -1], "i4"), says="expected indices in [0, 2)|got -1")
dynamic(fs.gather_nd, X, np.array([[0, 3]], "i4"), says="expected indices in [0, 3)|got 3")
dynamic(
    fs.slice,
    X,
    np.array([0, 1], "i4"),
    np.array([2, 3], "i4"),
    says="inside an axis of 3|got 3 from 1",
)
dynamic(lambda c, x, y: fs.where(c, x, y), X > 0, X, X[0], says="one shape|[2,3]|[3]")
dynamic(lambda x, y: fs.add_n([x, y]), X, X[0], says="one shape|[2,3]|[3]")
dynamic(lambda n: fs.fill(n, 0.0), np.array([-1], "i4"), says="negative|got [-1]")
dynamic(fs.nn.bias_add, X, X[0, :2], says="[2,3]|got [2]")
dynamic(
    lambda z, x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x),
    np.array([0, 3], "i4"),
    X,
    says="expected indices in [0, 3)|got 3",
)
dynamic(fs.pow, np.array([2], "i4"), np.array([-1], "i4"), says="non-negative exponents|negative")
dynamic(fs.invert_permutation, np.array([0, 2], "i4"), says="permutation of 0 to 1|got [0, 2]")
dynamic(lambda x: fs.argmax(x), np.zeros((0, 3), "f4"), says="elements along axis 0|got [0,3]")


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{n}") for n, c in enumerate(DYNAMIC)])
def test_while_running(case: Any) -> None:
    call, values, says = case
    with fs.Graph().as_default():
        xs = [fs.placeholder(v.dtype) for v in values]
        y = call(*xs)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        with fs.Session() as session, pytest.raises(InvalidArgumentError) as caught:
            session.run(y, dict(zip(xs, values, strict=True)))
    for part in says:
        assert part in caught.value.message, caught.value.message
    lines = {line, call.__code__.co_firstlineno}
    assert caught.value.origin in {f"test_errors.py, line {n}" for n in lines}
