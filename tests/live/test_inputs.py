"""What views are told of queues and iterators, who waits there, and runners and hooks."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers.inputs import QueueMeter, helper_states, queue_states

pytestmark = pytest.mark.usefixtures("graph")
train = fs.train
MODES = ["compiled", "op", "tokens"]


def when(is_so):
    """Waits until something is so, and returns that."""
    end = time.monotonic() + 10
    while not (found := is_so()):
        assert time.monotonic() < end, "it does not get there"
    return found


@pytest.mark.parametrize("mode", MODES)
def test_who_waits_at_a_queue_is_told_with_its_operation_and_what_for(feed, mode):
    queue = fs.RandomShuffleQueue(4, 2, [fs.float32], [[]], name="shuffled")
    fill = queue.enqueue_many([np.arange(6, dtype=np.float32)], name="fill")
    take = queue.dequeue_many(3, name="take")
    fill_two = queue.enqueue_many([np.zeros(2, np.float32)])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        thread = threading.Thread(target=sess.run, args=(fill,), daemon=True)
        thread.start()
        when(lambda: sess.queues and next(iter(sess.queues.values())).waiting[0])
        (told,) = when(lambda: _with_waits(feed))
        assert (told.size, told.capacity, told.least, told.fills_itself) == (4, 4, 2, False)
        (wait,) = told.waits
        assert (wait.op, wait.name, wait.kind) == (fill.id, "fill", "space")
        sess.run(take)
        thread.join()
        (told,) = feed.tick(2.0).session.queues
        assert (told.size, told.waits) == (3, ())
        thread = threading.Thread(target=sess.run, args=(take,), daemon=True)
        thread.start()  # 3 are in, 2 of them stay
        (told,) = when(lambda: _with_waits(feed))
        (wait,) = told.waits
        assert (wait.op, wait.name, wait.kind) == (take.op.id, "take", "elements")
        sess.run(fill_two)
        thread.join()


def _with_waits(feed):
    session = feed.tick(1.0).session
    queues = () if session is None else session.queues
    return queues if any(queue.waits for queue in queues) else None


@pytest.mark.parametrize("ahead", [0, 3])
def test_an_iterator_is_told_as_a_queue_that_fills_itself(feed, ahead):
    dataset = fs.data.Dataset.range(9).map(lambda i: i * i)
    iterator = fs.data.make_one_shot_iterator(dataset.prefetch(ahead) if ahead else dataset)
    number = iterator.get_next()
    with fs.Session() as sess:
        assert [sess.run(number) for _ in range(5)] == [0, 1, 4, 9, 16]
        (state,) = sess.queues.values()
        assert state.taken == 5
        least = ahead // 2 + 1 if ahead else 0  # a thread begins at half of it
        when(lambda: state.size >= least)
        (told,) = feed.tick(1.0).session.queues
        assert told.fills_itself and told.capacity == ahead and least <= told.size <= ahead
        assert not told.is_closed
        for _ in range(4):
            sess.run(number)
        with pytest.raises(fs.errors.OutOfRangeError):
            sess.run(number)
        (told,) = feed.tick(2.0).session.queues
        assert told.is_closed and state.taken == 9


def test_elements_a_second_are_those_of_the_last_seconds(monkeypatch):
    now_s, meter = [0.0], QueueMeter()
    monkeypatch.setattr("flowscope.live.answers.inputs.time.monotonic", lambda: now_s[0])
    queue = fs.FIFOQueue(9, [fs.float32], [[]])
    take, fill = queue.dequeue_many(4), queue.enqueue_many([np.zeros(4, np.float32)])
    with fs.Session() as sess:
        sess.run(fill)
        (state,) = sess.queues.values()
        assert meter.per_s(state) is None
        for _ in range(3):
            now_s[0] += 1.0
            sess.run(take)
            sess.run(fill)
            assert meter.per_s(state) == pytest.approx(4.0)
        now_s[0] += 5.0
        meter.per_s(state)
        now_s[0] += 5.0
        assert meter.per_s(state) is None


def test_runners_coordinators_and_hooks_say_what_they_wait_for_and_how_they_ended():
    breaks = threading.Event()

    def parsed(name):
        if breaks.is_set():
            raise ValueError("no number")
        return np.float32(len(name))

    names = train.string_input_producer(["a", "bb"], shuffle=False, name="names")
    value = fs.py_func(parsed, [names.dequeue()], fs.float32)
    value.set_shape([])
    batch = train.batch([value], 2, capacity=4, name="batch")
    train.get_or_create_global_step()
    hooks = [train.StepCounterHook(every_n_steps=7), train.FinalOpsHook([])]
    monitored = train.SingularMonitoredSession(hooks)
    session = monitored.raw_session()

    def told():
        return {(one.kind, one.name.partition("/")[0]): one for one in helper_states(session)}

    monitored.run(batch)
    when(lambda: told()["runner", "batch"].text.startswith("waits for space in "))
    assert told()["runner", "names"].text.startswith('waits for space in "names"')
    assert told()["hook", "StepCounterHook"].text == "waits for step 7"
    assert told()["hook", "FinalOpsHook"].text == "waits for the next run"
    assert told()["coordinator", "Coordinator"].text == "waits for 4 threads"
    breaks.set()
    with pytest.raises(fs.errors.OpError, match="no number"):
        list(map(monitored.run, [batch] * 20))
    ends = ("CancelledError", "it was stopped")
    when(lambda: told()["runner", "names"].text.startswith(ends))
    assert told()["runner", "batch"].has_failed and not told()["runner", "names"].has_failed
    assert "no number" in told()["runner", "batch"].text
    assert told()["coordinator", "Coordinator"].has_failed
    errors = [one.error for one in queue_states(session, None)]
    assert sum("no number" in error for error in errors) == 1
    with pytest.raises(fs.errors.OpError, match="no number"):
        monitored.close()
