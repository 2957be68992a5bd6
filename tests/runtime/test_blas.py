"""BLAS has one thread while steps run that multiply, and afterwards what was there."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.current_step import working_for
from flowscope.runtime.threads import blas
from flowscope.runtime.threads.forks import Fork

MODES = ["compiled", "op", "tokens"]


@pytest.fixture(autouse=True)
def two_threads():
    """BLAS has two threads outside of steps."""
    before = blas.threads()
    blas.limit_threads(2)
    if blas.threads() != 2:
        pytest.skip("needs a BLAS library with threads")
    yield
    blas.limit_threads(before)


def test_a_session_sets_the_number_of_threads(graph):
    fs.Session()
    assert blas.threads() == 2, "nobody asked"
    fs.Session(config=fs.ConfigProto(intra_op_parallelism_threads=1))
    assert blas.threads() == 1


def test_a_negative_number_is_refused(graph):
    with pytest.raises(ValueError, match="intra_op_parallelism_threads of 0"):
        fs.Session(config=fs.ConfigProto(intra_op_parallelism_threads=-1))


@pytest.fixture
def noted(monkeypatch):
    """How many threads BLAS had as kernels multiplied."""
    found = []
    matmul = np.matmul

    def multiply(*args, **kwargs):
        found.append(blas.threads())
        return matmul(*args, **kwargs)

    monkeypatch.setattr(np, "matmul", multiply)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_kernels_that_multiply_have_one(graph, noted, mode):
    x = fs.placeholder(fs.float32, [3, 3])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.matmul(x, x), {x: np.eye(3)})
        sess.run(fs.while_loop(lambda a: fs.reduce_sum(a) < 50, lambda a: fs.matmul(a, a), [x]),
                 {x: 2 * np.eye(3)})  # fmt: skip
    assert noted
    assert set(noted) == {1}
    assert blas.threads() == 2


def test_plans_without_products_change_nothing(graph, monkeypatch):
    monkeypatch.setattr(blas.one_thread, "enter", None)
    x = fs.placeholder(fs.float32, [3])
    with fs.Session() as sess:
        assert sess.run(fs.reduce_sum(x * x), {x: [1, 2, 3]}) == 14


@pytest.mark.parametrize("mode", MODES)
def test_a_function_of_the_users_has_what_was_there(graph, noted, mode):
    x = fs.placeholder(fs.float32, [3, 3])
    asked = fs.py_func(lambda a: (np.int64(blas.threads()), a), [fs.matmul(x, x)], [fs.int64, "f4"])
    after = fs.matmul(asked[1], x)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert sess.run([asked[0], after], {x: np.eye(3)})[0] == 2
        options = fs.RunOptions(timeout_in_ms=60_000)  # on a thread of its own
        assert sess.run([asked[0], after], {x: np.eye(3)}, options)[0] == 2
    assert set(noted) == {1}
    assert blas.threads() == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_fails_restores_it(graph, mode):
    x = fs.placeholder(fs.float32, [None, None])

    def fail(a):
        raise ValueError("no")

    failing = fs.py_func(fail, [fs.matmul(x, x)], fs.float32)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        for fetch, value in [(failing, np.eye(3)), (fs.matmul(x, x), np.ones((2, 3)))]:
            with pytest.raises(fs.errors.OpError):
                sess.run(fetch, {x: value})
            assert blas.threads() == 2


def test_a_step_that_is_stopped_restores_it(graph):
    x = fs.placeholder(fs.float32, [3, 3])
    begun = threading.Event()
    told = fs.py_func(lambda a: (begun.set(), a)[1], [x], fs.float32)
    told.set_shape([3, 3])
    endless = fs.while_loop(lambda a: True, lambda a: fs.matmul(a, x), [told])
    with fs.Session() as sess:
        stopper = threading.Thread(target=lambda: (begun.wait(), sess.gate.request("stop")))
        stopper.start()
        with pytest.raises(fs.errors.CancelledError):
            sess.run(endless, {x: np.eye(3)})
        stopper.join()
    assert blas.threads() == 2


def test_a_deadline_restores_it(graph):
    x = fs.placeholder(fs.float32, [3, 3])
    endless = fs.while_loop(lambda a: True, lambda a: fs.matmul(a, x), [x])
    with fs.Session() as sess, pytest.raises(fs.errors.DeadlineExceededError):
        sess.run(endless, {x: np.eye(3)}, fs.RunOptions(timeout_in_ms=20))
    assert blas.threads() == 2


def test_the_first_in_sets_and_the_last_out_restores():
    setting = blas.OneThread()
    setting.enter()
    setting.enter()
    setting.leave()
    assert blas.threads() == 1
    with setting.suspended():
        assert blas.threads() == 2
    assert blas.threads() == 1
    setting.leave()
    assert blas.threads() == 2


def test_a_section_has_one_while_the_step_runs_a_function_of_the_users():
    with working_for(SimpleNamespace(pool=object())):
        fork = Fork(blas.threads, ())
    with blas.one_thread, blas.one_thread.suspended():
        thread = threading.Thread(target=fork.help)
        thread.start()
        thread.join()
        assert fork.join() == 1
        assert blas.threads() == 2


def test_steps_inside_of_steps_are_counted(graph):
    x = fs.placeholder(fs.float32, [3, 3])
    product = fs.matmul(x, x)
    with fs.Session() as sess:
        inner = fs.py_func(lambda a: (sess.run(product, {x: a}), a)[1], [product], fs.float32)
        again = fs.py_func(lambda a: np.int64(blas.threads()), [inner], fs.int64)
        assert sess.run(again, {x: np.eye(3)}) == 2
    assert blas.threads() == 2


def test_scipys_library_is_found_once_it_is_loaded():
    import scipy.linalg  # noqa: F401

    setting = blas.OneThread()
    with setting:
        assert blas.threads() == 1, "of all libraries"
    assert len(blas.open_blas()) >= 2
    assert blas.threads() == 2


def test_every_thread_of_a_program_sees_it():
    seen = []
    with blas.one_thread:
        thread = threading.Thread(target=lambda: seen.append(blas.threads()))
        thread.start()
        thread.join()
    assert seen == [1]
