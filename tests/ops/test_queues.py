"""Queues and critical sections in sessions: values, order, waiting, closing, errors."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from late_steps import late
from own_threads import own_threads

import flowscope as fs
from flowscope.runtime.state.queue_state import QueueState

pytestmark = pytest.mark.usefixtures("graph")

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


class Waits:
    """Tells when somebody has to wait for a queue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen = threading.Semaphore(0)
        for name in ("enqueue", "dequeue"):
            monkeypatch.setattr(QueueState, name, self._told(getattr(QueueState, name)))

    def _told(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(queue: QueueState, *args: Any) -> Any:
            before = sum(queue.waiting)
            give_up = method(queue, *args)
            if sum(queue.waiting) > before:
                self._seen.release()
            return give_up

        return call

    def until(self, count: int) -> None:
        """Returns when so many have begun to wait since the last call."""
        for _ in range(count):
            assert self._seen.acquire(timeout=PATIENCE_S)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    return Waits(monkeypatch)


class InThread(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work
        self.value: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as e:
            self.error = e

    def result(self) -> Any:
        self.join(PATIENCE_S)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.value


# -- values ---------------------------------------------------------------------------------------

MODES = ["compiled", "op", "tokens"]


@pytest.mark.parametrize("mode", MODES)
def test_elements_come_out_in_order(mode: Any) -> None:
    queue = fs.FIFOQueue(10, [fs.float32, fs.string], shapes=[[2], []])
    x, s = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.string, [])
    put, put_many = (
        queue.enqueue([x, s]),
        queue.enqueue_many([[[5.0, 6.0], [7.0, 8.0]], ["c", "d"]]),
    )
    take, take_many, size = queue.dequeue(), queue.dequeue_many(3), queue.size()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(put, {x: [1.0, 2.0], s: b"a"})
        sess.run(put, {x: [3.0, 4.0], s: b"b"})
        sess.run(put_many)
        assert sess.run(size) == 4
        first, letter = sess.run(take)
        np.testing.assert_array_equal(first, np.float32([1.0, 2.0]))
        assert letter == b"a"
        rows, letters = sess.run(take_many)
        np.testing.assert_array_equal(rows, np.float32([[3, 4], [5, 6], [7, 8]]))
        assert letters.tolist() == [b"b", b"c", b"d"]
        assert rows.dtype == np.float32
        assert sess.run(size) == 0


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "int64", "complex64", "bool"]
)
def test_dtypes(sess: fs.Session, dtype: str) -> None:
    kind = fs.as_dtype(dtype)
    values = np.array([0, 1, 1], kind.np_dtype)
    scalars, rows = fs.FIFOQueue(5, kind, shapes=[]), fs.FIFOQueue(5, kind, shapes=[[3]])
    sess.run([scalars.enqueue_many([values]), rows.enqueue([values]), scalars.enqueue(values[0])])
    found = sess.run([scalars.dequeue_many(4), rows.dequeue_many(1), scalars.size()])
    assert found[0].dtype == found[1].dtype == kind.np_dtype
    assert sorted(found[0].astype("complex64").real.tolist()) == [0, 0, 1, 1]
    np.testing.assert_array_equal(found[1], values[None])


def test_no_elements(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, [fs.float32, fs.string], shapes=[[2], []])
    sess.run(queue.enqueue_many([np.zeros([0, 2], np.float32), np.zeros([0], object)]))
    x, s = sess.run(queue.dequeue_many(0))
    assert (x.shape, x.dtype) == ((0, 2), np.float32)
    assert s.shape == (0,)


def test_elements_of_their_own_shapes(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32)
    x = fs.placeholder(fs.float32)
    put, take = queue.enqueue([x]), queue.dequeue()
    for value in (1.0, [1.0, 2.0], [[3.0]]):
        sess.run(put, {x: value})
    assert [np.shape(sess.run(take)) for _ in range(3)] == [(), (2,), (1, 1)]


