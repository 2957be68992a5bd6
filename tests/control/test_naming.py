"""What loop variables are called: as the arguments of the functions that take them."""

from __future__ import annotations

import functools
from collections import namedtuple

import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

Moments = namedtuple("Moments", "mean spread")


def names(loop):
    """The names of a loop's variables in its condition and in its body."""
    (op,) = {t.op for t in fs.nest.flatten(loop)}
    found = [[t.op.name for t in f.inputs] for f in op.definition.functions]
    inside, bodies = [[n.rpartition("/")[2] for n in one] for one in found]
    assert inside == bodies
    assert found[1][0].startswith(f"{op.name.rpartition('/')[0]}/body/")
    return bodies


def test_variables_are_called_as_the_body_calls_them():
    start = fs.constant(1.0, name="start")
    loop = fs.while_loop(lambda k, x: k < 3, lambda i, acc: (i + 1, acc * 2.0), [0, start])
    assert names(loop) == ["i", "acc"]


def test_the_condition_tells_what_the_body_does_not():
    loop = fs.while_loop(lambda i, _: i < 3, lambda _, acc: (_ + 1, acc), [0, 1.0])
    assert names(loop) == ["i", "acc"]


def test_leaves_of_structures_are_called_after_their_places():
    start = [0, Moments(1.0, [2.0, 3.0]), {"b c": 1, "a": (2, 3)}]
    loop = fs.while_loop(lambda i, m, d: i < 3, lambda i, m, d: (i + 1, m, d), start)
    assert names(loop) == ["i", "m_mean", "m_spread_0", "m_spread_1", "d_a_0", "d_a_1", "d_b_c"]


def test_composites_are_called_after_their_parts():
    array, sparse = fs.TensorArray(fs.int32, 3), fs.SparseTensor([[0]], [1.0], [2])
    loop = fs.while_loop(
        lambda i, a, s: i < 3, lambda i, a, s: (i + 1, a.write(i, i), s), [0, array, sparse]
    )
    tensors = [loop[0], loop[1].flow, loop[2].values]
    assert names(tensors) == ["i", "a", "s_values", "s_indices", "s_dense_shape"]


def test_any_callable_tells_its_arguments():
    class Body:
        def __call__(self, n, total):
            return n + 1, total * 2.0

        def step(self, by, n, total):
            return n + by, total

    def cond(*values):
        return values[0] < 3

    assert names(fs.while_loop(cond, Body(), [0, 1.0])) == ["n", "total"]
    bound = functools.partial(Body().step, 1)
    assert names(fs.while_loop(cond, bound, [0, 1.0])) == ["n", "total"]
    assert names(fs.while_loop(cond, lambda *a: (a[0] + 1, a[1]), [0, 1.0])) == ["a_0", "a_1"]
    rest = fs.while_loop(cond, lambda i, *xs: (i + 1, *xs), [0, 1.0, 2.0])
    assert names(rest) == ["i", "xs_0", "xs_1"]


def test_where_python_tells_nothing_the_start_does():
    x = fs.placeholder(fs.float32, [], name="x")
    loop = fs.while_loop(lambda *_: _[0] < 3, lambda *_: (_[0] + 1, _[1]), [0, x])
    assert names(loop) == ["var_0", "x"]


def test_what_has_no_signature_tells_nothing():
    def half(value):
        return value / 2.0

    half.__signature__ = "as of a built-in function: none"
    x = fs.placeholder(fs.float32, [], name="x")
    assert names(fs.while_loop(lambda *_: _[0] > 1.0, half, [x])) == ["x"]


def test_names_are_what_operations_can_be_called():
    assert names(fs.while_loop(lambda x: x < 3, lambda größe: größe + 1, [0])) == ["groe"]
    assert names(fs.while_loop(lambda θ: θ < 3, lambda θ: θ + 1, [0])) == ["var_0"]
    assert names(fs.while_loop(lambda __x: __x < 3, lambda __x: __x + 1, [0])) == ["x"]


def test_names_are_unique_and_the_same_when_a_cell_runs_again(graph):
    def loops():
        inner = functools.partial(fs.while_loop, lambda i: i < 2, lambda i: i + 1)
        loop = fs.while_loop(lambda i: i < 3, lambda i: inner([i]), [0])
        return loop, [op.name for op in graph.get_operations() if op.type == "Parameter"]

    with graph.cell("1"):
        first, before = loops()
    with graph.cell("1"):
        again, after = loops()
    assert first is again
    assert before == after
    assert len(set(before)) == len(before)
    assert "while/body/while/body/i" in before


def test_texts_and_errors_tell_the_names():
    n = fs.placeholder(fs.int32, [], name="n")
    inside = []

    def body(i, total):
        inside.append(total)
        return i + 1, total + fs.while_loop(lambda j: j < i, lambda j: j + 1, [0])

    _, total = fs.while_loop(lambda i, total: i < n, body, [0, 0], name="loop")
    with fs.Session() as s:
        text = s.plan(total, [n]).text()
    assert "  cond(i, total) -> " in text
    assert "      body(j) -> (loop/body/while/body/add):" in text
    with pytest.raises(fs.errors.GraphError, match='"loop/body/total:0" stands inside the body'):
        fs.identity(inside[0])
    with pytest.raises(TypeError, match="loop variable t .* is int32.* and float32.* after one"):
        fs.while_loop(lambda t: t < 3, lambda t: fs.cast(t, fs.float32), [0], name="loop")
