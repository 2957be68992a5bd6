"""A forked process has none of its parent's threads: it starts its own, and waits for no other."""

import multiprocessing
import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.current_step import steps_of_threads
from flowscope.runtime.threads.host_calls import HostCall, HostThreads
from flowscope.runtime.threads.thread_pool import ThreadPool

pytestmark = [
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork"
    ),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]
#: Longest wait for a child; only a broken program waits that long.
PATIENCE_S = 30


def in_child(function):
    """The result of a function in a forked process."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(function()))
    child.start()
    try:
        assert ours.poll(PATIENCE_S), "the child waits"
        return ours.recv()
    finally:
        child.kill()
        child.join()


def test_functions_of_the_users_run_there(graph):
    """The thread that waits for calls in the parent is not there."""
    y = fs.py_func(lambda: np.float32(threading.get_ident() != main), [], fs.float32)
    main = threading.get_ident()
    options = fs.RunOptions(timeout_in_ms=1000 * PATIENCE_S)
    with fs.Session() as sess:
        assert sess.run(y, options=options) == 1
        assert sess.engine.host_threads.idle
        assert in_child(lambda: float(sess.run(y, options=options))) == 1


def test_owners_of_threads_have_none_there():
    pool, threads = ThreadPool(2), HostThreads()
    pool.parallel_for(2, lambda i: None)
    call = HostCall(lambda: 1, threads)
    call.wait(PATIENCE_S)
    try:
        assert pool._threads
        assert in_child(lambda: (len(pool._threads), len(threads.idle))) == (0, 0)
    finally:
        pool.stop()


def test_threads_of_the_child_that_begin_together_share_kernels():
    pool = ThreadPool(3)
    pool.parallel_for(3, lambda i: None)

    def share():
        seen = [[0] * 3 for _ in range(4)]
        begin = threading.Barrier(4)

        def work(mine):
            begin.wait()
            pool.parallel_for(3, lambda i: mine.__setitem__(i, mine[i] + 1))

        threads = [threading.Thread(target=work, args=(mine,)) for mine in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    try:
        assert in_child(share) == [[1] * 3] * 4
    finally:
        pool.stop()


def test_steps_of_other_threads_do_not_run_there(graph):
    """A stop would wait for them."""
    inside, go = threading.Event(), threading.Event()

    def wait():
        inside.set()
        go.wait(PATIENCE_S)

    y = fs.py_func(wait, [], [])
    with fs.Session() as sess:
        other = threading.Thread(target=lambda: sess.run(y))
        other.start()
        try:
            assert inside.wait(PATIENCE_S)
            assert sess.gate.inside
            assert in_child(lambda: (len(sess.gate.inside), len(steps_of_threads))) == (0, 0)
        finally:
            go.set()
            other.join()


def test_the_step_that_forks_goes_on_there(graph):
    found = []
    y = fs.py_func(lambda: found.append(in_child(lambda: len(sess.gate.inside))), [], [])
    with fs.Session() as sess:
        sess.run(y)
    assert found == [1]
