"""Gradients through loops and branches made by hand, against the structured ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops

pytestmark = pytest.mark.usefixtures("graph")


def into(name: str, value: Any, is_constant: bool = True) -> Any:
    return raw_ops.Enter(data=fs.convert_to_tensor(value), frame_name=name, is_constant=is_constant)


def power(x: Any, n: Any, name: str = "power", step: Any = None) -> Any:
    """x ** n by a loop of primitives, in the frame in which x stands."""
    zero = fs.cast(fs.reduce_sum(x - x), fs.int32)
    i, _ = raw_ops.Merge(inputs=[into(name, zero, False)] * 2)
    p, _ = raw_ops.Merge(inputs=[into(name, x - x + 1.0, False)] * 2)
    pred = raw_ops.LoopCond(input=fs.less(i, into(name, n)))
    (_, i1), (p0, p1) = (raw_ops.Switch(data=v, pred=pred) for v in (i, p))
    i.op._update_input(1, raw_ops.NextIteration(data=i1 + fs.ones_like(i1)))
    p.op._update_input(1, raw_ops.NextIteration(data=(step or fs.multiply)(p1, into(name, x))))
    return raw_ops.Exit(data=p0)


def branch(pred: Any, x: Any, true: Any, false: Any) -> Any:
    off, on = raw_ops.Switch(data=x, pred=pred)
    return raw_ops.Merge(inputs=[false(off), true(on)]).output


def test_a_loop(sess: fs.Session) -> None:
    x, n = fs.placeholder(fs.float64, [2]), fs.placeholder(fs.int32, [])
    y = fs.reduce_sum(fs.square(power(x, n)) * x)
    (first,) = fs.gradients(y, x)
    (second,) = fs.gradients(first, x)
    value = np.array([2.0, 0.5])
    for count in (0, 1, 3):
        a, b = sess.run([first, second], {x: value, n: count})
        e = 2 * count + 1
        np.testing.assert_allclose(a, e * value ** (e - 1))
        np.testing.assert_allclose(b, e * (e - 1) * value ** (e - 2))


def test_both_values_come_from_the_loop_as_it_was_made(sess: fs.Session) -> None:
    x = fs.placeholder(fs.float64, [])
    y = power(x, 3)
    count = len([op for op in sess.graph.get_operations() if op.type == "Enter"])
    (g,) = fs.gradients(y, x)
    assert count == len([op for op in sess.graph.get_operations() if op.type == "Enter"])
    assert sess.run([y, g], {x: 2.0}) == [8.0, 12.0]
    assert sess.run(y, {x: 2.0}) == 8.0


def test_a_branch(sess: fs.Session) -> None:
    x, pred = fs.placeholder(fs.float64, []), fs.placeholder(fs.bool, [])
    outside = fs.exp(x)
    y = branch(pred, x, lambda v: fs.square(v) * outside, lambda v: 3.0 * v) * 2.0
    (g,) = fs.gradients(y, x)
    e = np.exp(1.5)
    assert sess.run(g, {x: 1.5, pred: False}) == 6.0
    np.testing.assert_allclose(sess.run(g, {x: 1.5, pred: True}), 2 * e * (2 * 1.5 + 1.5**2))


def test_which_side_it_was(sess: fs.Session) -> None:
    x, pred = fs.placeholder(fs.float64, []), fs.placeholder(fs.bool, [])
    off, on = raw_ops.Switch(data=x, pred=pred)
    for inputs in ([off, on], [on, off]):
        value, index = raw_ops.Merge(inputs=inputs)
        y = value * fs.cast(index, fs.float64)
        (g,) = fs.gradients(y, x)
        for side in (False, True):
            at = int(side == (inputs[1] is on))
            assert sess.run([y, g], {x: 5.0, pred: side}) == [5.0 * at, 1.0 * at]


def test_branches_in_branches(sess: fs.Session) -> None:
    x = fs.placeholder(fs.float64, [])
    p, q = fs.placeholder(fs.bool, []), fs.placeholder(fs.bool, [])

    def inner(v: Any) -> Any:
        here = raw_ops.Switch(data=q, pred=p).output_true
        return branch(here, v, lambda u: u * u * u, lambda u: u * u)

    y = branch(p, x, inner, lambda v: 5.0 * v)
    (g,) = fs.gradients(y, x)
    sides = [(False, False), (False, True), (True, False), (True, True)]
    assert [sess.run(g, {x: 2.0, p: a, q: b}) for a, b in sides] == [5.0, 5.0, 4.0, 12.0]


def test_a_branch_in_a_loop(sess: fs.Session) -> None:
    x = fs.placeholder(fs.float64, [])

    def plain(value: float) -> float:
        p = 1.0
        for _ in range(5):
            p = p + value if p > 3.0 else p * value
        return p

    # Constants of the body come in by hand.
    three = into("power", fs.constant(3.0, fs.float64))

    def with_constant(p: Any, x: Any) -> Any:
        return branch(fs.greater(p, three), p, lambda v: v + x, lambda v: v * x)

    y = power(x, 5, step=with_constant)
    (g,) = fs.gradients(y, x)
    h = 1e-6
    value, slope = sess.run([y, g], {x: 1.7})
    assert value == plain(1.7)
    np.testing.assert_allclose(slope, (plain(1.7 + h) - plain(1.7 - h)) / (2 * h), rtol=1e-6)


def test_a_loop_in_a_branch(sess: fs.Session) -> None:
    x, pred = fs.placeholder(fs.float64, []), fs.placeholder(fs.bool, [])
    y = branch(pred, x, lambda v: power(v, 4, "inner"), lambda v: -v)
    (g,) = fs.gradients(y, x)
    assert sess.run(g, {x: 2.0, pred: True}) == 32.0
    assert sess.run(g, {x: 2.0, pred: False}) == -1.0


def test_a_loop_in_a_loop(sess: fs.Session) -> None:
    x = fs.placeholder(fs.float64, [])

    def step(p: Any, v: Any) -> Any:
        return p * power(v, into("outer", 2), "inner")

    y = power(x, 3, "outer", step)
    (g,) = fs.gradients(y, x)
    assert sess.run([y, g], {x: 2.0}) == [64.0, 192.0]


def test_one_loop_after_another(sess: fs.Session) -> None:
    x = fs.placeholder(fs.float64, [])
    y = power(power(x, 2, "first") + x, 3, "second")
    (g,) = fs.gradients(y, x)
    assert sess.run(g, {x: 2.0}) == 3 * 6.0**2 * 5.0


def test_gradients_with_respect_to_a_result(sess: fs.Session) -> None:
    x = fs.placeholder(fs.float64, [])
    y = power(x, 2)
    z = y * y * 3.0
    g, none = fs.gradients(z, [y, fs.constant(1.0)])
    assert none is None
    assert sess.run(g, {x: 2.0}) == 6 * 4.0


def test_variables_that_a_loop_reads(sess: fs.Session) -> None:
    w = fs.Variable(3.0, dtype=fs.float64)
    y = power(fs.constant(2.0, fs.float64), 3, step=lambda p, x: p * x * into("power", w))
    (g,) = fs.gradients(y, w)
    sess.run(w.initializer)
    assert sess.run(g) == 8.0 * 27.0


# -- what is refused ------------------------------------------------------------------------------


def refused(y: Any, x: Any, message: str) -> Any:
    with pytest.raises(fs.errors.InvalidArgumentError, match=message) as caught:
        fs.gradients(y, x)
    assert "test_lifting.py" in str(caught.value)
    return caught.value


def test_values_of_an_iteration() -> None:
    x = fs.constant(2.0)
    inside = fs.square(into("loop", x))
    refused(inside, x, 'a value of an iteration of the loop "loop"')


def test_sides_of_two_predicates() -> None:
    x = fs.constant(2.0)
    _, a = raw_ops.Switch(data=x, pred=fs.constant(True))
    _, b = raw_ops.Switch(data=x, pred=fs.constant(False))
    merged = raw_ops.Merge(inputs=[a * 3.0, b * 5.0]).output
    with fs.Session() as sess:
        assert sess.run([merged, *fs.gradients(merged, x)]) == [6, 3]


def test_loops_that_do_more_than_compute() -> None:
    x = fs.constant(2.0)
    queue = fs.FIFOQueue(3, fs.float32, shapes=[])

    def with_noise(p: Any, v: Any) -> Any:
        with fs.control_dependencies([v]):
            return p * v * fs.random_uniform([])

    def taking(p: Any, v: Any) -> Any:
        with fs.control_dependencies([v]):
            return p * v * queue.dequeue()

    noisy = power(x, 2, "noisy", with_noise)
    error = refused(noisy, x, "draws random numbers")
    assert "fs.while_loop and fs.cond have gradients" in str(error)
    refused(power(x, 2, "taking", taking), x, "more than compute")


def test_a_loop_without_a_next_iteration() -> None:
    x = fs.constant(2.0)
    start = into("loop", x, False)
    value, _ = raw_ops.Merge(inputs=[start, start])
    pred = raw_ops.LoopCond(input=into("loop", True))
    done, _ = raw_ops.Switch(data=value, pred=pred)
    refused(raw_ops.Exit(data=done), x, "no value of the next iteration")


def test_what_goes_another_way_is_differentiated() -> None:
    x = fs.constant(2.0)
    (g,) = fs.gradients(fs.square(x), x)
    power(x, 2)
    assert g is not None


@pytest.mark.parametrize("taken", [True, False])
def test_one_side_of_a_switch_has_a_gradient(graph, taken):
    x, p = fs.constant(2.0), fs.placeholder(fs.bool, [])
    no, yes = fs.raw_ops.Switch(data=x, pred=p)
    gs = [fs.gradients(y, x)[0] for y in (no * 5.0, yes * 3.0, [no, yes * yes])]
    with fs.Session() as sess:
        want = [0, 3, 4] if taken else [5, 0, 1]
        assert sess.run(gs, {p: taken}) == want


def test_a_switch_within_one_side_has_a_gradient(graph):
    x, p, q = fs.constant(2.0), fs.placeholder(fs.bool, []), fs.placeholder(fs.bool, [])
    _, yes = fs.raw_ops.Switch(data=x, pred=p)
    no, both = fs.raw_ops.Switch(data=yes, pred=q)
    inner, _ = fs.raw_ops.Merge(inputs=[no * 5.0, both * both])
    (g,) = fs.gradients(inner * 10.0, x)
    with fs.Session() as sess:
        assert [sess.run(g, {p: a, q: b}) for a in (False, True) for b in (False, True)] == [
            0,
            0,
            50,
            40,
        ]
