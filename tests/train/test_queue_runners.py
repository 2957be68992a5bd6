"""Threads that fill queues, and their end."""

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import CancelledError, InvalidArgumentError, OutOfRangeError

train = fs.train


def limited(limit: int) -> fs.Tensor:
    """1, 2, ... up to a limit, then OutOfRangeError."""
    count = fs.Variable(0, name="count", dtype=fs.int64)
    return count.count_up_to(limit) + 1


def runner(limit: int = 5, threads: int = 1, capacity: int = 3) -> fs.FIFOQueue:
    queue = fs.FIFOQueue(capacity, [fs.int64], [[]])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(limited(limit))] * threads))
    return queue


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("mode", ["compiled", "tokens"])
def test_all_elements_come_once_and_then_the_end(graph, threads: int, mode: str) -> None:
    taken = runner(20, threads).dequeue()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        coord = train.Coordinator()
        made = train.start_queue_runners(sess, coord)
        assert len(made) == threads + 1 and all(t.daemon for t in made)
        found = [int(sess.run(taken)) for _ in range(20)]
        with pytest.raises(OutOfRangeError):
            sess.run(taken)
        coord.request_stop()
        coord.join(made)
    assert sorted(found) == list(range(1, 21))


def test_a_stop_ends_threads_that_wait_for_room(graph) -> None:
    queue = runner(10**6)
    size = queue.size()
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        coord = train.Coordinator()
        threads = train.start_queue_runners(sess, coord)
        while sess.run(size) < 3:
            pass
        assert sess.graph.get_collection("queue_runners")[0].create_threads(sess, coord) == []
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=60)
        assert not any(t.is_alive() for t in threads)
        assert train.start_queue_runners(sess, coord) != []  # they have ended: new ones are made


def test_the_consumer_gets_the_error_of_the_producer(graph) -> None:
    def broken() -> np.int64:
        raise ZeroDivisionError("bad record")

    queue = fs.FIFOQueue(3, [fs.int64], [[]])
    enqueue = queue.enqueue(fs.py_func(broken, [], fs.int64))
    train.add_queue_runner(train.QueueRunner(queue, [enqueue]))
    taken = queue.dequeue()
    with fs.Session() as sess:
        coord = train.Coordinator()
        train.start_queue_runners(sess, coord)
        with pytest.raises(Exception, match="bad record"):
            sess.run(taken)
        with pytest.raises(Exception, match="bad record"):
            coord.join()


def test_without_a_coordinator_errors_are_kept(graph, monkeypatch) -> None:
    heard = []
    monkeypatch.setattr(threading, "excepthook", lambda args: heard.append(args.exc_value))
    queue = fs.FIFOQueue(3, [fs.float32], [[]])
    fails = queue.enqueue(fs.check_numerics(fs.constant(np.nan), "bad"))
    qr = train.QueueRunner(queue, [fails])
    with fs.Session() as sess:
        (thread,) = qr.create_threads(sess, start=True)
        thread.join()
    assert len(qr.exceptions_raised) == 1 and "bad" in str(qr.exceptions_raised[0])
    assert heard == qr.exceptions_raised


def test_other_errors_may_mean_the_end(graph) -> None:
    first = fs.FIFOQueue(3, [fs.int64], [[]])
    second = fs.FIFOQueue(3, [fs.int64], [[]], name="second")
    qr = train.QueueRunner(
        second,
        [second.enqueue(first.dequeue())],
        queue_closed_exception_types=(OutOfRangeError, CancelledError),
    )
    assert qr.queue_closed_exception_types == (OutOfRangeError, CancelledError)
    with fs.Session() as sess:
        sess.run(first.enqueue_many([[1, 2]]))
        threads = qr.create_threads(sess, start=True)
        sess.run(first.close())
        for thread in threads:
            thread.join()
        assert sess.run(second.dequeue_many(2)).tolist() == [1, 2]
        assert sess.run(second.is_closed())


@pytest.mark.parametrize("scope", [None, "copy"])
def test_as_data_and_back(graph, scope) -> None:
    queue = runner()
    (qr,) = graph.get_collection("queue_runners")
    facts = qr.to_proto()
    assert facts.queue_name == queue.name and qr.to_proto(export_scope="elsewhere") is None
    if scope:
        with fs.Graph().as_default():
            fs.import_graph_def(graph.as_graph_def(), name=scope)
            back = train.QueueRunner.from_proto(facts, import_scope=scope)
            assert back.name == f"copy/{queue.name}"
    else:
        back = train.QueueRunner.from_proto(facts)
        assert back.enqueue_ops == qr.enqueue_ops and back.cancel_op is qr.cancel_op
        assert back.queue_closed_exception_types == (OutOfRangeError,)


def test_runners_go_with_a_meta_graph(graph) -> None:
    fs.identity(runner(3).dequeue(), name="taken")
    meta = train.export_meta_graph()
    with fs.Graph().as_default() as copy:
        train.import_meta_graph(meta)
        (back,) = fs.get_collection(fs.GraphKeys.QUEUE_RUNNERS)
        with fs.Session() as sess:
            sess.run(fs.global_variables_initializer())
            threads = back.create_threads(sess, start=True)
            assert [sess.run("taken:0") for _ in range(3)] == [1, 2, 3]
            for thread in threads:
                thread.join()
        assert back.enqueue_ops[0].graph is copy


def test_bad_arguments_are_refused(graph) -> None:
    queue = fs.FIFOQueue(3, [fs.int64], [[]])
    with pytest.raises(InvalidArgumentError, match="enqueue_ops"):
        train.QueueRunner(queue)
    with pytest.raises(InvalidArgumentError, match="both"):
        train.QueueRunner(
            queue, queue_runner_def=train.QueueRunner(queue, [queue.close()]).to_proto()
        )
    with pytest.raises(InvalidArgumentError, match="needs a session"):
        train.start_queue_runners()
    with pytest.raises(InvalidArgumentError, match="expected an fs.Session"):
        train.start_queue_runners(object())


def test_a_runner_says_why_its_rounds_are_steps_of_their_own(graph) -> None:
    queue = runner(10**6)
    (qr,) = graph.get_collection("queue_runners")
    taken = queue.dequeue()
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        coord = train.Coordinator()
        threads = qr.create_threads(sess, coord, start=True)
        sess.run(taken)
        assert repr(qr) == "<fs.train.QueueRunner 'fifo_queue': 1 thread>"
        with fs.profile(sess):
            while not qr.workers[0].why_single:
                sess.run(taken)
            assert repr(qr).endswith("each round is a step of its own: steps are traced>")
        coord.request_stop()
        coord.join(threads)
    (worker,) = qr.workers
    assert worker.outcome in ("it was stopped", "its input is at its end") or (
        "CancelledError" in worker.outcome
    )
