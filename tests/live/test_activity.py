"""What a session is said to be doing: stopped at once, idle after the cell, its own loop."""

import contextlib
import threading

import pytest

import flowscope as fs
from flowscope.live.answers import progress
from flowscope.live.protocol.schema import Command
from flowscope.live.watchers import bus
from flowscope.live.watchers.bus import LiveChannel


@pytest.fixture
def loop(graph):
    """A step that runs until it is stopped."""
    return fs.while_loop(lambda i: i >= 0, lambda i: i * 1, [fs.constant(1)])


def stopped(sess, fetch, feed):
    """Runs a step in a thread, stops it through the view, and returns what is told then."""
    raised = []

    def run():
        try:
            sess.run(fetch)
        except fs.errors.CancelledError as e:
            raised.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    while not sess.running:
        pass
    feed.receive(Command(1, "stop"))
    thread.join(30)
    assert raised
    return feed.snapshot(1.0).session  # the command's own look may have told it already


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_stopped_session_is_stopped_at_once_until_a_step_begins(feed, loop, mode):
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        one = fs.constant(1.0)
        for _ in range(3):
            sess.run(one)
        feed.tick(0.5)
        state = stopped(sess, loop, feed)
        assert (state.state, state.steps_per_s) == ("stopped", None)
        assert feed.tick(60.0) is None or feed.tick(60.0).session.state == "stopped"
        sess.run(one)
        assert feed.tick(60.1).session.state == "running"


def test_a_session_is_idle_when_the_cell_has_ended(feed, monkeypatch):
    monkeypatch.setattr(bus.notebook, "cell_running", True)
    one = fs.constant(1.0)
    with fs.Session() as sess:
        for i, _ in enumerate(fs.progress(range(10), "training")):
            sess.run(one)
            feed.tick(0.1 * i)
            if i == 4:
                break
        assert feed.tick(0.6).session.state == "running"
        monkeypatch.setattr(bus.notebook, "cell_running", False)
        told = feed.tick(0.7).session
        assert (told.state, told.steps_per_s, told.progress.eta_s) == ("idle", None, None)


def test_a_loop_is_shown_where_its_steps_run(graph):
    one = fs.constant(1.0)
    with fs.Graph().as_default() as other:
        two = fs.constant(2.0)
    sess, elsewhere = fs.Session(graph=graph), fs.Session(graph=other)
    with contextlib.closing(sess), contextlib.closing(elsewhere):
        for _ in fs.progress(range(1), "here"):
            assert progress.current(0.0, elsewhere) is None
            sess.run(one)
            for _ in fs.progress(range(2), "there"):
                elsewhere.run(two)
                assert progress.current(0.0, sess).description == "here"
        with other.as_default():
            for _ in fs.progress(range(2), "next"):
                assert progress.current(0.0, elsewhere).description == "next"
                assert progress.current(0.0, sess).description != "next"
                elsewhere.run(two)
    assert LiveChannel(other).session is None


def test_a_pause_is_no_part_of_the_time_that_is_left(graph):
    x = fs.placeholder(fs.float32, [])
    y = fs.exp(x)
    told = []
    with fs.Session() as sess:
        for i in fs.progress(range(4), "training"):
            begin_s = sess.engine.loops[0].start_s
            if i == 2:  # two steps took a second each, and the third one is paused for an hour
                sess.pause()
                thread = threading.Thread(target=sess.run, args=(y, {x: 1.0}))
                thread.start()
                while not sess.gate.held_steps():
                    threading.Event().wait(0.001)
                looks = (2.0, 1802.0, 3602.0)
                told += [progress.current(begin_s + now_s, sess) for now_s in looks]
                sess.resume()
                thread.join()
                told.append(progress.current(begin_s + 3602.0, sess))
            else:
                sess.run(y, {x: 1.0})
            if i == 3:
                told.append(progress.current(begin_s + 3603.0, sess))
    assert [(p.elapsed_s, p.eta_s) for p in told] == [(2.0, 2.0)] * 4 + [(3.0, 1.0)]