def test_shapes_are_checked_when_it_runs(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[[2]], name="q")
    x, n = fs.placeholder(fs.float32), fs.placeholder(fs.int32, [])
    with pytest.raises(
        fs.errors.InvalidArgumentError, match=r"of shape \[2\], got \[3\]"
    ) as caught:
        sess.run(queue.enqueue([x]), {x: [1, 2, 3]})
    assert caught.value.op_name == "q_enqueue"
    with pytest.raises(fs.errors.InvalidArgumentError, match="got a scalar"):
        sess.run(queue.enqueue_many([x]), {x: 1.0})
    with pytest.raises(fs.errors.InvalidArgumentError, match="of 0 or more, got -2"):
        sess.run(queue.dequeue_many(n), {n: -2})
    assert sess.run(queue.size()) == 0


def test_what_is_in_a_queue_does_not_change(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[[2]])
    x = fs.placeholder(fs.float32, [2])
    mine = np.float32([1.0, 2.0])
    sess.run(queue.enqueue(x), {x: mine})
    variable = fs.Variable([1.0, 2.0])
    sess.run(variable.initializer)
    sess.run(queue.enqueue(variable))
    mine[:] = 9.0
    sess.run(variable.assign_add([5.0, 5.0]))
    np.testing.assert_array_equal(sess.run(queue.dequeue_many(2)), [[1.0, 2.0]] * 2)


def test_what_came_out_belongs_to_the_user(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[[2]])
    sess.run(queue.enqueue_many([[[1.0, 2.0], [3.0, 4.0]]]))
    first = sess.run(queue.dequeue())
    assert first.base is None or first.base.nbytes == first.nbytes
    first[:] = 9.0
    np.testing.assert_array_equal(sess.run(queue.dequeue()), [3.0, 4.0])


@pytest.mark.parametrize("mode", MODES)
def test_steps_do_what_follows_from_an_element(mode: Any) -> None:
    queue, results = fs.FIFOQueue(9, fs.float32, shapes=[]), fs.FIFOQueue(9, fs.float32, shapes=[])
    step = results.enqueue(fs.square(queue.dequeue()) + 1.0)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(queue.enqueue_many([[1.0, 2.0, 3.0]]))
        for _ in range(3):
            sess.run(step)
        assert sess.run(results.dequeue_many(3)).tolist() == [2.0, 5.0, 10.0]


@pytest.mark.parametrize("mode", MODES)
def test_queues_in_loops_and_branches(mode: Any) -> None:
    queue = fs.FIFOQueue(20, fs.int32, shapes=[])

    def body(i: Any, total: Any) -> Any:
        put = fs.cond(fs.equal(i % 2, 0), lambda: queue.enqueue(i), lambda: fs.no_op())
        with fs.control_dependencies([put]):
            return i + 1, total + i

    i, total = fs.while_loop(lambda i, t: i < 10, body, [0, 0])
    taken = fs.while_loop(lambda n, s: n < 5, lambda n, s: (n + 1, s + queue.dequeue()), [0, 0])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert sess.run([i, total]) == [10, 45]
        assert sess.run(queue.size()) == 5
        assert sess.run(taken) == (5, 20)


