"""Several threads run one session: nothing is lost, and control reaches all of them."""

import os
import signal
import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import Op, _registry
from flowscope.ops.core.build import apply

pytestmark = pytest.mark.usefixtures("graph")

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


def start(*functions):
    """Starts functions in threads; returns a function that waits and gives what came out."""
    results = [None] * len(functions)

    def work(i, function):
        try:
            results[i] = function()
        except BaseException as e:
            results[i] = e

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(functions)]
    for t in threads:
        t.start()

    def finish():
        for t in threads:
            t.join(PATIENCE_S)
            assert not t.is_alive()
        return results

    return finish


def together(*functions):
    results = start(*functions)()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


def through(function, x):
    """An op made for the test: calls `function` on its input."""
    from dataclasses import dataclass

    _registry.pop("Across", None)

    @dataclass(frozen=True)
    class Across(Op):
        """Calls a function."""

        is_stateful = True

        def infer(self, x):
            return x.like()

        def kernel(self, xp, x):
            return function(x)

    return apply(Across(), x)


def big_work(x):
    for _ in range(3):
        x = fs.matmul(x, x) * 1e-3
    return x


@pytest.fixture
def crowd(sess):
    """Two steps that meet before they reach their next safepoint, and go on when told."""
    meeting, go = threading.Barrier(3), threading.Event()

    def wait(x):
        meeting.wait(PATIENCE_S)
        assert go.wait(PATIENCE_S)
        return x

    y = big_work(through(wait, fs.ones([200, 200])))
    return y, meeting, go


def test_counters_are_exact(sess):
    v, w = fs.Variable(0), fs.Variable(np.zeros(100, np.int64))
    ups = [v.assign_add(1).op, w.assign_add(np.ones(100, np.int64)).op]
    x = fs.placeholder(fs.int32, [])
    y = x * 2
    sess.run(fs.global_variables_initializer())
    before = sess.steps

    def work(k):
        for i in range(300):
            sess.run(ups)
            assert sess.run(y, {x: 1000 * k + i}) == 2 * (1000 * k + i)

    together(*[lambda k=k: work(k) for k in range(4)])
    assert sess.run(v) == 1200
    assert (sess.run(w) == 1200).all()
    assert sess.steps == before + 4 * 600 + 2
    assert sess.running == 0


def test_values_of_one_step_belong_together(sess):
    v = fs.Variable(np.zeros(50, np.int64))
    before = v.read_value()
    up = v.assign_add(np.ones(50, np.int64))
    after = v.read_value()
    sess.run(v.initializer)

    def look():
        for _ in range(300):
            a, b, c = sess.run([before, up, after])
            assert all((x == x[0]).all() for x in (a, b, c)), "no value is half written"
            assert a[0] < b[0] <= c[0]

    together(*[look] * 4)
    assert (sess.run(v) == 1200).all()


def test_one_thread_plans_while_another_runs(sess):
    v = fs.Variable(0)
    up = v.assign_add(1)
    tensors = [fs.constant(i) + i for i in range(300)]
    sess.run(v.initializer)

    def run():
        for _ in range(600):
            sess.run(up.op)

    def plan():
        return [sess.run(t) for t in tensors]

    _, one, two = together(run, plan, plan)
    assert one == two == [2 * i for i in range(300)]
    assert sess.run(v) == 600
    assert sess.plan_cache.misses == 303, "two threads that want the same plan make it once"


def test_random_draws_of_threads_are_those_of_single_runs(graph):
    fs.set_random_seed(3)
    x = fs.random_normal([3])
    with fs.Session() as one, fs.Session() as two:
        draws = together(*[lambda: [tuple(one.run(x)) for _ in range(100)]] * 3)
        assert {d for part in draws for d in part} == {tuple(two.run(x)) for _ in range(300)}


def test_a_partial_run_may_go_on_in_another_thread(sess):
    a, b = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    y = a + b
    handle = sess.partial_run_setup(y, [a, b])
    sess.partial_run(handle, [], {a: 1})
    assert together(lambda: sess.partial_run(handle, y, {b: 2})) == [3]


def test_a_stop_ends_all_steps_that_are_running(sess, crowd):
    y, meeting, go = crowd
    finish = start(*[lambda: sess.run(y)] * 2)
    meeting.wait(PATIENCE_S)
    assert sess.running == 2
    sess.stop()
    go.set()
    assert [type(r) for r in finish()] == [fs.errors.CancelledError] * 2
    assert sess.run(fs.constant(1.0)) == 1, "and no later one"
    assert sess.gate.state == "open"


