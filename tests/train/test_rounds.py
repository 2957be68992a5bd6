"""Rounds of queue runners: what they give is what steps give, and follows seed and position."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest
from cluster_hosts import hosts_here, on
from random_runners import Cycle

import flowscope as fs

train = fs.train

#: How the batches of a program may be asked for; all give the same.
WAYS = [
    ("compiled", 1, "nothing"), ("tokens", 1, "training"), ("op", 2, "training"),
    ("compiled", 2, "split"), ("compiled", 1, "record"), ("compiled", 1, "pauses"),
    ("compiled", 2, "slow motion"),
]  # fmt: skip


def random_input(seed: int, place: Any) -> tuple[Any, Any, int]:
    """A producer, what is done to its examples at random, a queue and batches; and how many."""
    chance = random.Random(seed)
    rows = chance.randint(3, 6)
    epochs = chance.choice([None, 3])
    with place(0):
        indices = train.range_input_producer(rows, epochs, seed=seed, capacity=chance.randint(1, 9))
        row = indices.dequeue()
    with place(1):
        noise = fs.random_uniform([2], seed=chance.choice([None, 7]))
        example = [row, noise + fs.cast(row, fs.float32)]
        if chance.random() < 0.5:  # a branch, which draws only sometimes
            drawn = lambda: fs.random_normal([2], seed=5)  # noqa: E731
            example[1] = fs.cond(row > 1, drawn, lambda: noise)
    if chance.random() < 0.5:
        batch = train.shuffle_batch(example, 2, 8, 3, seed=3)
    else:
        batch = train.batch(example, 2, capacity=chance.randint(2, 8))
    with place(1):
        weights = fs.Variable(fs.zeros([2]), name="weights")
        step = weights.assign_add(fs.random_uniform([2], seed=1))
    return batch, step, 3 * rows // 2 if epochs else 8


class Counts(train.SessionRunHook):
    """A hook that fetches something random itself."""

    def __init__(self, fetch: Any) -> None:
        self.fetch, self.runs = fetch, 0

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs(self.fetch)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1


def batches(seed: int, mode: Any, devices: int, beside: str) -> list[Any]:
    """The batches of a program, while something else is done beside it."""
    options: dict[str, Any] = {"device_count": {"CPU": devices}}
    if beside == "split":
        options["split_partitions"] = "always"
    with fs.Graph().as_default() as graph:
        graph.seed = seed
        batch, step, count = random_input(seed, lambda i: fs.device(f"/cpu:{i % devices}"))
        hook = Counts(fs.random_uniform([]))
        config = fs.ConfigProto(mode=mode, **options)
        found = []
        with train.SingularMonitoredSession([hook], config=config) as monitored:
            session = monitored.raw_session()
            if beside == "record":
                session.debug.record()
            if beside == "slow motion":
                session.pace(1e-4)
            for number in range(count):
                if beside == "training":
                    for _ in range(number % 3):
                        monitored.run(step)
                if beside == "pauses":
                    session.pause()
                    session.gate.wait_until_held(0.002)
                    session.resume()
                found.append(monitored.run(batch))
            session.pace(0.0)
        assert hook.runs >= count
    return found


@pytest.mark.parametrize("seed", range(8))
def test_what_is_read_does_not_depend_on_what_runs_beside_it(seed: int) -> None:
    first, *others = [batches(seed, *way) for way in WAYS]
    for way, other in zip(WAYS[1:], others, strict=True):
        for mine, theirs in zip(first, other, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(a, b, str(way))


def test_input_on_workers_is_the_same() -> None:
    """Each round is a step of the cluster's then; it draws by its own count all the same."""
    seed = 4
    wanted = batches(seed, "compiled", 1, "nothing")
    with hosts_here(2) as (cluster, _), fs.Graph().as_default() as graph:
        graph.seed = seed
        batch, step, count = random_input(seed, on)
        fs.random_uniform([])
        with fs.Session(cluster) as session:
            session.run(fs.global_variables_initializer())
            session.run(fs.local_variables_initializer())
            coord = train.Coordinator()
            threads = train.start_queue_runners(session, coord)
            found = []
            for _ in range(count):
                session.run(step)
                found.append(session.run(batch))
            coord.request_stop()
            coord.join(threads)
    for mine, theirs in zip(wanted, found, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_rounds_draw_by_their_own_count_and_anew_in_each(graph: Any) -> None:
    queue = fs.FIFOQueue(100, [fs.float32], [[]])
    runner = train.QueueRunner(queue, [queue.enqueue(fs.random_uniform([], seed=1))])
    taken, other = queue.dequeue_many(10), fs.random_uniform([], seed=1)

    def drawn(before: int) -> list[float]:
        with fs.Session() as sess:
            alone = [float(sess.run(other)) for _ in range(before)]
            coord = train.Coordinator()
            threads = runner.create_threads(sess, coord, start=True)
            found: list[float] = sess.run(taken).tolist()
            coord.request_stop()
            coord.join(threads)
        assert not set(alone) & set(found)
        return found

    found = drawn(0)
    assert len(set(found)) == 10
    assert drawn(3) == found


def test_a_second_start_goes_on_behind_the_first(graph: Any) -> None:
    queue = fs.FIFOQueue(2, [fs.float32], [[]])
    runner = train.QueueRunner(queue, [queue.enqueue(fs.random_uniform([], seed=1))])
    taken = queue.dequeue()
    with fs.Session() as sess:
        found = []
        for _ in range(2):
            coord = train.Coordinator()
            threads = runner.create_threads(sess, coord, start=True)
            found += [float(sess.run(taken)) for _ in range(4)]
            coord.request_stop()
            coord.join(threads)
            for state in sess.queues.values():
                state.clear()
    assert len(set(found)) == 8


@pytest.mark.slow
def test_whatever_ends_runners_nothing_is_lost_and_nobody_left() -> None:
    for seed in range(150):
        Cycle(seed).run()


@pytest.mark.memory
def test_a_runner_that_waits_does_not_use_the_processor(graph: Any) -> None:
    queue = fs.FIFOQueue(3, [fs.float32], [[]])
    runner = train.QueueRunner(queue, [queue.enqueue(fs.constant(1.0))] * 4)
    size = queue.size()
    with fs.Session() as sess:
        coord = train.Coordinator()
        threads = runner.create_threads(sess, coord, start=True)
        while sess.run(size) < 3 or sum(s.waiting[0] for s in sess.queues.values()) < 4:
            pass
        start, used = time.perf_counter(), time.process_time()
        coord.wait_for_stop(0.5)
        share = (time.process_time() - used) / (time.perf_counter() - start)
        coord.request_stop()
        coord.join(threads)
    assert share < 0.01


def test_rounds_are_one_lasting_step_while_nobody_wants_anything(graph: Any) -> None:
    """It counts rounds as steps; a pause, a look and a trace make them steps of their own."""
    seen: set[int] = set()
    steps: list[Any] = []
    queue = fs.FIFOQueue(1000, [fs.int64], [[]])

    def noted() -> np.int64:
        from flowscope.graph.current_step import current_step

        step = current_step()
        seen.add(id(step))
        steps.append(step)  # so that no other gets its number
        return np.int64(len(steps))

    runner = train.QueueRunner(queue, [queue.enqueue(fs.py_func(noted, [], fs.int64))])
    taken = queue.dequeue_many(100)
    with fs.Session() as sess:
        sess.run(queue.size())
        before = sess.steps
        coord = train.Coordinator()
        threads = runner.create_threads(sess, coord, start=True)
        assert sess.run(taken).tolist() == list(range(1, 101))
        coord.request_stop()
        coord.join(threads)
        assert len(steps) >= 100 > 10 > len(seen)
        assert sess.steps - before >= 100
