"""Steps of one process that wait for each other: told as a circle where they are one."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress

import pytest
from local_clusters import wait_until
from waiting_circles import TOLD, end_now, tally

import flowscope as fs
from flowscope.errors import CancelledError, DeadlineExceededError
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.waits import local_waits


def is_told(message):
    return any(text in message for text in TOLD)


class Others:
    """Steps on threads of their own, until their sessions are closed."""

    def __init__(self):
        self.threads = []

    def begin(self, function, *args, name="other"):
        def run():
            with suppress(CancelledError, DeadlineExceededError):
                function(*args)

        self.threads.append(threading.Thread(target=run, name=name))
        self.threads[-1].start()
        return self.threads[-1]

    def failure(self, sess, op, count=1):
        """What the deadline of a step says once it waits with so many partitions."""
        found = []

        def run():
            with pytest.raises(DeadlineExceededError) as failure:
                sess.run(op)
            found.append(failure.value.message)

        def steps():
            return [s for s in sess.gate.inside if s.whole.thread == thread.ident]

        thread = self.begin(run, name="teller")
        wait_until(lambda: sum(s.awaits is not None for s in steps()) == count)
        for step in steps():
            end_now(step)
        thread.join()
        return found[0]

    def end(self, *sessions):
        for sess in sessions:
            sess.close()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def others():
    with Engine().as_default():  # named containers are its own
        yield Others()


def crossing_steps():
    """Two steps: each takes of the queue that the other one fills afterwards."""
    left, right = (fs.FIFOQueue(3, [fs.float32], [[]], shared_name=n) for n in ("left", "right"))
    a = right.enqueue(left.dequeue(name="a_takes") + 1.0)
    return a, left.enqueue(right.dequeue(name="b_takes") + 1.0)


def waits(sess, count=1):
    """Waits until so many steps of a session wait at its gate."""
    wait_until(lambda: sum(s.awaits is not None for s in sess.gate.inside) == count)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("mode", ["compiled", "tokens"])
def test_two_steps_on_each_others_queues_are_a_circle(graph, others, mode, count):
    with fs.container("shared"):
        a, b = crossing_steps()
    sessions = [fs.Session(config=fs.ConfigProto(mode=mode)) for _ in range(count)]
    others.begin(sessions[-1].run, b)
    waits(sessions[-1])
    told = others.failure(sessions[0], a)
    others.end(*sessions)
    assert is_told(told)
    assert 'waits in "a_takes" (0.' in told
    assert 's) until the step of thread "other" fills FIFOQueue "left", which waits in' in told
    assert told.endswith('until the step of thread "teller" fills FIFOQueue "right"')


@pytest.mark.slow
def test_nobody_can_go_on_is_said_only_where_no_other_thread_could_help():
    program = """
        import threading
        import flowscope as fs
        a, b = (fs.FIFOQueue(3, [fs.float32], [[]]) for _ in range(2))
        here, there = b.enqueue(a.dequeue()), a.enqueue(b.dequeue())
        sess = fs.Session()
        sess.plan(here), sess.plan(there)
        end = threading.Event()

        def run(op, ms):
            try:
                sess.run(op, options=fs.RunOptions(timeout_in_ms=ms))
            except fs.errors.OpError as error:
                return error.message

        for helper in (None, threading.Thread(target=end.wait)):
            other = threading.Thread(target=run, args=(there, 600))
            for thread in filter(None, (helper, other)):
                thread.start()
            print(run(here, 300))
            other.join()
        end.set()
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    alone, helped = found.stdout.strip().splitlines()
    assert TOLD[0] in alone and TOLD[1] not in alone
    assert TOLD[1] in helped and TOLD[0] not in helped


def test_a_step_that_waits_for_itself_is_a_circle(graph, others):
    queue = fs.FIFOQueue(1, [fs.float32], [[]], shared_name="own")
    put = queue.enqueue(queue.dequeue(name="takes"))
    with fs.Session() as sess:
        told = others.failure(sess, put)
    assert told.endswith('until it itself fills FIFOQueue "own"')


def test_a_step_that_is_stopped_tells_of_its_circle(graph, others):
    a, b = crossing_steps()
    sess = fs.Session()
    found = []

    def run(op):
        with pytest.raises(CancelledError) as failure:
            sess.run(op)
        found.append(failure.value.message)

    others.begin(run, a)
    others.begin(run, b)
    waits(sess, count=2)
    others.end(sess)
    assert any(is_told(message) for message in found)
    assert all("session was closed" in message for message in found)


def test_a_queue_that_nobody_fills_is_no_circle(graph, others):
    queue = fs.FIFOQueue(1, [fs.float32], [[]])
    sess = fs.Session()
    others.begin(sess.run, queue.dequeue())
    waits(sess)
    told = others.failure(sess, queue.dequeue())
    others.end(sess)
    assert not is_told(told)


