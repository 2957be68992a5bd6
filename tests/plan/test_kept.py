"""What a plan says that its loops keep is what they keep."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.executables.interpret import Interpreter

pytestmark = pytest.mark.usefixtures("graph")


def chain(y):
    return fs.tanh(y) * fs.sin(y)


def views(y):
    z = fs.reshape(fs.tanh(y), [-1])
    return fs.reshape(fs.sin(z) * z, y.shape)


def halves(y):
    a, b = fs.split(y, 2, -1)
    return fs.concat([fs.tanh(a) * b, fs.sin(b) * a], -1)


def sums(y):
    return fs.nn.relu(y) + fs.reduce_max(y)


def inner_loop(y):
    return fs.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, chain(z)), [0, y])[1]


def product(y):
    w = fs.get_variable("w", [y.shape[-1]] * 2, initializer=fs.orthogonal_initializer(seed=1))
    return fs.tanh(fs.matmul(y, w))


BODIES = [chain, views, halves, sums, inner_loop, product]


def gradient(body, dims):
    """Returns the number of iterations, x, and the gradient of a loop with this body."""
    n, x = fs.placeholder(fs.int32, []), fs.placeholder(fs.float32, dims)
    with fs.variable_scope("", reuse=fs.AUTO_REUSE):
        y = fs.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, body(y)), [0, x])[1]
    return n, x, fs.gradients(y, [x, *fs.trainable_variables()])


def held(lists):
    """Returns the bytes that lists hold, each piece of memory once."""
    found, stack = {}, list(lists)
    while stack:
        one = stack.pop()
        if isinstance(one, tuple):
            stack += one
        elif one is not None:
            while isinstance(one, np.ndarray) and one.base is not None:
                one = one.base
            found[id(one)] = one
    return sum(one.nbytes for one in found.values())


@pytest.mark.parametrize("body", BODIES)
def test_loops_hold_what_the_plan_says(monkeypatch, body):
    n, x, g = gradient(body, [6, 4])
    seen = {}

    def probe(node, iterations, outputs):
        if node.op.type == "Loop":
            seen[node.name] = held(o for o in outputs if isinstance(o, tuple))

    run = Interpreter.__call__
    monkeypatch.setattr(Interpreter, "__call__", lambda self, *args: run(self, *args, probe))
    with fs.Session(config=fs.ConfigProto(mode="op")) as s:
        s.run(fs.global_variables_initializer())
        told = s.plan(g, [n, x]).kept(iterations=7)
        s.run(g, {n: 7, x: np.full((6, 4), 0.3)})
    outer = [loop for loop in told if "body" not in loop.name]
    assert outer
    # Of the variable that the product takes, the value at the start is the caller's.
    fed = {"while/Loop": 6 * 4 * 4 if body is product else 0}
    assert {k.name: k.nbytes + fed.get(k.name, 0) for k in outer}.items() <= seen.items()


@pytest.mark.memory
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("body", [chain, views, halves, sums, inner_loop])
def test_a_step_takes_that_and_some_bytes_per_value(body, mode):
    n, x, g = gradient(body, [64, 4])
    feeds = [{n: k, x: np.full((64, 4), 0.3)} for k in (60, 160)]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        told = [s.plan(g, [n, x]).kept(iterations=f[n]) for f in feeds]
        if body is inner_loop:
            told = [s.plan(g, [n, x]).kept(iterations=3) for _ in feeds]
        seen = []
        for feed in feeds:
            s.run(g, feed)
            tracemalloc.start()
            s.run(g, feed)
            seen.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    outer = next(loop for loop in told[0] if "body" not in loop.name)
    values = len(outer.tensors) * (3 if body is inner_loop else 1)
    more = (seen[1] - seen[0]) / 100 - outer.bytes_per_iteration
    assert 0 <= more <= 200 * values


def test_where_a_branch_keeps_something_it_is_the_larger_of_both():
    def body(i, y):
        return i + 1, fs.cond(fs.equal(i % 2, 0), lambda: fs.tanh(y) * fs.sin(y), lambda: y * y)

    x = fs.placeholder(fs.float32, [8])
    y = fs.while_loop(lambda i, y: i < 10, body, [0, x])[1]
    with fs.Session() as s:
        (loop, *_) = s.plan(fs.gradients(y, x), [x]).kept()
    assert loop.iterations == 10
    assert loop.nbytes <= 10 * (1 + 3 * 8 * 4)


def test_a_list_that_is_read_once_more_is_not_used_up():
    """The weights' gradient is one product of two lists: both are there when the loops are over."""
    n, x, g = gradient(product, [6, 4])
    with fs.Session() as s:
        plan = s.plan(g, [n, x])
        told = plan.kept(iterations=5)
    assert "SumOfProducts" in plan.text()
    assert [loop.bytes_per_iteration for loop in told] == [6 * 4 * 4] * 2
    assert told.nbytes == 2 * 5 * 6 * 4 * 4
