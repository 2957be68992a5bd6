"""What ends a step on one thread ends it on all, with the cause, and leaves nothing behind."""

import gc
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from split_runs import session_call

import flowscope as fs
from flowscope.errors import UnavailableError
from flowscope.runtime.step.split import SplitStep
from flowscope.runtime.waits.rendezvous import Mailbox, Rendezvous, TaggedMailbox

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]
PATIENCE_S = 30.0


def until(is_true):
    end = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def endless():
    """A loop that runs until it is ended, with values that cross in both directions."""
    x = fs.placeholder(fs.float32, [2])

    def body(i, a, b):
        c = fs.tanh(a) + b
        return i + 1, fs.tanh(c) * 0.5, c - fs.tanh(b)

    found = fs.while_loop(lambda i, *_: i >= 0, body, [0, x, x], parallel_iterations=4)
    return list(found[1:]), {x: [0.5, 0.25]}


def in_background(run):
    """Runs something on another thread; returns a function that waits for its error."""
    found = []

    def work():
        try:
            found.append(run())
        except BaseException as e:
            found.append(e)

    thread = threading.Thread(target=work)
    thread.start()

    def ended():
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        return found[0]

    return ended


@pytest.fixture(params=MODES)
def running(request):
    """A session whose step runs on two threads, and what waits for the step's error."""
    fetches, feeds = endless()
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as sess:
        session_call(sess, fetches, feeds, request.param, seed=1)
        ended = in_background(lambda: sess.run(fetches, feeds))
        until(lambda: len(sess.gate.inside) >= 2)
        yield sess, ended
        sess.gate.request("stop")
        ended()
        assert not sess.gate.inside


def test_a_stop_ends_the_step_on_all_threads(running):
    sess, ended = running
    sess.gate.request("stop")
    error = ended()
    assert isinstance(error, fs.errors.CancelledError)
    assert "the step was stopped" in str(error)
    assert sess.gate.state == "open" and sess.running == 0


def test_a_closed_session_ends_the_step_on_all_threads(running):
    sess, ended = running
    sess.close()
    error = ended()
    assert isinstance(error, fs.errors.CancelledError)
    assert "the session was closed" in str(error)


def test_a_pause_holds_all_threads_and_they_go_on(running):
    sess, _ended = running
    sess.gate.request("pause")
    assert sess.gate.wait_until_held(PATIENCE_S)

    def seen():
        sess.gate.look(0.2)
        return [w.loops[0].iteration for w in sess.gate.report()[0].values() if w.loops]

    until(lambda: seen() and seen() == seen())
    before = max(seen())
    sess.gate.request("resume")
    until(lambda: max(seen(), default=0) > before)


def test_a_held_step_goes_on_one_operation_at_a_time(running):
    sess, _ended = running
    sess.gate.request("pause")
    assert sess.gate.wait_until_held(PATIENCE_S)
    before = sess.gate.moves.count
    for _ in range(20):
        sess.step_op()
        until(lambda: sess.gate.state == "paused")
    assert sess.gate.moves.count > before
    sess.gate.request("resume")


@pytest.mark.parametrize("mode", MODES)
def test_a_deadline_ends_the_step_on_all_threads(mode):
    fetches, feeds = endless()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        session_call(sess, fetches, feeds, mode, seed=1)
        with pytest.raises(fs.errors.DeadlineExceededError, match="longer than its 50 ms"):
            sess.run(fetches, feeds, options=fs.RunOptions(timeout_in_ms=50))
        assert not sess.gate.inside


class Lossy(Rendezvous):
    """Loses what is sent."""

    class Box(Mailbox):
        __slots__ = ()

        def send(self, value):
            pass

    class Tagged(TaggedMailbox):
        def send(self, value, tag):
            pass

    def _made(self, key):
        return Lossy.Box(key)

    def tagged(self, key):
        return self._tagged.setdefault(key, Lossy.Tagged(key))


