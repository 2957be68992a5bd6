"""Pausing, stopping and interrupting steps: at safepoints, with whole updates only."""

import os
import signal
import threading

import numpy as np
import pytest
from stopping import StopAt

import flowscope as fs
from flowscope.plan.codegen import function as code
from flowscope.runtime.waits.gate import Gate

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


pytestmark = pytest.mark.usefixtures("graph")


class Meeting:
    """An op's kernel that meets the test: it says that it runs, and waits to be let on."""

    def __init__(self):
        self.arrived, self.go = threading.Event(), threading.Event()

    def __call__(self, x):
        self.arrived.set()
        assert self.go.wait(PATIENCE_S)
        return x


@pytest.fixture
def meeting():
    return Meeting()


def in_thread(work):
    box = {}

    def run():
        try:
            box["value"] = work()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=run)
    thread.start()
    return thread, box


def through(function, x):
    """An op made for the test: calls `function` on its input."""
    from dataclasses import dataclass

    from flowscope.graph.op import Op, _registry
    from flowscope.ops.core.build import apply

    _registry.pop("Through", None)

    @dataclass(frozen=True)
    class Through(Op):
        """Calls a function."""

        number: int = 0
        is_stateful = True

        def infer(self, x):
            return x.like()

        def kernel(self, xp, x):
            return function(x)

    return apply(Through(), x)


def big_work(x):
    for _ in range(3):
        x = fs.matmul(x, x) * 1e-3
    return x


def test_stop_ends_a_step_at_its_next_safepoint_and_the_session_stays_usable(sess, meeting):
    v = fs.Variable(0.0)
    x = through(meeting, fs.ones([200, 200]))
    with fs.control_dependencies([big_work(x)]):
        late = v.assign_add(1.0)
    sess.run(v.initializer)
    thread, box = in_thread(lambda: sess.run(late))
    assert meeting.arrived.wait(PATIENCE_S)
    sess.stop()
    meeting.go.set()
    thread.join(PATIENCE_S)
    assert isinstance(box["error"], fs.errors.CancelledError)
    assert sess.run(v) == 0.0


def test_pause_holds_a_step_and_resume_lets_it_go_on(sess, meeting):
    y = big_work(through(meeting, fs.ones([200, 200])))
    thread, box = in_thread(lambda: sess.run(y))
    assert meeting.arrived.wait(PATIENCE_S)
    sess.pause()
    assert sess.gate.state == "pausing"
    meeting.go.set()
    assert sess.gate.wait_until_held(PATIENCE_S)
    assert sess.gate.state == "paused" and thread.is_alive()
    before = sess.gate.held_ns
    sess.resume()
    thread.join(PATIENCE_S)
    assert sess.gate.held_ns > before, "the time of a pause is told apart from the step's"
    np.testing.assert_allclose(box["value"], sess.run(y))


def test_a_pause_between_runs_holds_the_next_one_and_stop_ends_it(sess):
    x = fs.constant(1.0)
    sess.run(x)
    sess.pause()
    thread, box = in_thread(lambda: sess.run(x))
    assert sess.gate.wait_until_held(PATIENCE_S)
    sess.stop()
    thread.join(PATIENCE_S)
    assert isinstance(box["error"], fs.errors.CancelledError)
    assert sess.run(x) == 1.0


def test_a_stop_that_meets_no_step_can_be_forgotten(sess):
    sess.stop()
    sess.gate.clear_stop()
    assert sess.run(fs.constant(1.0)) == 1.0


@pytest.mark.parametrize(
    "optimizer", [fs.train.GradientDescentOptimizer(0.1), fs.train.AdamOptimizer(0.1)]
)
def test_an_update_is_whole_at_every_safepoint(sess, optimizer, monkeypatch):
    """Stops the same step at each of its safepoints in turn: all variables moved, or none."""
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    w = [fs.Variable(np.full((3, 3), i + 1.0, np.float32)) for i in range(3)]
    loss = fs.reduce_sum(fs.matmul(fs.matmul(w[0], w[1]), w[2]))
    train = optimizer.minimize(loss)
    state = fs.global_variables()
    sess.run(fs.global_variables_initializer())
    start = sess.run(state)

    normal, outcomes = sess.gate, set()
    for count in range(1000):
        sess.gate = StopAt(count)
        try:
            sess.run(train)
        except fs.errors.CancelledError:
            sess.gate = normal
            moved = [not np.array_equal(a, b) for a, b in zip(start, sess.run(state), strict=True)]
            assert all(moved) or not any(moved), [
                v.name for v, m in zip(state, moved, strict=True) if m
            ]
            outcomes.add(any(moved))
            for v, value in zip(state, start, strict=True):
                v.load(value, sess)
        else:
            break
        finally:
            sess.gate = normal
    assert count > 5
    assert False in outcomes


def test_a_safepoint_tells_where_the_step_is(monkeypatch):
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    x = fs.placeholder(fs.float32, [])
    y = fs.negative(fs.negative(fs.negative(x)))
    seen = []

    class Watching(Gate):
        def hold(self, point, here=None):
            if here is not None:
                seen.append(here.where())
            return False

    with fs.Session() as sess:
        sess.gate = Watching()
        sess.gate.raised = True
        assert sess.run(y, {x: 1.0}) == -1.0
    assert [w.node.name for w in seen] == ["Neg_1", "Neg_2"]
    assert all(w.mode == "compiled" and w.loops == () for w in seen)


def test_the_gates_table_is_complete():
    from flowscope.runtime.waits.gate_states import TRANSITIONS

    requests = {"pause", "resume", "stop", "close", "step", "arrive"}
    assert all(set(row) == requests for row in TRANSITIONS.values())
    assert {s for row in TRANSITIONS.values() for s in row.values()} == set(TRANSITIONS)


def test_sigint_ends_a_step_that_is_paused(sess):
    x = fs.constant(1.0)
    sess.run(x)
    sess.pause()

    def interrupt_when_held():
        if sess.gate.wait_until_held(PATIENCE_S):
            os.kill(os.getpid(), signal.SIGINT)

    thread, _ = in_thread(interrupt_when_held)
    with pytest.raises(KeyboardInterrupt):
        sess.run(x)
    thread.join(PATIENCE_S)
    assert sess.gate.state == "open"
    assert sess.run(x) == 1.0
