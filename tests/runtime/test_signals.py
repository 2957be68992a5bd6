"""Signals during steps: handlers may raise, and no lock, value or count is lost by that."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
from late_steps import late

import flowscope as fs
from flowscope.graph.op import Op, Spec
from flowscope.runtime.threads import interrupt
from flowscope.runtime.threads.host_calls import HostCall, HostThreads

PATIENCE_S = 30.0


class LateError(Exception):
    """What the tests' handlers raise."""


@pytest.fixture
def handled():
    """Sets handlers; puts back those that were there."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1)}

    def install(signum, handler):
        signal.signal(signum, handler)

    yield install
    signal.setitimer(signal.ITIMER_REAL, 0)
    for signum, handler in before.items():
        signal.signal(signum, handler)


class SendSignal(Op):
    """Hands its input on, and sends the process SIGUSR1 while its kernel runs."""

    is_stateful = True

    def infer(self, x: Spec) -> Spec:
        return x.like()

    def kernel(self, xp, x):
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(100):  # where Python would run the handler
            pass
        return x


def signalling(x):
    return fs.get_default_graph().add(SendSignal(), (x,), "signalling").outputs[0]


def raising(*_):
    raise LateError


def test_a_handler_that_raises_ends_the_step_at_a_safepoint(sess, handled):
    handled(signal.SIGUSR1, raising)
    v = fs.Variable(np.zeros(2, np.float32))
    y = signalling(fs.constant(1.0))
    with fs.control_dependencies([y]):
        step = fs.while_loop(
            lambda i: i < 10, lambda i: v.assign_add([1.0, 1.0])[0] * 0.0 + i + 1.0, [y]
        )
    sess.run(v.initializer)
    with pytest.raises(LateError):
        sess.run(step)
    assert sess.running == 0
    assert sess.run(v)[0] < 10
    handled(signal.SIGUSR1, lambda *_: None)
    sess.run(step)


def test_a_handler_that_does_not_raise_lets_the_step_go_on(sess, handled):
    seen = []
    handled(signal.SIGUSR1, lambda *_: seen.append(sess.running))
    assert sess.run(signalling(fs.constant(1.0)) + 1.0) == 2.0
    assert seen == [1]
    os.kill(os.getpid(), signal.SIGUSR1)
    assert seen == [1, 0], "between steps it runs at once"


def test_sigint_ends_a_step_that_waits(sess, handled):
    handled(signal.SIGINT, signal.default_int_handler)
    q = fs.FIFOQueue(1, [fs.float32], shapes=[()])
    waiting = q.dequeue()
    sess.run(q.size())

    def kick():
        while not sess.running:
            time.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=kick)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sess.run(waiting)
    thread.join(PATIENCE_S)
    sess.run(q.enqueue(1.0))
    assert sess.run(waiting) == 1.0


def test_sigint_is_raised_in_a_python_function(sess, handled):
    handled(signal.SIGINT, signal.default_int_handler)
    seen = []

    def forever(x):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                pass
        except KeyboardInterrupt:
            seen.append("interrupted")
            raise
        return x

    a, b = fs.Variable(1.0), fs.Variable(1.0)
    value = fs.py_func(forever, [fs.constant(0.0)], fs.float32)
    value.set_shape([])
    both = fs.group(fs.assign(a, 2.0), fs.assign(b, value))
    sess.run(fs.global_variables_initializer())
    with pytest.raises(KeyboardInterrupt):
        sess.run(both)
    assert seen == ["interrupted"]
    assert sess.run([a, b]) == [1.0, 1.0]
    assert sess.running == 0


def test_a_function_that_catches_the_interrupt_goes_on(sess, handled):
    handled(signal.SIGINT, signal.default_int_handler)

    def catches(x):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(PATIENCE_S)
        except KeyboardInterrupt:
            return np.float32(7.0)
        return x

    assert sess.run(fs.py_func(catches, [fs.constant(0.0)], fs.float32)) == 7.0


def test_a_step_inside_of_a_function_puts_signals_off_too(sess, handled):
    handled(signal.SIGUSR1, raising)
    inner = signalling(fs.constant(1.0)) + 1.0
    caught = []

    def f(x):
        try:
            sess.run(inner)
        except LateError:
            caught.append(sess.running)
        return x

    sess.run(fs.py_func(f, [fs.constant(0.0)], fs.float32))
    assert caught == [1]
    assert not interrupt._around


def test_a_deadline_ends_a_step_whose_function_does_not_return(sess):
    go, over = threading.Event(), threading.Event()

    def stuck(x):
        try:
            while not go.is_set():
                pass
        finally:
            over.set()
        return x

    y = fs.py_func(stuck, [fs.constant(0.0)], fs.float32, name="stuck")
    late(sess, y, match=r'node "stuck"', ms=500)
    assert over.wait(PATIENCE_S), "the function ends at its next line"
    assert sess.running == 0
    go.set()
    assert sess.run(y, options=fs.RunOptions(timeout_in_ms=60_000)) == 0.0


def test_a_function_under_a_deadline_fails_as_it_does_without(sess):
    def bad(x):
        raise ValueError("no good")

    y = fs.py_func(bad, [fs.constant(0.0)], fs.float32)
    for options in (None, fs.RunOptions(timeout_in_ms=60_000)):
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"ValueError in bad .*no good"):
            sess.run(y, options=options)


def test_a_stop_ends_the_wait_for_a_function_under_a_deadline(sess):
    inside, go = threading.Event(), threading.Event()

    def waits(x):
        inside.set()
        go.wait(PATIENCE_S)
        return x

    y = fs.py_func(waits, [fs.constant(0.0)], fs.float32)
    thread = threading.Thread(target=lambda: (inside.wait(PATIENCE_S), sess.stop()))
    thread.start()
    with pytest.raises(fs.errors.CancelledError):
        sess.run(y, options=fs.RunOptions(timeout_in_ms=60_000))
    go.set()
    thread.join(PATIENCE_S)


def test_a_deadline_of_a_step_inside_of_a_step_leaves_the_outer_one_its_own(sess):
    inner = fs.constant(1.0) + 1.0
    options = fs.RunOptions(timeout_in_ms=60_000)
    before = []

    def f(x):
        sess.run(inner, options=options)
        before.extend(s.deadline[1] for s in sess.gate.inside)
        return x

    sess.run(fs.py_func(f, [fs.constant(0.0)], fs.float32), options=options)
    assert before == [60_000]
    assert not sess.gate.inside
    assert not sess.gate.raised


def test_the_handler_that_was_there_is_the_one_that_comes_back(sess, handled):
    seen = []
    handled(signal.SIGUSR1, lambda *_: seen.append("first"))
    sess.run(fs.constant(1.0))
    first = signal.signal(signal.SIGUSR1, lambda *_: seen.append("second"))
    sess.run(fs.constant(1.0))
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, first)
    sess.run(fs.constant(1.0))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert seen == ["second", "first"]


def test_what_a_handler_raises_in_a_function_is_raised_as_it_is(sess, handled):
    handled(signal.SIGUSR1, raising)

    def f(x):
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(PATIENCE_S)
        return x

    with pytest.raises(LateError):
        sess.run(fs.py_func(f, [fs.constant(0.0)], fs.float32))


def test_a_function_that_is_left_alone_before_it_begins_does_not_run():
    class Later(HostThreads):
        def run(self, call):
            self.call = call

    ran, threads, over = [], Later(), threading.Event()
    call = HostCall(lambda: ran.append(1), threads, over.set)
    call.leave_alone()
    threads.call.run()
    assert over.is_set()
    assert call.is_done
    assert not ran


def test_a_call_tells_what_its_function_raised():
    done = threading.Event()

    def bad():
        raise LateError

    call = HostCall(bad, HostThreads(), done.set)
    assert done.wait(PATIENCE_S)
    with pytest.raises(LateError):
        call.result()


def raising_outside(own):
    """A handler that raises wherever it interrupts, but in one frame: a test's own.

    There an alarm that comes again - the first may be lost in a callback - would leave the test
    between its last step and the end of its alarms, where a busy machine holds it up.
    """

    def handler(signum, frame):
        if frame is not own:
            raise LateError

    return handler


@pytest.fixture
def no_gc_callbacks():
    """Takes away what test tools call at each collection: what a handler raises there is lost."""
    before = list(gc.callbacks)
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(before)


# What a handler raises in the callback of a weak reference Python prints, and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_alarms_at_any_instruction_lose_nothing(graph, handled, mode, no_gc_callbacks):
    handled(signal.SIGALRM, raising_outside(sys._getframe()))
    v = fs.Variable(np.zeros(8, np.float32), name="v")
    w = fs.Variable(np.zeros(8, np.float32), name="w")
    both = fs.group(v.assign_add(fs.ones([8])), w.assign_add(fs.ones([8])))
    q = fs.FIFOQueue(10, [fs.float32], shapes=[()])
    through = fs.group(q.enqueue(1.0), both)
    draw = random.Random(7)
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        for step in (both, through) * 100:
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(2e-5, 1e-3), 0.05)
                while True:
                    s.run(step, options=draw.choice([None, fs.RunOptions(timeout_in_ms=10_000)]))
                    if step is through and s.queues:
                        next(iter(s.queues.values())).clear()
            except LateError:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            for queue in s.queues.values():
                queue.clear()
            assert s.running == 0
            assert not s.gate.raised
            assert not interrupt._around
            states = s._container.variables().values()
            assert all(x.is_initialized and not x._lock.locked() for x in states)
            a, b = s.run([v, w])
            assert (a == b).all()


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, LateError])
def test_who_is_interrupted_behind_the_last_safepoint_loses_no_element(
    graph, handled, monkeypatch, mode, error
) -> None:
    """The step has ended well, but nobody gets what it has taken."""

    def handler(signum, frame):
        raise error

    handled(signal.SIGINT, handler)
    queue = fs.FIFOQueue(3, fs.int64, [])
    written = fs.Variable(0, dtype=fs.int64, name="written")
    taken, seen = queue.dequeue(), written.assign(queue.dequeue())
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run([queue.enqueue_many([[1, 2, 3]]), written.initializer])
        left = type(sess.gate).left
        sess.gate.set_pace(1e-6)  # so that the gate is told of the step's end

        def signalled(gate, step):
            left(gate, step)
            if step.call.plan.request.fetches:
                os.kill(os.getpid(), signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(type(sess.gate), "left", signalled)
            with pytest.raises(error):
                sess.run(taken)
            with pytest.raises(error):
                sess.run(seen)
        sess.gate.set_pace(0.0)
        assert sess.run(written) == 1  # what was written may have been seen: it is not taken back
        assert [int(sess.run(taken)) for _ in range(2)] == [2, 3]