def test_a_pause_holds_all_steps_and_resume_lets_all_go_on(sess, crowd):
    y, meeting, go = crowd
    finish = start(*[lambda: sess.run(y)] * 2)
    meeting.wait(PATIENCE_S)
    sess.pause()
    go.set()
    assert sess.gate.wait_until_held(PATIENCE_S, 2)
    sess.resume()
    one, two = finish()
    np.testing.assert_array_equal(one, two)


def test_a_stop_ends_all_steps_that_are_paused(sess):
    x = fs.constant(1.0)
    sess.run(x)
    sess.pause()
    finish = start(*[lambda: sess.run(x)] * 3)
    assert sess.gate.wait_until_held(PATIENCE_S, 3)
    sess.stop()
    assert [type(r) for r in finish()] == [fs.errors.CancelledError] * 3
    assert sess.run(x) == 1


def test_a_stop_for_a_step_that_failed_instead_ends_the_next_one(sess):
    arrived, go = threading.Event(), threading.Event()

    def fail(x):
        arrived.set()
        assert go.wait(PATIENCE_S)
        raise ValueError("it failed")

    y = through(fail, fs.constant(1.0))
    finish = start(lambda: sess.run(y))
    assert arrived.wait(PATIENCE_S)
    sess.stop()
    go.set()
    assert "it failed" in str(finish()[0])
    with pytest.raises(fs.errors.CancelledError):
        sess.run(fs.constant(1.0))
    assert sess.run(fs.constant(1.0)) == 1


def test_an_interrupt_ends_only_the_step_on_the_main_thread(sess, crowd):
    y, meeting, go = crowd
    finish = start(lambda: sess.run(y))
    interrupting = start(
        lambda: (
            meeting.wait(PATIENCE_S),
            os.kill(os.getpid(), signal.SIGINT),
            go.set(),
        )
    )
    with pytest.raises(KeyboardInterrupt):
        sess.run(y)
    interrupting()
    (other,) = finish()
    assert isinstance(other, np.ndarray)
    assert sess.gate.state == "open"
    assert sess.run(fs.constant(1.0)) == 1


def test_closing_ends_what_runs_and_refuses_what_comes_later(sess, crowd):
    y, meeting, go = crowd
    v = fs.Variable(np.ones((200, 200), np.float32))
    with fs.control_dependencies([y]):
        z = v.assign_add(np.ones((200, 200), np.float32))
    sess.run(v.initializer)
    finish = start(*[lambda: sess.run(z)] * 2)
    meeting.wait(PATIENCE_S)
    sess.close()
    go.set()
    for error in finish():
        assert isinstance(error, fs.errors.CancelledError)
        assert "session was closed" in str(error)
    with pytest.raises(RuntimeError, match="this session is closed"):
        sess.run(v)


def test_closing_a_paused_session_ends_its_steps(sess):
    x = fs.constant(1.0)
    sess.pause()
    finish = start(*[lambda: sess.run(x)] * 2)
    assert sess.gate.wait_until_held(PATIENCE_S, 2)
    sess.close()
    assert [type(r) for r in finish()] == [fs.errors.CancelledError] * 2


def test_callables_and_partial_runs_of_a_closed_session_are_refused(sess):
    x = fs.placeholder(fs.float32, [])
    call, handle = sess.make_callable(x + 1.0, [x]), sess.partial_run_setup(x + 1.0, [x])
    sess.close()
    sess.close()
    for refused in (
        lambda: call(1.0),
        lambda: sess.partial_run(handle, [], {x: 1}),
        lambda: sess.partial_run_setup(x, [x]),
        lambda: sess.make_callable(x),
        lambda: sess.plan(x),
        lambda: sess.run(x, {x: 1}, fs.RunOptions(timeout_in_ms=1000)),
    ):
        with pytest.raises(RuntimeError, match="this session is closed"):
            refused()


def test_the_time_of_one_steps_pause_is_not_taken_from_anothers(sess):
    x = fs.constant(1.0)
    sess.run(x)
    sess.pause()
    finish = start(*[lambda: sess.run(x)] * 3)
    assert sess.gate.wait_until_held(PATIENCE_S, 3)
    before = sess.busy_ns
    sess.resume()
    finish()
    assert sess.busy_ns > before
    assert not sess.gate.inside
