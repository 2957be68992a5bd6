"""Sections that another thread computes: bits, errors, stops, and who runs them."""

import threading

import numpy as np
import pytest
import random_programs

import flowscope as fs
from flowscope.plan.analysis.costs import Costs
from flowscope.runtime.threads.forks import Fork, ForkTasks
from flowscope.runtime.threads.thread_pool import ThreadPool

SEEDS = [*range(6), *[pytest.param(i, marks=pytest.mark.slow) for i in range(6, 120)]]


class Nobody:
    """A pool whose threads never come."""

    def put(self, task):
        pass


class AtOnce:
    """A pool whose thread runs a task before its owner goes on."""

    def put(self, task):
        helper = threading.Thread(target=task.help)
        helper.start()
        helper.join()


@pytest.fixture
def all_large(monkeypatch):
    """Every operation takes a second, as far as plans know: whatever can be a section is one."""
    monkeypatch.setattr(Costs, "seconds", lambda self, node: 1.0)


@pytest.fixture(params=[Nobody, AtOnce, None])
def pools(request, monkeypatch):
    """The runners of sections: the step itself, another thread at once, and whoever comes first."""
    if request.param is not None:
        monkeypatch.setattr(ThreadPool, "tasks", lambda self: ForkTasks(request.param()))


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_have_the_bits_and_errors_of_one_thread(seed, all_large, pools):
    random_programs.check(seed)


def two_branches(first=lambda x: fs.matmul(x, x), second=lambda x: fs.matmul(x, x)):
    x = fs.placeholder(fs.float32, [None, None], name="x")
    y = fs.placeholder(fs.float32, [None, None], name="y")
    return x, y, fs.exp(first(x)), fs.exp(second(y))


def test_the_code_hands_out_a_branch(all_large):
    x, y, a, b = two_branches()
    with fs.Session() as sess:
        text = sess.plan(a + b, [x, y]).text("code")
    assert "tasks.fork(" in text
    assert "tasks.join(" in text


def test_small_work_is_not_handed_out():
    x, y, a, b = two_branches()
    with fs.Session() as sess:
        feed = {x: np.ones((8, 8)), y: np.ones((8, 8))}
        sess.run(a + b, feed)
        assert "tasks" not in sess.plan(a + b, [x, y]).text("code")


def test_shapes_of_the_first_step_decide():
    x, y, a, b = two_branches()
    with fs.Session() as sess:
        feed = {v: np.zeros((700, 700), np.float32) for v in (x, y)}
        total = a + b
        sess.run(total, feed)
        assert "tasks.fork(" in sess.plan(total, [x, y]).text("code")


def test_one_inter_op_thread_hands_nothing_out(all_large):
    x, y, a, b = two_branches()
    with fs.Session(config=fs.ConfigProto(inter_op_parallelism_threads=1)) as sess:
        assert "tasks" not in sess.plan(a + b, [x, y]).text("code")


def test_one_intra_op_thread_leaves_branches_to_others():
    """Sharing one operation and running several are counted apart."""
    pool = ThreadPool(size=1)
    pool._cores = 2
    ran = threading.Event()
    tasks = pool.tasks()
    tasks.fork(ran.set)
    assert ran.wait(30)
    tasks.close()


def test_one_core_has_no_helpers():
    pool = ThreadPool(size=1)
    pool._cores = 1
    fork = pool.tasks().fork(threading.get_ident)
    assert fork.join() == threading.get_ident()
    assert not pool._threads


def test_the_first_error_in_program_order_is_told(all_large, pools):
    x, y, a, b = two_branches()
    bad = np.ones((2, 3), np.float32)
    fine = np.eye(2, dtype=np.float32)
    with fs.Session() as sess:
        total = fs.reduce_sum(a) + fs.reduce_sum(b)
        for feed, name in (
            ({x: bad, y: bad}, a.op.inputs[0].op.name),
            ({x: fine, y: bad}, b.op.inputs[0].op.name),
        ):
            for _ in range(5):
                with pytest.raises(fs.errors.InvalidArgumentError) as caught:
                    sess.run(total, feed)
                assert caught.value.op.name == name
                assert "test_forks.py" in str(caught.value)
        np.testing.assert_allclose(sess.run(total, {x: fine, y: fine}), 2 * (2 * np.e + 2))


def test_effects_before_a_failing_section_have_happened(all_large, pools):
    v = fs.Variable(0.0, use_resource=True)
    x, y, a, b = two_branches()
    with fs.control_dependencies([a]):
        wrote = v.assign_add(1.0)
    with fs.control_dependencies([wrote]):
        last = fs.identity(b)
    with fs.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(fs.errors.InvalidArgumentError):
            sess.run([a, wrote, last], {x: np.eye(2), y: np.ones((2, 3))})
        compiled = sess.run(v)
    config = fs.ConfigProto(mode="op")
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        with pytest.raises(fs.errors.InvalidArgumentError):
            sess.run([a, wrote, last], {x: np.eye(2), y: np.ones((2, 3))})
        assert sess.run(v) == compiled


def test_a_stopped_step_leaves_nothing_behind(all_large):
    """A stop between fork and join: a section that has begun ends, one that has not never does."""
    x, y, a, b = two_branches()
    with fs.Session() as sess:
        stops = fs.py_func(sess.stop, [], [])
        with fs.control_dependencies([a, stops]):
            c = fs.identity(a)
        feed = {v: np.eye(3, dtype=np.float32) for v in (x, y)}
        with pytest.raises(fs.errors.CancelledError):
            sess.run([c, b], feed)
        ran = sess.run([a, b], feed)
        np.testing.assert_array_equal(ran[0], ran[1])


def test_a_late_helper_finds_nothing_to_do():
    ran = []
    fork = Fork(lambda k: ran.append(k) or k, (1,))
    assert fork.join() == 1
    fork.help()
    assert ran == [1]


def test_closed_tasks_are_never_begun_and_hold_nothing():
    tasks = ForkTasks(Nobody())
    array = np.ones(3)
    fork = tasks.fork(lambda x: pytest.fail("it runs"), array)
    tasks.close()
    fork.help()
    assert fork._arguments == ()


def test_closing_waits_for_what_has_begun():
    begun, go, ended = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        go.wait(30)
        ended.append(True)

    tasks = ForkTasks(Nobody())
    fork = tasks.fork(work)
    helper = threading.Thread(target=fork.help)
    helper.start()
    begun.wait(30)
    threading.Timer(0.01, go.set).start()
    tasks.close()
    assert ended == [True]
    helper.join()


def test_joining_raises_what_the_helper_has_raised():
    tasks = ForkTasks(AtOnce())
    fork = tasks.fork(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tasks.join(fork)
    tasks.close()
