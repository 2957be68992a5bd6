"""Queues that shuffle, fill up and sort: their order, their rules, and that no element is lost."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from late_steps import late

import flowscope as fs
from flowscope.errors import DeadlineExceededError, InvalidArgumentError, OutOfRangeError

MODES = ("compiled", "op", "tokens")


def session(mode: str = "compiled") -> fs.Session:
    return fs.Session(config=fs.ConfigProto(mode=mode))


# -- shuffled -------------------------------------------------------------------------------------


def shuffled(
    n: int = 100, *, seed: int | None = 3, mode: str = "compiled", least: int = 0, by: int = 1
) -> list[int]:
    """The order in which 0 ... n - 1 come out of a queue that is full and closed."""
    with fs.Graph().as_default(), session(mode) as sess:
        queue = fs.RandomShuffleQueue(n, least, [fs.int64], [[]], seed=seed)
        sess.run(queue.enqueue_many([np.arange(n)]))
        sess.run(queue.close())
        out = queue.dequeue() if by == 1 else queue.dequeue_many(by)
        return [int(x) for _ in range(n // by) for x in np.ravel(sess.run(out))]


def test_a_seed_says_the_order_in_all_modes_and_however_elements_are_asked_for() -> None:
    order = shuffled()
    assert sorted(order) == list(range(100)) != order
    for mode in MODES:
        assert shuffled(mode=mode) == order
    assert shuffled(by=10) == order
    assert shuffled(seed=4) != order
    assert shuffled(seed=None) != shuffled(seed=None)


def test_with_a_seed_it_does_not_matter_how_full_a_queue_is_that_keeps_some() -> None:
    order = shuffled(least=20)
    assert sorted(order) == list(range(100)) != order
    assert shuffled(least=20, by=10) == order
    chance = np.random.default_rng(1)
    with fs.Graph().as_default(), fs.Session() as sess:
        x = fs.placeholder(fs.int64, [None])
        queue = fs.RandomShuffleQueue(100, 20, [fs.int64], [[]], seed=3)
        put, take, found, begin = queue.enqueue_many([x]), queue.dequeue(), [], 0
        while begin < 100:
            count = min(100 - begin, int(chance.integers(1, 30)))
            sess.run(put, {x: np.arange(begin, begin + count)})
            begin += count
            room = begin - len(found) - 20
            found += [int(sess.run(take)) for _ in range(chance.integers(0, max(room, 0) + 1))]
        sess.run(queue.close())
        found += [int(sess.run(take)) for _ in range(100 - len(found))]
    assert found == order
    far = [abs(place - value) for place, value in enumerate(order)]
    assert max(far) > 20, "an element may stay in for long"


def test_the_seed_of_the_graph_counts() -> None:
    def first(seed: int) -> list[int]:
        with fs.Graph().as_default(), fs.Session() as sess:
            fs.set_random_seed(seed)
            queue = fs.RandomShuffleQueue(50, 0, [fs.int64], [[]])
            sess.run(queue.enqueue_many([np.arange(50)]))
            return sess.run(queue.dequeue_many(50)).tolist()

    assert first(1) == first(1) != first(2)


def test_all_orders_come_equally_often() -> None:
    """Of three elements, six orders: chi-squared with 5 degrees of freedom, 1 in 10^5."""
    seen: Counter[tuple[int, ...]] = Counter()
    with fs.Graph().as_default(), fs.Session() as sess:
        queue = fs.RandomShuffleQueue(3, 0, [fs.int64], [[]], seed=7)
        put, take = queue.enqueue_many([np.arange(3)]), queue.dequeue_many(3)
        for _ in range(1200):
            sess.run(put)
            seen[tuple(sess.run(take).tolist())] += 1
    assert len(seen) == 6
    assert sum((count - 200) ** 2 / 200 for count in seen.values()) < 30.9


@pytest.mark.parametrize("mode", MODES)
def test_so_many_stay_in_until_it_is_closed(graph: fs.Graph, mode: str) -> None:
    queue = fs.RandomShuffleQueue(10, 3, [fs.int64], [[]], seed=1)
    take = queue.dequeue()
    with session(mode) as sess:
        sess.run(queue.enqueue_many([np.arange(5)]))
        found = [int(sess.run(take)) for _ in range(2)]
        late(sess, take)
        late(sess, queue.dequeue_many(4))
        assert sess.run(queue.size()) == 3
        sess.run(queue.close())
        found += sess.run(queue.dequeue_up_to(10)).tolist()
        assert sorted(found) == list(range(5))
        with pytest.raises(OutOfRangeError, match="RandomShuffleQueue .* closed"):
            sess.run(take)


# -- by priority ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_least_priority_comes_first_and_of_equals_the_older(graph, mode: str) -> None:
    queue = fs.PriorityQueue(10, [fs.string], [[]])
    assert queue.dtypes == [fs.int64, fs.string]
    assert [s.as_list() for s in queue.shapes] == [[], []]
    with session(mode) as sess:
        sess.run(queue.enqueue_many([[5, -1, 5, 2**40], ["a", "b", "c", "d"]]))
        sess.run(queue.enqueue([-1, "e"]))
        priorities, words = sess.run(queue.dequeue_many(5))
    assert priorities.tolist() == [-1, -1, 5, 5, 2**40]
    assert words.tolist() == [b"b", b"e", b"a", b"c", b"d"]


def test_priorities_alone(graph: fs.Graph) -> None:
    queue = fs.PriorityQueue(10, [], [])
    with fs.Session() as sess:
        sess.run(queue.enqueue_many([[3, 1, 2]]))
        assert sess.run(queue.dequeue_many(3)).tolist() == [1, 2, 3]


# -- filled up ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_elements_are_filled_up_to_the_largest(graph: fs.Graph, mode: str) -> None:
    queue = fs.PaddingFIFOQueue(10, [fs.float32, fs.string, fs.bool], [[None, 2], [None], []])
    one = queue.dequeue()
    assert [t.shape.as_list() for t in one] == [[None, 2], [None], []]
    many = queue.dequeue_many(2)
    assert [t.shape.as_list() for t in many] == [[2, None, 2], [2, None], [2]]
    x, word, flag = (fs.placeholder(d) for d in queue.dtypes)
    with session(mode) as sess:
        put = queue.enqueue([x, word, flag])
        sess.run(put, {x: np.ones([1, 2]), word: ["a", "bc", "d"], flag: True})
        sess.run(put, {x: np.full([3, 2], 2.0), word: [], flag: False})
        numbers, words, flags = sess.run(many)
        assert numbers.tolist() == [[[1, 1], [0, 0], [0, 0]], [[2, 2], [2, 2], [2, 2]]]
        assert words.tolist() == [[b"a", b"bc", b"d"], [b"", b"", b""]]
        assert flags.tolist() == [True, False]
        sess.run(put, {x: np.ones([1, 2]), word: ["a"], flag: True})
        assert sess.run(one)[0].tolist() == [[1, 1]]  # alone, an element is as it was put in
        with pytest.raises(InvalidArgumentError, match="component 0 of an element"):
            sess.run(put, {x: np.ones([1, 3]), word: [], flag: True})


# -- all kinds ------------------------------------------------------------------------------------

KINDS = {
    "fifo": lambda n, least, **a: fs.FIFOQueue(n, [fs.int64], [[]], **a),
    "padding": lambda n, least, **a: fs.PaddingFIFOQueue(n, [fs.int64], [[]], **a),
    "priority": lambda n, least, **a: fs.PriorityQueue(n, [], [], **a),
    "shuffle": lambda n, least, **a: fs.RandomShuffleQueue(n, least, [fs.int64], [[]], seed=5, **a),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_lose_and_double_nothing(graph: fs.Graph, kind: str, mode: str) -> None:
    """Puts and takes of all sizes, some of which are given up; what went in comes out once."""
    rng = random.Random(f"{kind} {mode}")
    queue = KINDS[kind](8, 2)
    values, count = fs.placeholder(fs.int64, [None]), fs.placeholder(fs.int32, [])
    put, take, left = queue.enqueue_many(values), queue.dequeue_many(count), queue.size()
    # A step that has taken and then waits for what never comes gives back what it has.
    never = fs.FIFOQueue(1, [fs.int64], [[]], name="never")
    with fs.control_dependencies([queue.dequeue_many(count)]):
        stuck = never.dequeue()
    short = fs.RunOptions(timeout_in_ms=1)
    inside: list[int] = []
    number = 0
    with session(mode) as sess:
        for _ in range(60):
            move = rng.choice(["put", "take", "stuck", "short"])
            most = len(inside) - (2 if kind == "shuffle" else 0)
            if move == "put" and len(inside) < 8:
                size = rng.randint(0, 8 - len(inside))
                fresh = [rng.choice([1, -1]) * (number + i) for i in range(size)]
                number += size
                sess.run(put, {values: fresh})
                inside += fresh
            elif move == "take" and most > 0:
                size = rng.randint(1, most)
                found = sess.run(take, {count: size}).tolist()
                if kind == "priority":
                    assert found == sorted(inside)[:size]
                elif kind != "shuffle":
                    assert found == inside[:size]
                for one in found:
                    inside.remove(one)
            elif move == "stuck" and most > 0:
                with pytest.raises(DeadlineExceededError):
                    sess.run(stuck, {count: rng.randint(1, most)}, short)
            elif move == "short":
                with pytest.raises(DeadlineExceededError):
                    sess.run(take, {count: len(inside) + 1}, short)
            assert sess.run(left) == len(inside)
        sess.run(queue.close())
        if inside:
            assert sorted(sess.run(queue.dequeue_up_to(100)).tolist()) == sorted(inside)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_takes_what_another_part_of_the_step_puts_in(graph, kind: str, mode: str) -> None:
    queue = KINDS[kind](3, 1)

    def produce(i: fs.Tensor) -> fs.Tensor:
        with fs.control_dependencies([queue.enqueue(fs.cast(i, fs.int64))]):
            return i + 1

    made = fs.while_loop(lambda i: i < 20, produce, [fs.constant(0)])

    def consume(i: fs.Tensor, total: fs.Tensor) -> tuple[fs.Tensor, fs.Tensor]:
        return i + 1, total + queue.dequeue()

    least = 1 if kind == "shuffle" else 0
    start = [fs.constant(0), fs.constant(0, fs.int64)]
    _, total = fs.while_loop(lambda i, t: i < 20 - least, consume, start)
    with session(mode) as sess:
        found = sess.run([made, total])[1]
        sess.run(queue.close())
        if least:
            found += sess.run(queue.dequeue())
    assert found == sum(range(20))


def test_what_does_not_fit_is_refused(graph: fs.Graph) -> None:
    for least in (-1, 5, 6):
        with pytest.raises(InvalidArgumentError, match="min_after_dequeue of 0 or more, below"):
            fs.RandomShuffleQueue(5, least, [fs.int64])
    with pytest.raises(InvalidArgumentError, match="min_after_dequeue"):
        fs.RandomShuffleQueue(5, 0.5, [fs.int64])
    fs.RandomShuffleQueue(-1, 1000, [fs.int64])
    with pytest.raises(InvalidArgumentError, match="fully known"):
        fs.RandomShuffleQueue(5, 0, [fs.int64], [[None]])
    with pytest.raises(InvalidArgumentError, match="a shape for each component"):
        fs.PaddingFIFOQueue(5, [fs.int64], None)
    with pytest.raises(InvalidArgumentError, match="known rank"):
        fs.PaddingFIFOQueue(5, [fs.int64], [fs.TensorShape(None)])


def test_one_name_means_one_queue(graph: fs.Graph) -> None:
    first = fs.RandomShuffleQueue(5, 2, [fs.int64], [[]], seed=1, shared_name="q")
    for other, what in [
        (fs.FIFOQueue(5, [fs.int64], [[]], shared_name="q"), "kind RandomShuffleQueue"),
        (fs.RandomShuffleQueue(5, 1, [fs.int64], [[]], None, 1, "q"), "min_after_dequeue 2"),
    ]:
        with fs.Session() as sess:
            sess.run(first.size())
            with pytest.raises(InvalidArgumentError, match=what):
                sess.run(other.size())
