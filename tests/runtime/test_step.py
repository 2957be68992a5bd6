"""The step is the unit: not the thread, for a step may have several and a thread several steps."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.current_step import current_step
from flowscope.runtime.threads import host_calls
from flowscope.runtime.threads.thread_pool import ThreadPool

#: A function of the user's is left by an exception that may come in what the interpreter does
#: beside it: a callback of the collector, a file that it is opening.
LEFT_ANYWHERE = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
PATIENCE_S = 30.0


@pytest.fixture(params=["compiled", "op", "tokens"])
def session(request, graph):
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=request.param)) as s:
        yield s


def endless(x):
    return fs.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [x])


def started(*functions):
    """Starts threads; returns what waits for them and returns their results or errors."""
    found = [None] * len(functions)

    def run(k, function):
        try:
            found[k] = function()
        except Exception as e:
            found[k] = e

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()

    def finish(count=None):
        for thread in threads[:count]:
            thread.join(PATIENCE_S)
        return found[:count]

    return finish


def inside(session, count):
    """Waits until so many steps are on their way; returns them."""
    end = time.monotonic() + PATIENCE_S
    while len(steps := list(session.gate.inside)) < count and time.monotonic() < end:
        session.gate.look(0.01)
    return steps


def test_one_of_two_steps_of_a_session_is_stopped_and_the_other_goes_on(session):
    x, y = fs.placeholder(fs.int32, []), fs.placeholder(fs.int32, [])
    first, second = endless(x), endless(y)
    finish = started(lambda: session.run(first, {x: 1}), lambda: session.run(second, {y: 1}))
    steps = inside(session, 2)
    doomed = next(s for s in steps if x in s.plan.request.feeds)
    (other,) = [s for s in steps if s is not doomed]
    session.gate.stop_step(doomed)
    assert isinstance(finish(1)[0], fs.errors.CancelledError)
    assert (doomed.state, other.state) == ("ended", "running")
    assert inside(session, 1) == [other] and session.gate.state == "open"
    session.stop()
    assert [type(r) for r in finish()] == [fs.errors.CancelledError] * 2


@LEFT_ANYWHERE
@pytest.mark.parametrize("is_swallowed", [False, True])
def test_a_step_whose_functions_run_in_two_threads_is_stopped_whole(
    session, is_swallowed, monkeypatch
):
    """Each function runs a step of its own on its thread: inside of the one around them.

    The exception that is raised in a function may meet a finalizer, which swallows it.
    """
    if is_swallowed:
        monkeypatch.setattr(host_calls, "_raise_in", lambda thread: None)
    x = fs.placeholder(fs.int32, [])
    loop = endless(x)
    threads = set()

    def function():
        threads.add(threading.get_ident())
        return session.run(loop, {x: 1})

    both = [fs.py_func(function, [], fs.int32) for _ in range(2)]
    finish = started(lambda: session.run(both))
    steps = inside(session, 3)
    (outer,) = [s for s in steps if s.outer is None]
    assert {s.outer for s in steps} == {None, outer} and session.running == 1
    assert len(threads) == 2
    session.gate.stop_step(outer)
    assert isinstance(finish()[0], fs.errors.CancelledError)
    end = time.monotonic() + PATIENCE_S
    while {s.state for s in steps} != {"ended"} and time.monotonic() < end:
        threading.Event().wait(0.001)
    assert [s.state for s in steps] == ["ended"] * 3
    assert not session.gate.inside and not session.gate.raised


@LEFT_ANYWHERE
def test_a_step_that_runs_inside_of_another_on_another_thread_has_its_deadline(session):
    x = fs.placeholder(fs.int32, [])
    loop = endless(x)
    errors = []

    def function():
        try:
            return session.run(loop, {x: 1})
        except fs.errors.OpError as e:
            errors.append(e)
            raise

    fetch = fs.py_func(function, [], fs.int32)
    with pytest.raises(fs.errors.DeadlineExceededError):
        session.run(fetch, options=fs.RunOptions(timeout_in_ms=200))
    end = time.monotonic() + PATIENCE_S
    while session.gate.inside and time.monotonic() < end:
        threading.Event().wait(0.001)
    assert not session.gate.inside


def test_a_step_that_is_over_is_around_none(session):
    """What a function has begun and left behind may run steps when its own has ended."""
    go, seen, calls = threading.Event(), [], []
    note = fs.py_func(lambda: seen.append(current_step()), [], [])

    def late():
        assert go.wait(PATIENCE_S)
        seen.append(current_step())
        session.run(note)

    begin = fs.py_func(lambda: calls.append(current_step().start_function(late)), [], [])
    session.run(begin)
    assert session.running == 0 and not session.gate.inside
    go.set()
    calls[0].wait(PATIENCE_S)
    calls[0].result()
    outer, inner = seen
    assert outer.state == "ended" and inner is not outer and inner.outer is None


def test_threads_that_help_with_a_kernel_know_the_step(session):
    pool, meeting, seen = ThreadPool(2), threading.Barrier(2), []

    def part(_):
        meeting.wait(PATIENCE_S)
        seen.append((threading.get_ident(), current_step()))

    def kernel():
        pool.parallel_for(2, part)
        return np.float32(0)

    session.run(fs.py_func(kernel, [], fs.float32))
    (one, step), (other, same) = seen
    assert one != other and step is same and step is not None
    assert current_step() is None