@pytest.mark.parametrize("mode", MODES)
def test_a_deadline_says_who_waits_for_which_device_and_since_when(mode):
    fetches, feeds = endless()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        session_call(sess, fetches, feeds, mode, 1, Lossy)
        text = r'device:CPU:\d waited 0\.\d\d s for .*device:CPU:\d to send "'
        if mode == "tokens":
            text = r'/from_CPU:\d" \(Recv, .*for 0\.\d\d s, on .*device:CPU:\d\)'
        with pytest.raises(fs.errors.DeadlineExceededError, match=text):
            sess.run(fetches, feeds, options=fs.RunOptions(timeout_in_ms=150))


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_ends_the_step_on_all_threads(mode):
    fetches, feeds = endless()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            session_call(sess, fetches, feeds, mode, seed=1)

            def interrupt():
                until(lambda: len(sess.gate.inside) >= 2)
                os.kill(os.getpid(), signal.SIGINT)

            told = in_background(interrupt)
            with pytest.raises(KeyboardInterrupt):
                sess.run(fetches, feeds)
            told()
            assert not sess.gate.inside
            assert sess.run(fs.constant(3) + 1) == 4
    finally:
        signal.signal(signal.SIGINT, before)


def failing(at):
    """Returns a loop that fails in an iteration, on either side, while the other one waits."""
    x = fs.placeholder(fs.float32, [2])
    bad = fs.placeholder(fs.int32, [])

    def body(i, a, b):
        size = fs.where(fs.equal(i, bad), 3, 2)
        return i + 1, fs.reshape(fs.tanh(a) + b, [size], name="square"), fs.tanh(b) - a

    found = fs.while_loop(lambda i, *_: i < 40, body, [0, x, x], parallel_iterations=2)
    return list(found[1:]), {x: [0.5, 0.25], bad: at}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_the_error_is_the_cause_and_names_its_operation(mode, seed):
    fetches, feeds = failing(17)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        session_call(sess, fetches, feeds, mode, seed)
        with pytest.raises(fs.errors.InvalidArgumentError) as caught:
            sess.run(fetches, feeds)
        assert "square" in str(caught.value)
        assert dict(caught.value.iterations).popitem()[1] == 17
        feeds[next(reversed(feeds))] = -1
        assert len(sess.run(fetches, feeds)) == 2


def left_behind():
    """The leftovers of steps: threads, mailboxes, values."""
    found = [type(o) for o in gc.get_objects()]
    return len(threading.enumerate()), sum(issubclass(t, Mailbox | TaggedMailbox) for t in found)


def aborted(sess, fetches, feeds, count):
    for i in range(count):
        *given, bad = feeds
        with pytest.raises(fs.errors.InvalidArgumentError):
            sess.run(fetches, {**{t: feeds[t] for t in given}, bad: i % 5})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [20, pytest.param(10_000, marks=pytest.mark.slow)])
def test_aborted_steps_leave_nothing_behind(mode, count):
    if mode != "compiled" and count > 20:
        count = 1000
    fetches, feeds = failing(0)
    state = fs.Variable(np.zeros(2, "f"), name="state")
    x = next(iter(feeds))
    fetches = [*fetches, state + x]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(state.initializer)
        session_call(sess, fetches, feeds, mode, seed=1)
        aborted(sess, fetches, feeds, 10)
        gc.collect()
        gc.disable()
        try:
            before = left_behind()
            aborted(sess, fetches, feeds, count)
            after = left_behind()
        finally:
            gc.enable()
        assert after[0] <= before[0] + 1 and after[1] == 0
        address = sess.variable_state(state.handle).value.ctypes.data
        sess.run(state.assign_add([1.0, 1.0]))  # in place where nobody holds a lease
        assert sess.variable_state(state.handle).value.ctypes.data == address


def test_a_step_raises_its_error_only_once_it_is_explained():
    told = []

    def finish():
        with pytest.raises(UnavailableError) as caught:
            split.finish()
        told.append(str(caught.value))

    def explain(error, ended):
        finishing.start()  # no thread of the step is left
        finishing.join(0.2)
        return "its machine has run out of memory"

    finishing = threading.Thread(target=finish)
    channel = SimpleNamespace(abort=lambda error: None)
    split = SplitStep(SimpleNamespace(), channel, None, None, explain=explain)
    split.end(UnavailableError("worker 0 is lost"))
    finishing.join(PATIENCE_S)
    assert told == ["worker 0 is lost; its machine has run out of memory"]
