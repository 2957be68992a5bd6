"""Python functions of one step that do not depend on each other may wait for each other."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest

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
    with pytest.raises(fs.errors.DeadlineExceededError, match="its Python function"):
        session.run(both, options=fs.RunOptions(timeout_in_ms=200))
    go.set()
    assert session.run(both, options=fs.RunOptions(timeout_in_ms=60_000)) == [1.0, 1.0]
