"""Checks that fail: while the graph is built where enough is known, else while it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError


def fed(value: Any, shape: Any = None) -> Any:
    return fs.placeholder_with_default(np.asarray(value), shape)


#: (function, arguments that do not pass, what the text says).
FAIL: list[tuple[Any, tuple[Any, ...], str]] = [
    (fs.assert_equal, ([1, 2], [1, 3]), "Condition x == y"),
    (fs.assert_none_equal, ([1, 2], [2, 2]), "Condition x != y"),
    (fs.assert_less, ([1, 2], [2, 2]), "Condition x < y"),
    (fs.assert_less_equal, ([1, 3], [2, 2]), "Condition x <= y"),
    (fs.assert_greater, ([1, 3], [0, 3]), "Condition x > y"),
    (fs.assert_greater_equal, ([1, 2], [0, 3]), "Condition x >= y"),
    (fs.assert_positive, ([1, 0],), "Condition x > 0"),
    (fs.assert_negative, ([-1, 0],), "Condition x < 0"),
    (fs.assert_non_negative, ([0, -1],), "Condition x >= 0"),
    (fs.assert_non_positive, ([0, 1],), "Condition x <= 0"),
]


@pytest.mark.parametrize(("check", "arguments", "says"), FAIL)
def test_what_is_known_is_checked_at_once(graph, check, arguments, says):
    with pytest.raises(InvalidArgumentError, match=says) as e:
        check(*arguments, message="told so")
    assert "told so" in str(e.value)
    assert "[" + " ".join(map(str, arguments[0])) + "]" in str(e.value)


@pytest.mark.parametrize(("check", "arguments", "says"), FAIL)
def test_the_rest_is_checked_when_it_runs(sess, check, arguments, says):
    op = check(*[fed(a) for a in arguments], message="told so")
    with pytest.raises(InvalidArgumentError, match=says) as e:
        sess.run(op)
    assert e.value.message.startswith("assertion failed: [told so] [Condition")
    assert e.value.origin is not None
    assert "test_checks.py" in e.value.origin


def test_what_holds_already_leaves_nothing_to_run(sess):
    for op in (fs.assert_equal([1], [1]), fs.assert_positive(2.0), fs.assert_rank([1], 1)):
        assert op.type == "NoOp"
        assert sess.run(op) is None
    x = fed(1.0)
    assert fs.assert_equal(x, x).type == "NoOp"


def test_a_check_shows_given_data_and_the_first_elements(sess):
    op = fs.assert_equal(fed(1), fed(2), data=["sizes", fs.range(10), fed(1 / 3)], summarize=4)
    with pytest.raises(InvalidArgumentError) as e:
        sess.run(op)
    assert e.value.message == "assertion failed: [sizes] [0 1 2 3...] [0.33333333333333331]"


def test_assert(sess):
    op = fs.Assert(fed(False), ["message", fs.range(10), 1.5, fs.constant("text")])
    with pytest.raises(InvalidArgumentError) as e:
        sess.run(op)
    assert e.value.message == "assertion failed: [message] [0 1 2...] [1.5] [text]"
    sess.run(fs.Assert(fed(True), ["x"]))
    with pytest.raises(InvalidArgumentError, match="assertion failed: \n"):
        sess.run(fs.Assert(fed([True, False]), []))
    with pytest.raises(DTypeError, match="bool condition"):
        fs.Assert(fed(1), [])


def test_an_assertion_runs_though_nobody_reads_it(sess):
    x = fed(-1.0)
    with fs.control_dependencies([fs.assert_positive(x)]):
        y = fs.identity(x)
    with pytest.raises(InvalidArgumentError, match="Condition x > 0"):
        sess.run(y)


def test_assert_near(sess):
    sess.run(fs.assert_near(fed(1.0), fed(1.05), rtol=0.1))
    sess.run(fs.assert_near(fed(0.0), fed(0.05), atol=0.1))
    with pytest.raises(InvalidArgumentError, match="not equal to tolerance"):
        sess.run(fs.assert_near(fed(1.0), fed(1.05)))


def test_ranks(sess):
    with pytest.raises(ValueError, match="rank 2, got rank 1, shape .1."):
        fs.assert_rank([1], 2)
    with pytest.raises(ValueError, match="at least rank 2"):
        fs.assert_rank_at_least([1], 2, message="m")
    with pytest.raises(ValueError, match="0 or 2, got rank 1"):
        fs.assert_rank_in([1], [0, 2])
    with pytest.raises(DTypeError, match="integer scalar"):
        fs.assert_rank([1], 1.5)
    for op in (fs.assert_rank(fed([1]), 2), fs.assert_rank_in(fed([1]), [0, 2])):
        with pytest.raises(InvalidArgumentError, match="Received shape: . .1."):
            sess.run(op)
    assert fs.assert_scalar(1.0).shape == ()
    with pytest.raises(ValueError, match="expected a scalar"):
        fs.assert_scalar([1.0])


def test_shapes(sess):
    x, y = fs.zeros([2, 3]), fed(np.zeros([3, 3], "f4"))
    with pytest.raises(ValueError, match="expected size 4 .given. at axis -1"):
        fs.debugging.assert_shapes([(x, ("N", 4))])
    with pytest.raises(ValueError, match="rank 1, got rank 2"):
        fs.debugging.assert_shapes({x: 2})
    with pytest.raises(ValueError, match="expected size 3 .that of zeros"):
        fs.debugging.assert_shapes([(x, ("N", "M")), (fs.zeros([3, 2]), ("M", "M"))])
    check = fs.debugging.assert_shapes([(x, ("N", "M")), (y, ("N", "M"))])
    with pytest.raises(InvalidArgumentError, match="axis -2, must have the size that of zeros"):
        sess.run(check)


def test_dtypes(graph):
    assert fs.assert_type([1], fs.int32).type == "NoOp"
    with pytest.raises(TypeError, match="float32, got int32"):
        fs.assert_type([1], fs.float32)
    fs.assert_integer([1])
    with pytest.raises(TypeError, match="integer dtype, got float32"):
        fs.assert_integer([1.0], message="m")
    assert fs.assert_same_float_dtype() is fs.float32
    assert fs.assert_same_float_dtype([fs.constant(1.0, "float64"), None]) is fs.float64
    with pytest.raises(TypeError, match="float64, got float32"):
        fs.assert_same_float_dtype([fs.constant(1.0)], "float64")
    with pytest.raises(TypeError, match="floating-point dtype, got int32"):
        fs.assert_same_float_dtype([fs.constant(1)])
    fs.assert_proper_iterable([1])
    for bad in ("text", fs.constant([1]), 3):
        with pytest.raises(TypeError, match="expected a list"):
            fs.assert_proper_iterable(bad)
    assert fs.is_numeric_tensor(fs.constant(1))
    assert not fs.is_numeric_tensor(fs.constant("a"))
    assert not fs.is_numeric_tensor(1)


@pytest.mark.parametrize(
    ("bad", "says"), [(np.nan, "NaN"), (np.inf, "Inf"), ([np.nan, -np.inf], "NaN and Inf")]
)
def test_check_numerics(sess, bad, says):
    y = fs.check_numerics(fed(bad), "the loss")
    with pytest.raises(InvalidArgumentError, match=f"the loss : the tensor has {says}"):
        sess.run(y)


def test_check_numerics_checks_the_gradient(sess):
    x = fed(0.0)
    (g,) = fs.gradients(fs.sqrt(fs.check_numerics(x, "here")), [x])
    with pytest.raises(InvalidArgumentError, match="gradient of: here"):
        sess.run(g)


def test_add_check_numerics_ops(sess):
    x = fed(1.0)
    y = fs.log(x - 2.0, name="lg")
    check = fs.add_check_numerics_ops()
    with pytest.raises(InvalidArgumentError, match="lg:0 : the tensor has NaN"):
        sess.run([y, check])


def test_ensure_shape(sess):
    x = fs.placeholder(fs.float32)
    y = fs.ensure_shape(x, [None, 2])
    assert y.shape.as_list() == [None, 2]
    assert sess.run(y, {x: [[1, 2]]}).shape == (1, 2)
    with pytest.raises(InvalidArgumentError, match=r"expected shape \[\?,2\], got \[3\]"):
        sess.run(y, {x: [1, 2, 3]})
    with pytest.raises(ValueError, match=r"expected shape \[3\], got \[1\]"):
        fs.ensure_shape([1.0], [3])