def test_loops_of_one_step_hand_each_other_elements(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(1, fs.int32, shapes=[])
    variable = fs.Variable(0)

    def produce(i: Any) -> Any:
        with fs.control_dependencies([queue.enqueue(i), variable.assign_add(0).op]):
            return i + 1

    taken = fs.while_loop(lambda n, s: n < 50, lambda n, s: (n + 1, s + queue.dequeue()), [0, 0])
    made = fs.while_loop(lambda i: i < 50, produce, [0])
    sess.run(variable.initializer)
    assert sess.run([taken, made]) == [(50, 1225), 50]


# -- waiting --------------------------------------------------------------------------------------


def test_an_element_wakes_who_waits_for_it(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(1, fs.float32, shapes=[])
    put, take = queue.enqueue(3.0), queue.dequeue()
    consumer = InThread(lambda: sess.run(take))
    waits.until(1)
    sess.run(put)
    assert consumer.result() == 3.0


def test_space_wakes_who_waits_for_it(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(1, fs.float32, shapes=[])
    put, take = queue.enqueue(3.0), queue.dequeue()
    sess.run(put)
    producer = InThread(lambda: sess.run(put))
    waits.until(1)
    assert [sess.run(take), sess.run(take)] == [3.0, 3.0]
    assert producer.result() is None


def test_producers_and_consumers(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(4, fs.int32, shapes=[])
    x = fs.placeholder(fs.int32, [])
    put, take = queue.enqueue(x), queue.dequeue_many(5)
    sess.run(queue.size())

    def produce(start: int) -> None:
        for i in range(start, start + 50):
            sess.run(put, {x: i})

    def consume() -> list[int]:
        return [int(v) for _ in range(10) for v in sess.run(take)]

    producers = [InThread(lambda i=i: produce(100 * i)) for i in range(3)]
    consumers = [InThread(consume) for _ in range(3)]
    for p in producers:
        p.result()
    taken = [c.result() for c in consumers]
    assert sorted(v for t in taken for v in t) == [100 * i + k for i in range(3) for k in range(50)]


@pytest.mark.slow
def test_ten_thousand_operations_of_a_step_wait_without_threads(waits: Waits) -> None:
    n = 10_000
    queue = fs.FIFOQueue(n, fs.int32, shapes=[])
    taken = [queue.dequeue() for _ in range(n)]
    put = queue.enqueue_many([np.arange(n, dtype=np.int32)])
    before = own_threads()
    with fs.Session() as sess:
        consumer = InThread(lambda: sess.run(taken))
        waits.until(n)
        assert own_threads() == before
        sess.run(put)
        assert sorted(consumer.result()) == list(range(n))


def test_a_timeout_names_the_queue_and_the_operation(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(2, fs.float32, shapes=[], name="examples")
    take = queue.dequeue_many(2, name="take")
    sess.run(queue.enqueue(1.0))
    told = str(late(sess, take))
    assert '"take"' in told
    assert 'on FIFOQueue "examples" (0 of 2 elements, 1 dequeue waiting)' in told
    assert sess.run(queue.size()) == 1
    sess.run(queue.enqueue(2.0))
    assert sess.run(take).tolist() == [1.0, 2.0]


def test_a_stop_ends_the_wait(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(2, fs.float32, shapes=[])
    take = queue.dequeue()
    consumer = InThread(lambda: sess.run(take))
    waits.until(1)
    sess.stop()
    with pytest.raises(fs.errors.CancelledError):
        consumer.result()
    sess.run(queue.enqueue(1.0))
    assert sess.run(take) == 1.0


def test_an_interrupt_ends_the_wait(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(2, fs.float32, shapes=[])
    take = queue.dequeue()

    def interrupt() -> None:
        waits.until(1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = InThread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        sess.run(take)
    thread.result()
    sess.run(queue.enqueue(1.0))
    assert sess.run(take) == 1.0


def test_closing_the_session_ends_the_wait(waits: Waits) -> None:
    queue = fs.FIFOQueue(2, fs.float32, shapes=[])
    take = queue.dequeue()
    sess = fs.Session()
    consumer = InThread(lambda: sess.run(take))
    waits.until(1)
    sess.close()
    with pytest.raises(fs.errors.CancelledError):
        consumer.result()


def test_a_paused_session_takes_nothing_more(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(2, fs.float32, shapes=[])
    after = fs.Variable(0.0)
    take = after.assign(queue.dequeue())
    consumer = InThread(lambda: sess.run(take))
    waits.until(1)
    other = fs.Session(graph=sess.graph)
    sess.pause()
    state: Any = sess.variable_state(queue.queue_ref)
    state.enqueue([(np.float32(4.0),)], lambda done: None)
    assert sess.gate.wait_until_held(PATIENCE_S)
    assert consumer.is_alive()
    sess.resume()
    assert consumer.result() == 4.0
    other.close()


# -- closing --------------------------------------------------------------------------------------


def test_a_closed_queue(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[], name="q")
    put, take = queue.enqueue(1.0), queue.dequeue()
    sess.run([queue.enqueue_many([[1.0, 2.0, 3.0]])])
    sess.run(queue.close())
    assert sess.run(queue.is_closed())
    with pytest.raises(fs.errors.CancelledError, match='FIFOQueue "q" is closed') as refused:
        sess.run(put)
    assert refused.value.op_name == "q_enqueue"
    with pytest.raises(fs.errors.CancelledError, match="is closed already"):
        sess.run(queue.close())
    with pytest.raises(fs.errors.OutOfRangeError, match=r"requested 4, current size 3"):
        sess.run(queue.dequeue_many(4))
    assert sess.run(queue.dequeue_up_to(2)).tolist() == [1.0, 2.0]
    assert sess.run(take) == 3.0
    with pytest.raises(fs.errors.OutOfRangeError) as empty:
        sess.run(take)
    assert empty.value.op_name == "q_Dequeue"
    assert "closed and has insufficient elements (requested 1, current size 0)" in str(empty.value)
    assert "test_queues.py" in str(empty.value)


def test_closing_wakes_all(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[])
    take, close = queue.dequeue(), queue.close()
    consumers = [InThread(lambda: sess.run(take)) for _ in range(4)]
    waits.until(4)
    sess.run(close)
    for c in consumers:
        with pytest.raises(fs.errors.OutOfRangeError):
            c.result()


def test_closing_cancels_who_waits_for_space(sess: fs.Session, waits: Waits) -> None:
    queue = fs.FIFOQueue(1, fs.float32, shapes=[])
    put, close = queue.enqueue(1.0), queue.close(cancel_pending_enqueues=True)
    sess.run(put)
    producer = InThread(lambda: sess.run(put))
    waits.until(1)
    sess.run(close)
    with pytest.raises(fs.errors.CancelledError, match="enqueue was cancelled"):
        producer.result()
    assert sess.run(queue.size()) == 1


def test_the_producers_failure_reaches_the_consumer(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[], name="q")
    path = fs.placeholder(fs.float32, [], name="path")
    checked = fs.check_numerics(path, "the file holds no numbers", name="read")
    put, take, close = queue.enqueue(checked), queue.dequeue(), queue.close()

    def produce() -> None:
        for value in (1.0, np.nan):
            sess.run(put, {path: value})

    producer = InThread(produce)
    with pytest.raises(fs.errors.InvalidArgumentError, match="holds no numbers"):
        producer.result()
    sess.run(close)
    assert sess.run(take) == 1.0
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        sess.run(take)
    assert 'the producer of FIFOQueue "q" failed' in str(caught.value)
    assert "the file holds no numbers" in str(caught.value)
    assert 'node "read"' in str(caught.value)
    assert caught.value.__cause__.op_name == "read"
    assert caught.value.op_name == "q_Dequeue"


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_the_deadline_of_a_step_is_no_failure_of_the_producer(graph, mode: str) -> None:
    """Neither while it waits for space, nor in what it puts in; an operation's own deadline is."""
    queue = fs.FIFOQueue(1, fs.float32, shapes=[], name="q")
    never = threading.Event()
    source = fs.FIFOQueue(1, fs.float32, shapes=[], name="source")
    slow = fs.py_func(lambda: np.float32(never.wait(PATIENCE_S)), [], fs.float32)

    def asks() -> np.float32:
        raise fs.errors.DeadlineExceededError("the server did not answer")

    asked = queue.enqueue(fs.py_func(asks, [], fs.float32))
    puts = [queue.enqueue(1.0), queue.enqueue(source.dequeue()), queue.enqueue(slow)]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(puts[0])
        (state,) = (s for s in sess.queues.values() if s.name == "q")
        for put in puts:
            late(sess, put)
            assert state.failure is None and "producer failed" not in str(state)
        with pytest.raises(fs.errors.DeadlineExceededError, match="did not answer"):
            sess.run(asked)
        assert isinstance(state.failure, fs.errors.DeadlineExceededError)
        never.set()


# -- where queues live ----------------------------------------------------------------------------


def test_sessions_have_queues_of_their_own(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(5, fs.float32, shapes=[])
    sess.run(queue.enqueue(1.0))
    with fs.Session(graph=sess.graph) as other:
        assert other.run(queue.size()) == 0
    assert sess.run(queue.size()) == 1


def test_a_named_container_is_shared() -> None:
    def graph_with_queue() -> tuple[fs.Graph, fs.FIFOQueue]:
        with fs.Graph().as_default() as graph, fs.container("shared-by-two"):
            return graph, fs.FIFOQueue(5, fs.float32, shapes=[], shared_name="examples")

    (one, first), (two, second) = graph_with_queue(), graph_with_queue()
    with fs.Session(graph=one) as a, fs.Session(graph=two) as b:
        with one.as_default():
            a.run(first.enqueue(1.5))
        with two.as_default():
            assert b.run(second.dequeue()) == 1.5
            a.run(first.close())
            assert b.run(second.is_closed())
            fs.Session.reset(containers=["shared-by-two"])
            assert not b.run(second.is_closed())


def test_queues_of_one_shared_name_are_one(sess: fs.Session) -> None:
    one = fs.FIFOQueue(2, fs.float32, shapes=[], shared_name="z")
    two = fs.FIFOQueue(2, fs.float32, shapes=[], shared_name="z")
    sess.run(one.enqueue(1.0))
    assert sess.run(two.dequeue()) == 1.0
    other = fs.FIFOQueue(3, fs.float32, shapes=[], shared_name="z")
    with pytest.raises(fs.errors.InvalidArgumentError, match="with capacity 2, expected 3"):
        sess.run(other.size())


def test_a_cell_that_changes_a_queue_makes_a_new_one(sess: fs.Session) -> None:
    def build(capacity: int) -> fs.FIFOQueue:
        with sess.graph.cell("a"):
            queue = fs.FIFOQueue(capacity, fs.float32, shapes=[], name="q")
            queue.enqueue(1.0, name="put")
            queue.size(name="size")
        sess.run("put")
        return queue

    build(5)
    build(5)
    assert sess.run("size:0") == 2
    build(7)
    assert sess.run("size:0") == 1


# -- how many iterations are on their way ---------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("k", "most"), [(1, 1), (8, 8)])
def test_iterations_overlap_where_they_wait(sess: fs.Session, k: int, most: int) -> None:
    """Requests go to a server and come back; it answers only when no more of them come."""
    n = 24
    requests = fs.FIFOQueue(n, fs.int32, shapes=[])
    answers = [fs.FIFOQueue(1, fs.float32, shapes=[]) for _ in range(n)]

    def ask(i: Any, total: Any) -> Any:
        with fs.control_dependencies([requests.enqueue(i)]):
            got = fs.switch_case(i, [lambda q=q: q.dequeue() for q in answers])
        return i + 1, total + got

    loop = fs.while_loop(lambda i, t: i < n, ask, [0, 0.0], parallel_iterations=k)
    take, size = requests.dequeue(), requests.size()
    x = fs.placeholder(fs.float32, [])
    puts = [q.enqueue(x) for q in answers]
    server = fs.Session(graph=sess.graph)
    server._container = sess._container
    step = InThread(lambda: sess.run(loop))
    seen: list[int] = []
    answered = 0
    while answered < n:
        batch = [server.run(take)]
        due = min(most, n - answered)
        batch += [server.run(take) for _ in range(due - 1)]
        seen.append(len(batch) + int(server.run(size)))
        for i in batch:
            server.run(puts[i], {x: 2.0 * i})
        answered += len(batch)
    assert step.result() == (n, 2.0 * sum(range(n)))
    assert max(seen) == most


@pytest.mark.parametrize("mode", MODES)
def test_steps_with_queues_run_where_queues_are(mode: Any) -> None:
    config = fs.ConfigProto(fake_devices={"GPU": 1}, mode=mode)
    with fs.Session(config=config) as sess:
        queue, variable = fs.FIFOQueue(3, fs.float32, shapes=[[2]]), fs.Variable([1.0, 2.0])
        result = fs.square(queue.dequeue()) * variable
        sess.run(variable.initializer)
        sess.run(queue.enqueue(variable * 2.0))
        assert sess.run(result).tolist() == [4.0, 32.0]
        assert sess.plan(result).program.device.endswith("CPU:0")
