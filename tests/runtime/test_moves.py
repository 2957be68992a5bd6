"""What stopped steps have taken out of queues goes back, unless somebody has seen it."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest
from stopping import StopAt

import flowscope as fs
from flowscope.runtime.state.queue_transactions import QueueTransaction, QueueUse
from flowscope.runtime.waits.gate import Gate

PATIENCE_S = 30.0


@pytest.fixture(params=["compiled", "op", "tokens"])
def session(request, graph):
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=request.param)) as s:
        yield s


def queue(name="q"):
    return fs.FIFOQueue(100, [fs.int64], shapes=[()], name=name)


def filled(session, q, count=5):
    session.run(q.enqueue_many(fs.constant(np.arange(count))))


def content(session, q):
    size = int(session.run(q.size()))
    return [int(session.run(q.dequeue())) for _ in range(size)]


def stopped(session, fetch):
    """Yields whether the step ended, for a stop at each of its safepoints."""
    for n in range(50):
        session.gate = StopAt(n)
        try:
            session.run(fetch)
            is_whole = True
        except fs.errors.CancelledError:
            is_whole = False
        session.gate = Gate()
        yield is_whole
        if is_whole:
            return


@pytest.mark.parametrize("count", [1, 3])
def test_a_stop_at_the_end_of_a_step_gives_elements_back(session, count):
    q = queue()
    filled(session, q)
    taken = q.dequeue() if count == 1 else q.dequeue_many(count)
    for is_whole in stopped(session, [taken, taken + 1]):
        if not is_whole:
            assert session.run(q.size()) == 5
    assert content(session, q) == list(range(count, 5))


def test_what_a_step_puts_in_is_taken_out_again(session):
    q = queue()
    filled(session, q, 2)
    for is_whole in stopped(session, q.enqueue(7)):
        assert session.run(q.size()) == (3 if is_whole else 2)
    assert content(session, q) == [0, 1, 7]


def test_what_goes_from_one_queue_to_another_is_in_one_of_them(session):
    a, b = queue("a"), queue("b")
    filled(session, a)
    move = b.enqueue(a.dequeue() * 10)
    for is_whole in stopped(session, move):
        sizes = session.run([a.size(), b.size()])
        assert sizes == ([4, 1] if is_whole else [5, 0])
    assert content(session, a) == [1, 2, 3, 4]
    assert content(session, b) == [0]


def test_an_element_that_has_changed_a_variable_is_gone(session):
    q = queue()
    filled(session, q, 60)
    total = fs.Variable(np.int64(0), name="total")
    with fs.control_dependencies([total.assign_add(q.dequeue())]):
        end = fs.constant(1) + fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    session.run(total.initializer)
    for _ in stopped(session, end):
        done = session.run(total)
        size = session.run(q.size())
        assert sum(range(60 - size)) == done


def test_a_deadline_gives_elements_back(session):
    a, b = queue("a"), queue("b")
    filled(session, a)
    both = [a.dequeue(), b.dequeue()]
    with pytest.raises(fs.errors.DeadlineExceededError):
        session.run(both, options=fs.RunOptions(timeout_in_ms=50))
    assert content(session, a) == [0, 1, 2, 3, 4]


def test_a_step_that_fails_does_not_get_its_element_again(session):
    q = queue()
    filled(session, q)
    bad = fs.gather(fs.constant([1.0]), q.dequeue() + 3)
    with pytest.raises(fs.errors.InvalidArgumentError):
        session.run(bad)
    assert content(session, q) == [1, 2, 3, 4]


def test_a_waiting_step_that_is_stopped_just_as_it_is_served_loses_nothing(session):
    q = queue()
    x = fs.placeholder(fs.int64, [])
    put, take, size = q.enqueue(x), q.dequeue(), q.size()
    session.run(size)
    got, here = [], threading.Event()

    def consume():
        try:
            got.append(int(session.run(take)))
        except fs.errors.CancelledError:
            got.append(None)
        here.set()

    for k in range(60):
        here.clear()
        thread = threading.Thread(target=consume)
        thread.start()
        while not session.running:
            pass
        session.run(put, {x: k})
        session.stop()
        assert here.wait(PATIENCE_S)
        thread.join(PATIENCE_S)
        session.gate.clear_stop()
        if got.pop() is None:
            assert session.run(take) == k
        assert session.run(size) == 0


def test_long_loops_do_not_keep_what_they_take(session):
    q = queue()
    filled(session, q, 20)
    start = [0, fs.constant(0, fs.int64)]
    loop = fs.while_loop(lambda i, s: i < 20, lambda i, s: (i + 1, s + q.dequeue()), start)
    assert session.run(loop)[1] == sum(range(20))
    (state,) = session.queues.values()
    transaction = QueueTransaction(QueueUse([state], [], is_worldly=False))
    taken = [weakref.ref(moved(transaction.took, state)) for _ in range(20)]
    put = [weakref.ref(moved(transaction.put, state)) for _ in range(20)]
    assert not any(ref() for ref in [*taken, *put])


class Elements(list):
    """A list that can be watched."""


def moved(note, queue):
    elements = Elements([(1,)])
    note(queue, elements)
    return elements


def test_a_session_says_that_it_was_stopped(session):
    x = fs.constant(1.0)
    assert not session.is_stopped
    session.stop()
    with pytest.raises(fs.errors.CancelledError):
        session.run(x)
    assert session.is_stopped
    session.run(x)
    assert not session.is_stopped
