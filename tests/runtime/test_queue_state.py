"""Queues and locks as state: order, closing, giving up, and no thread for who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from own_threads import own_threads

import flowscope as fs
from flowscope.runtime.state.mutex_state import MutexState
from flowscope.runtime.state.queue_state import QueueState


class Answers:
    """What waits were answered with, by name, in order."""

    def __init__(self, queue: QueueState) -> None:
        self.queue = queue
        self.got: list[tuple[str, Any]] = []

    def put(self, name: str, *values: Any) -> Callable[[], None]:
        return self.queue.enqueue([(v,) for v in values], self._note(name))

    def take(self, name: str, count: int = 1, up_to: bool = False) -> Callable[[], None]:
        return self.queue.dequeue(count, self._note(name), up_to)

    def _note(self, name: str) -> Callable[[Any], None]:
        def finish(result: Any) -> None:
            if isinstance(result, list):
                result = [v for (v,) in result]
            self.got.append((name, result))

        return finish

    def news(self) -> list[tuple[str, Any]]:
        """What came since the last call; errors by their class."""
        got, self.got = self.got, []
        return [(n, type(r).__name__ if isinstance(r, Exception) else r) for n, r in got]


@pytest.fixture
def two() -> Answers:
    return Answers(QueueState("q", 2, (fs.float32,), None))


def test_first_in_first_out(two: Answers) -> None:
    two.put("a", 1)
    two.put("b", 2)
    two.take("c")
    two.take("d")
    assert two.news() == [("a", ()), ("b", ()), ("c", [1]), ("d", [2])]


def test_a_full_queue_makes_wait_in_order(two: Answers) -> None:
    for i, name in enumerate("abcd"):
        two.put(name, i)
    assert two.news() == [("a", ()), ("b", ())]
    assert two.queue.waiting == (2, 0)
    two.take("x")
    assert sorted(two.news()) == [("c", ()), ("x", [0])]
    two.take("y", 3)
    assert sorted(two.news()) == [("d", ()), ("y", [1, 2, 3])]
    assert two.queue.size == 0
    assert two.queue.waiting == (0, 0)


def test_who_tries_does_not_overtake_who_waits(two: Answers) -> None:
    queue = two.queue
    assert queue.put([("a",)]) and not queue.put([("b",), ("c",)])
    two.put("two more", "d", "e")
    assert queue.size == 2
    assert not queue.put([("x",)]), "somebody waits for the space before it"
    assert queue.take(1) == [("a",)]
    assert two.news() == [("two more", ())], "whoever waits gets the space that this makes"
    assert queue.take(3) is None
    assert queue.take(2) == [("d",), ("e",)]
    two.take("waits")
    assert queue.take(1) is None
    assert queue.put([("f",)]) and two.news() == [("waits", ["f"])]
    two.take("two", 2)
    assert queue.put([("g",)]) and queue.take(1) is None, "somebody waits for it"
    assert queue.put([("h",)]) and two.news() == [("two", ["g", "h"])] and not queue.size
    queue.close()
    assert not queue.put([("g",)])


def test_an_empty_queue_makes_wait_in_order(two: Answers) -> None:
    two.take("x")
    two.take("y")
    assert two.news() == []
    two.put("a", 1)
    assert sorted(two.news()) == [("a", ()), ("x", [1])]
    two.put("b", 2)
    assert sorted(two.news()) == [("b", ()), ("y", [2])]


def test_more_elements_than_the_capacity(two: Answers) -> None:
    two.put("many", 1, 2, 3, 4, 5)
    two.put("after", 6)
    assert two.news() == []
    two.take("x", 5)
    assert sorted(two.news()) == [("after", ()), ("many", ()), ("x", [1, 2, 3, 4, 5])]
    two.take("y", 4)
    two.put("rest", 7, 8, 9)
    assert sorted(two.news()) == [("rest", ()), ("y", [6, 7, 8, 9])]


def test_no_elements_are_there_at_once(two: Answers) -> None:
    two.put("none")
    two.take("nothing", 0)
    assert two.news() == [("none", ()), ("nothing", [])]


def test_closing(two: Answers) -> None:
    two.put("a", 1)
    two.queue.close()
    assert two.queue.is_closed
    two.put("late", 2)
    two.take("too many", 2)
    two.take("x")
    two.take("empty")
    assert two.news() == [
        ("a", ()),
        ("late", "CancelledError"),
        ("too many", "OutOfRangeError"),
        ("x", [1]),
        ("empty", "OutOfRangeError"),
    ]
    with pytest.raises(fs.errors.CancelledError, match='FIFOQueue "q" is closed already'):
        two.queue.close()
    two.queue.close(cancel_pending_enqueues=True)


def test_messages_of_a_closed_queue(two: Answers) -> None:
    two.queue.close()
    two.put("a", 1)
    two.take("b", 3)
    (_, first), (_, second) = two.got
    assert str(first) == 'FIFOQueue "q" is closed'
    assert str(second) == (
        'FIFOQueue "q" is closed and has insufficient elements (requested 3, current size 0)'
    )


def test_closing_lets_those_in_who_wait(two: Answers) -> None:
    two.put("a", 1, 2, 3)
    two.queue.close()
    two.take("x", 3)
    assert sorted(two.news()) == [("a", ()), ("x", [1, 2, 3])]


def test_closing_cancels_those_who_wait(two: Answers) -> None:
    two.put("a", 1, 2, 3)
    two.queue.close(cancel_pending_enqueues=True)
    assert two.news() == [("a", "CancelledError")]
    two.take("x", 3)
    two.take("y", 2)
    assert two.news() == [("x", "OutOfRangeError"), ("y", [1, 2])]


def test_closing_wakes_all_that_wait_for_elements(two: Answers) -> None:
    for i in range(5):
        two.take(str(i), i + 1)
    two.queue.close()
    assert two.news() == [(str(i), "OutOfRangeError") for i in range(5)]


def test_up_to_takes_what_a_closed_queue_has_left(two: Answers) -> None:
    two.put("a", 1)
    two.take("x", 3, up_to=True)
    assert two.news() == [("a", ())]
    two.queue.close()
    two.take("y", 3, up_to=True)
    assert two.news() == [("x", [1]), ("y", "OutOfRangeError")]


def test_what_is_given_up_loses_nothing(two: Answers) -> None:
    give_up = two.take("x", 3)
    two.put("a", 1)
    two.put("b", 2)
    assert two.queue.size == 0
    give_up()
    give_up()
    two.take("y", 2)
    assert two.news() == [("a", ()), ("b", ()), ("y", [1, 2])]


def test_giving_up_lets_the_next_one_go(two: Answers) -> None:
    give_up = two.take("x", 3)
    two.take("y")
    two.put("a", 1)
    assert two.news() == [("a", ())]
    give_up()
    assert two.news() == [("y", [1])]
    give_up = two.put("many", 1, 2, 3)
    two.put("next", 4)
    two.take("z", 2)
    give_up()
    assert two.queue.waiting == (0, 0)
    two.take("w", 2)
    assert [a for a in two.news() if a[0] in "wz"] == [("z", [1, 2]), ("w", [3, 4])]


def test_consumers_get_what_the_producer_failed_with(two: Answers) -> None:
    two.put("a", 1)
    two.queue.producer_failed(fs.errors.DataLossError("the file is cut off", op="read"))
    two.queue.close()
    two.take("x")
    two.take("y")
    (_, first), (_, second) = two.got[1:]
    assert first == [1]
    assert isinstance(second, fs.errors.DataLossError)
    assert 'the producer of FIFOQueue "q" failed' in str(second)
    assert "the file is cut off" in str(second)
    assert isinstance(second.__cause__, fs.errors.DataLossError)


def test_a_producer_that_goes_on_has_not_failed(two: Answers) -> None:
    two.queue.producer_failed(fs.errors.UnavailableError("busy"))
    assert "a producer failed: UnavailableError: busy" in str(two.queue)
    two.put("a", 1)
    assert two.queue.failure is None
    two.queue.producer_failed(fs.errors.OutOfRangeError("the end of its own queue"))
    two.queue.producer_failed(fs.errors.CancelledError("stopped"))
    assert two.queue.failure is None


def test_another_producer_does_not_hide_a_failure(two: Answers) -> None:
    fails = threading.Thread(target=two.queue.producer_failed, args=[fs.errors.DataLossError("x")])
    fails.start()
    fails.join()
    two.put("b", 1)
    assert isinstance(two.queue.failure, fs.errors.DataLossError)


def test_clearing_makes_it_new(two: Answers) -> None:
    two.take("x", 3)
    two.put("a", 1)
    two.queue.close()
    two.queue.clear()
    two.take("y")
    two.queue.clear()
    assert two.news() == [("a", ()), ("x", "OutOfRangeError"), ("y", "CancelledError")]
    assert (two.queue.size, two.queue.is_closed, two.queue.waiting) == (0, False, (0, 0))


def test_what_it_says_of_itself(two: Answers) -> None:
    two.put("a", 1, 2, 3)
    two.queue.close()
    assert str(two.queue) == 'FIFOQueue "q" (2 of 2 elements, 1 enqueue waiting, closed)'


def test_ten_thousand_wait_without_threads() -> None:
    queue = Answers(QueueState("q", 1, (fs.float32,), None))
    before = own_threads()
    for i in range(10_000):
        queue.take(str(i))
    assert queue.queue.waiting == (0, 10_000)
    assert own_threads() == before
    for i in range(10_000):
        queue.put("", i)
    taken = [(n, r) for n, r in queue.news() if n]
    assert taken == [(str(i), [i]) for i in range(10_000)]


def test_no_lock_is_held_while_somebody_is_told(two: Answers) -> None:
    queue = two.queue

    def again(result: Any) -> None:
        if len(two.got) < 5:
            two.got.append(("again", result))
            queue.dequeue(1, again)
            queue.enqueue([(1,)], lambda done: None)

    queue.dequeue(1, again)
    two.put("a", 1)
    assert [name for name, _ in two.got] == ["a", *["again"] * 4]
    assert two.queue.waiting == (0, 0)
    assert two.queue.size == 0


def test_threads_put_and_take_each_element_once() -> None:
    queue = QueueState("q", 3, (fs.float32,), None)
    taken: list[int] = []
    all_taken = threading.Event()

    def took(result: Any) -> None:
        taken.extend(v for (v,) in result)
        if len(taken) == 4000:
            all_taken.set()

    def produce(start: int) -> None:
        for i in range(start, start + 1000):
            queue.enqueue([(i,)], lambda done: None)

    def consume() -> None:
        for _ in range(500):
            queue.dequeue(2, took)

    threads = [threading.Thread(target=produce, args=[1000 * i]) for i in range(4)]
    threads += [threading.Thread(target=consume) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all_taken.wait(10)
    assert sorted(taken) == list(range(4000))


# -- against a model ------------------------------------------------------------------------------

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 4)),
        st.tuples(st.just("take"), st.integers(0, 4)),
        st.tuples(st.just("up_to"), st.integers(0, 4)),
        st.tuples(st.just("give up"), st.integers(0, 7)),
        st.tuples(st.just("close"), st.booleans()),
    ),
    max_size=30,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.integers(1, 3), _STEPS)
def test_no_element_is_lost_or_doubled(capacity: int, steps: list[tuple[str, Any]]) -> None:
    queue = QueueState("q", capacity, (fs.float32,), None)
    answers = Answers(queue)
    waits: list[Callable[[], None]] = []
    number = 0
    put: dict[str, range] = {}
    for i, (what, n) in enumerate(steps):
        if what == "put":
            put[f"put{i}"] = range(number, number + n)
            waits.append(answers.put(f"put{i}", *put[f"put{i}"]))
            number += n
        elif what in ("take", "up_to"):
            waits.append(answers.take(f"take{i}", n, what == "up_to"))
        elif what == "give up" and n < len(waits):
            waits[n]()
        elif what == "close" and (n or not queue.is_closed):
            queue.close(n)
        enqueues, dequeues = queue.waiting
        assert not (enqueues and queue.size < capacity)
        assert not (dequeues and queue.size)
    queue.close(cancel_pending_enqueues=True)
    taken = [v for _, r in answers.got if isinstance(r, list) for v in r]
    rest: list[Any] = []
    queue.dequeue(number + 1, rest.append, up_to=True)
    taken += [v for (v,) in rest[0]] if isinstance(rest[0], list) else []
    assert taken == sorted(set(taken))
    done = {name for name, r in answers.got if r == ()}
    assert {v for name in done for v in put.get(name, ())} <= set(taken)
    names = [name for name, _ in answers.got]
    assert len(names) == len(set(names))


# -- locks ----------------------------------------------------------------------------------------


def test_a_lock_is_handed_on_in_order() -> None:
    lock = MutexState("m")
    holds: list[Any] = []
    drops = [lock.acquire(holds.append) for _ in range(3)]
    assert len(holds) == 1
    assert str(lock) == 'lock "m" (held, 2 waiting)'
    lock.release(holds[0])
    assert len(holds) == 2
    drops[1]()
    assert len(holds) == 3
    with pytest.raises(fs.errors.InvalidArgumentError, match="released already"):
        lock.release(holds[0])
    drops[2]()
    assert not lock.is_held


def test_who_gives_up_waiting_does_not_get_the_lock() -> None:
    lock = MutexState("m")
    holds: list[Any] = []
    lock.acquire(holds.append)
    lock.acquire(holds.append)()
    last = lock.acquire(holds.append)
    lock.release(holds[0])
    assert len(holds) == 2
    last()
    last()
    assert (lock.is_held, lock.waiting) == (False, 0)


def test_a_dropped_lock_is_free() -> None:
    lock = MutexState("m")
    answers: list[Any] = []
    lock.acquire(answers.append)
    lock.acquire(answers.append)
    lock.clear()
    assert isinstance(answers[1], fs.errors.CancelledError)
    assert not lock.is_held
