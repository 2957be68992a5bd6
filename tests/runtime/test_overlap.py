"""Python functions of one step that do not depend on each other may wait for each other."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest
from late_steps import late

import flowscope as fs

PATIENCE_S = 30.0


@pytest.fixture(params=["compiled", "op", "tokens"])
def session(request, graph):
    config = fs.ConfigProto(mode=request.param, operation_timeout_in_ms=60_000)
    with fs.Session(graph=graph, config=config) as s:
        yield s


def pair():
    between = queue.Queue(1)

    def put():
        between.put(1)
        between.join()
        return np.int64(1)

    def get():
        found = between.get()
        between.task_done()
        return np.int64(found)

    return put, get


@pytest.mark.parametrize("order", [0, 1])
def test_two_functions_that_wait_for_each_other(session, order):
    functions = pair()[:: 1 - 2 * order]
    both = [fs.py_func(f, [], fs.int64) for f in functions]
    for _ in range(3):
        assert session.run(both) == [1, 1]
    assert session.run(both[0] + both[1]) == 2


def test_quick_functions_keep_the_order_of_the_program(session):
    seen = []
    made = [fs.py_func(lambda k=k: seen.append(k), [], []) for k in range(5)]
    session.run(fs.group(*made))
    assert seen == [0, 1, 2, 3, 4]


def test_a_function_that_needs_another_runs_behind_it(session):
    a = fs.py_func(lambda: np.float32(2.0), [], fs.float32)
    b = fs.py_func(lambda x: x * np.float32(3.0), [a], fs.float32)
    program = session.plan(b).program
    assert not any(n.op.type == "HostFunc" for n in program.walk())
    assert session.run(b) == 6.0


def test_errors_name_the_function_and_its_line(session):
    def bad():
        raise ValueError("no good")

    x, y = fs.py_func(lambda: np.float32(1.0), [], fs.float32), fs.py_func(bad, [], fs.float32)
    with pytest.raises(fs.errors.InvalidArgumentError, match="PyFunc: ValueError in bad") as caught:
        session.run([x, y])
    assert "test_overlap.py" in str(caught.value)


def test_a_deadline_ends_functions_that_wait_for_ever(session):
    go = threading.Event()

    def stuck():
        go.wait(PATIENCE_S)
        return np.float32(1.0)

    both = [fs.py_func(stuck, [], fs.float32) for _ in range(2)]
    late(session, both, match="its Python function")
    go.set()
    assert session.run(both, options=fs.RunOptions(timeout_in_ms=60_000)) == [1.0, 1.0]


def in_cond(functions):
    pred = fs.placeholder_with_default(True, [])
    calls = lambda: [fs.py_func(f, [], fs.int64) for f in functions]  # noqa: E731
    return fs.cond(pred, calls, lambda: [fs.constant(0, fs.int64)] * 2)


def in_loop(functions):
    def body(i, a, b):
        found = [fs.py_func(f, [], fs.int64) for f in functions]
        for one in found:
            one.set_shape([])
        return i + 1, a + found[0], b + found[1]

    zero = fs.constant(0, fs.int64)
    return [x / 3 for x in fs.while_loop(lambda i, a, b: i < 3, body, [0, zero, zero])[1:]]


def in_branches_of_their_own(functions):
    pred = fs.placeholder_with_default(True, [])
    zero = fs.constant(0, fs.int64)
    return [fs.cond(pred, lambda f=f: fs.py_func(f, [], fs.int64), lambda: zero) for f in functions]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("build", [in_cond, in_loop, in_branches_of_their_own])
def test_functions_in_bodies_wait_for_each_other(session, build, order):
    both = build(pair()[:: 1 - 2 * order])
    for _ in range(2):
        assert session.run(both) == [1, 1]


@pytest.mark.parametrize("count", [1, -1])
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_one_inter_op_thread_calls_one_function_after_the_other(graph, mode, count):
    seen = []

    def note(k):
        seen.append((k, threading.get_ident()))
        return np.int64(k)

    made = [fs.py_func(lambda k=k: note(k), [], fs.int64) for k in range(4)]
    config = fs.ConfigProto(mode=mode, inter_op_parallelism_threads=count)
    with fs.Session(graph=graph, config=config) as sess:
        assert sess.run(made) == [0, 1, 2, 3]
    assert seen == [(k, threading.get_ident()) for k in range(4)]
