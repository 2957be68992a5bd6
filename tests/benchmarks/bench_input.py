"""Input: elements a second through runners, and the time to the first. Beside TensorFlow's.

    python tests/benchmarks/bench_input.py                      # flowscope
    python tests/benchmarks/bench_input.py --peer PYTHON        # and TensorFlow, in alternation

With --peer, PYTHON is an interpreter that has TensorFlow, or flowscope at an older version
(`--peer-library flowscope`). Prints the best of several rounds, and their ratio; microseconds of
the processor's time per element beside it, for other processes do not change these much.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDS = 3
#: Elements of a round, and of a batch.
ELEMENTS, BATCH = 8000, 32
#: The process' own clock covers the threads of runners, too.
Measured = tuple[float, float]


def library(name: str) -> Any:
    if name == "flowscope":
        import flowscope

        return flowscope
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


def taken(fs: Any, batch: Any, size: int) -> Measured:
    """Elements a second that come in batches, and microseconds of the processor's per element."""
    with fs.Session() as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        coord = fs.train.Coordinator()
        threads = fs.train.start_queue_runners(sess, coord)
        take = sess.make_callable(batch)
        found: list[Measured] = []
        for _ in range(20):
            take()
        for _ in range(ROUNDS):
            start, used = time.perf_counter(), time.process_time()
            for _ in range(ELEMENTS // size):
                take()
            used = (time.process_time() - used) / ELEMENTS * 1e6
            found.append((ELEMENTS / (time.perf_counter() - start), used))
        coord.request_stop()
        coord.join(threads)
    return max(one for one, _ in found), min(one for _, one in found)


def runner(fs: Any, capacity: int = 1000) -> Measured:
    """One runner that takes from one queue and puts into another, and nothing else."""
    numbers = fs.train.range_input_producer(1000, shuffle=False, capacity=capacity)
    batch = fs.train.batch([numbers.dequeue()], BATCH, capacity=capacity)
    return taken(fs, batch, BATCH)


def small_queue(fs: Any) -> Measured:
    """The same with the default capacity: the runner has to wait for each batch."""
    return runner(fs, 64)


def one_by_one(fs: Any) -> Measured:
    """A queue of 1000 that is filled and emptied element by element."""
    queue = fs.FIFOQueue(1000, [fs.float32], shapes=[[4]])
    enqueue = queue.enqueue([fs.constant([1.0, 2.0, 3.0, 4.0])])
    fs.train.add_queue_runner(fs.train.QueueRunner(queue, [enqueue]))
    return taken(fs, queue.dequeue(), 1)


def shuffled(fs: Any) -> Measured:
    """Images and labels, shuffled into batches."""
    images = fs.constant(np.zeros([500, 28, 28], np.float32))
    labels = fs.constant(np.arange(500, dtype=np.int32))
    image, label = fs.train.slice_input_producer([images, labels], seed=1)
    batch = fs.train.shuffle_batch([image, label], BATCH, 2000, 1000, seed=1)
    return taken(fs, batch, BATCH)


def first_element(fs: Any) -> Measured:
    """Milliseconds from a runner's start to the first batch, once its plans are made."""
    numbers = fs.train.range_input_producer(1000, shuffle=False)
    take = fs.train.batch([numbers.dequeue()], 1)
    best, used = float("inf"), float("inf")
    with fs.Session() as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        for _ in range(3):
            start, cpu = time.perf_counter(), time.process_time()
            coord = fs.train.Coordinator()
            threads = fs.train.start_queue_runners(sess, coord)
            sess.run(take)
            best = min(best, (time.perf_counter() - start) * 1e3)
            used = min(used, (time.process_time() - cpu) * 1e3)
            coord.request_stop()
            coord.join(threads)
            break  # the stop has closed the queue
    return best, used


CASES: dict[str, tuple[str, Callable[[Any], Measured]]] = {
    "runner": ("elements/s", runner),
    "runner, small queue": ("elements/s", small_queue),
    "runner, one by one": ("elements/s", one_by_one),
    "shuffle_batch": ("elements/s", shuffled),
    "first element": ("ms", first_element),
}


def measured(name: str, only: str) -> dict[str, Measured]:
    fs = library(name)
    found = {}
    for case, (_, measure) in CASES.items():
        if only in case:
            with fs.Graph().as_default():
                found[case] = measure(fs)
    return found


def of_another(python: str, name: str, only: str) -> dict[str, Measured]:
    command = [python, __file__, "--json", "--library", name, "--only", only]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default="", help="an interpreter with another library")
    parser.add_argument("--peer-library", default="tensorflow")
    parser.add_argument("--library", default="flowscope")
    parser.add_argument("--only", default="", help="a part of the cases' names")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(measured(given.library, given.only)))
        return
    own = of_another(sys.executable, "flowscope", given.only)
    peer = of_another(given.peer, given.peer_library, given.only) if given.peer else {}
    for case, (value, used) in own.items():
        unit = CASES[case][0]
        line = f"{case:<20} {value:10.1f} {unit:<10} {used:7.1f} us of the processor"
        if case in peer:
            there = peer[case]
            line += f"   beside {there[0]:10.1f}, ratio {value / there[0]:5.2f}"
            line += f"; {there[1]:7.1f} us, ratio {there[1] / used:5.2f}"
        print(line)


if __name__ == "__main__":
    main()