def test_a_lock_and_a_queue_make_a_circle(graph, others):
    queue = fs.FIFOQueue(1, [fs.float32], [[]])
    section = fs.CriticalSection(shared_name="lock")
    holds = section.execute(lambda: queue.dequeue(name="takes"))
    then = section.execute(lambda: fs.constant(1.0))
    with fs.control_dependencies([then]):
        fills = queue.enqueue(1.0)
    sess = fs.Session()
    others.begin(sess.run, holds)
    waits(sess)
    told = others.failure(sess, fills)
    others.end(sess)
    assert is_told(told)
    assert 'gives back the lock "lock"' in told


def test_parts_of_runs_that_wait_for_each_other_are_a_circle(graph, others):
    x = fs.placeholder(fs.float32, [])
    a, b = crossing_steps()
    sess = fs.Session()
    one = sess.partial_run_setup([a, x + 1.0], [x])
    others.begin(sess.partial_run, one, [a])
    waits(sess)
    told = others.failure(sess, b)
    others.end(sess)
    assert is_told(told)


@pytest.mark.parametrize("how", ["runs", "held", "function"])
def test_a_step_that_will_fill_the_queue_is_in_no_circle(graph, others, how):
    end = threading.Event()
    with fs.container("shared"):
        left, right = (fs.FIFOQueue(3, [fs.float32], [[]]) for _ in range(2))
    if how == "function":
        late = fs.py_func(lambda: end.wait() and None, [], [])
    else:
        late = fs.while_loop(lambda i: i < 10**9, lambda i: i + 1, [fs.constant(0)]).op
    with fs.control_dependencies([late]):
        fills = left.enqueue(0.0)
    with fs.control_dependencies([fills]):
        filler = fs.group(right.dequeue())
    taker = right.enqueue(left.dequeue())
    first, second = fs.Session(), fs.Session()
    others.begin(first.run, filler)
    wait_until(lambda: first.running == 1)
    if how == "held":
        first.pause()
        assert first.gate.wait_until_held(20)
    told = others.failure(second, taker)
    end.set()
    others.end(first, second)
    assert "it waited for" in told and not is_told(told)


@pytest.mark.parametrize("mode", ["compiled", "tokens"])
def test_partitions_that_wait_for_a_queue_of_their_own_step(graph, others, mode):
    with fs.device("/cpu:0"):
        queue = fs.FIFOQueue(1, [fs.float32], [[]], shared_name="q")
        taken = queue.dequeue(name="takes")
    with fs.device("/cpu:1"):
        value = fs.exp(taken)
    with fs.device("/cpu:0"):
        put = queue.enqueue(value)
    config = fs.ConfigProto(mode=mode, device_count={"CPU": 2}, split_partitions="always")
    with fs.Session(config=config) as sess:
        told = others.failure(sess, put, count=2)
    assert is_told(told) and "CPU:0 in the step of" in told


@pytest.mark.parametrize("ms", [90, 115, 140, 165])
@pytest.mark.parametrize("mode", ["compiled", "tokens"])
def test_steps_that_hand_an_element_to_and_fro_are_no_circle(graph, others, mode, ms):
    with fs.container("shared"):
        queues = [fs.FIFOQueue(1, [fs.int32], [[]]) for _ in range(2)]
    start = queues[0].enqueue(0)

    def turns(take, give):
        def body(i):
            with fs.control_dependencies([give.enqueue(take.dequeue())]):
                return fs.identity(i + 1)

        return fs.while_loop(lambda i: i < 10**7, body, [fs.constant(0)]).op

    sides = turns(*queues), turns(*reversed(queues))
    sessions = [fs.Session(config=fs.ConfigProto(mode=mode)) for _ in sides]
    sessions[0].run(start)
    others.begin(sessions[1].run, sides[1])
    with pytest.raises(DeadlineExceededError) as failure:
        sessions[0].run(sides[0], options=fs.RunOptions(timeout_in_ms=ms))
    assert not is_told(failure.value.message)
    others.end(*sessions)


def test_random_programs_are_told_of_circles_that_are_there_alone():
    """A slice of `helpers/waiting_circles.py`, which runs any number of them."""
    found = tally(30, seed=11, seconds=120)
    assert found["never", True] == 0 and found["never", False] >= 10
    assert found["always", True] >= 2 and found["always", False] <= 1


def test_no_garbage_is_collected_while_threads_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A collection in the midst of it may deadlock; afterwards it is as it was."""
    seen: list[bool] = []
    monkeypatch.setattr(
        local_waits.sys, "_current_frames", lambda: seen.append(gc.isenabled()) or {}
    )
    threads = [threading.Thread(target=local_waits._files) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False] * 8 and gc.isenabled()
