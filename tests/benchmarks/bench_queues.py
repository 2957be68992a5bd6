"""Queues: what a hand-over costs, and what overlap gains. Beside TensorFlow where it is there.

    python tests/benchmarks/bench_queues.py                      # flowscope
    python tests/benchmarks/bench_queues.py --peer PYTHON        # and TensorFlow, in alternation

With --peer, PYTHON is an interpreter that has TensorFlow. Prints microseconds per step, best of
several rounds, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

ROUNDS = 5
#: How long the server of the last case thinks about each request.
ANSWER_S = 2e-3


def library(name: str) -> Any:
    if name == "flowscope":
        import flowscope

        return flowscope
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


def best(step: Any, count: int) -> float:
    """Returns microseconds per step."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            step()
        found.append((time.perf_counter() - start) / count * 1e6)
    return min(found)


def put_and_take(fs: Any) -> float:
    queue = fs.FIFOQueue(10, [fs.float32], shapes=[[]])
    put, take = queue.enqueue(1.0), queue.dequeue()
    with fs.Session() as sess:

        def step() -> None:
            sess.run(put)
            sess.run(take)

        step()
        return best(step, 300)


def batches(fs: Any) -> float:
    queue = fs.FIFOQueue(256, [fs.float32, fs.int32], shapes=[[28, 28], []])
    images = fs.placeholder(fs.float32, [128, 28, 28])
    labels = fs.placeholder(fs.int32, [128])
    put, take = queue.enqueue_many([images, labels]), queue.dequeue_many(128)
    feeds = {images: np.ones([128, 28, 28], np.float32), labels: np.arange(128, dtype=np.int32)}
    with fs.Session() as sess:

        def step() -> None:
            sess.run(put, feeds)
            sess.run(take)

        step()
        return best(step, 100)


def between_threads(fs: Any) -> float:
    queue = fs.FIFOQueue(4, [fs.float32], shapes=[[]])
    put, take = queue.enqueue(1.0), queue.dequeue()
    count = 300
    with fs.Session() as sess:
        sess.run([put, take])

        def step() -> None:
            thread = threading.Thread(target=lambda: [sess.run(put) for _ in range(count)])
            thread.start()
            for _ in range(count):
                sess.run(take)
            thread.join()

        return best(step, 1) / count


def in_a_loop(fs: Any) -> float:
    queue = fs.FIFOQueue(4, [fs.int32], shapes=[[]])

    def body(i: Any, total: Any) -> Any:
        with fs.control_dependencies([queue.enqueue(i)]):
            return i + 1, total + queue.dequeue()

    loop = fs.while_loop(lambda i, t: i < 200, body, [0, 0])
    with fs.Session() as sess:
        sess.run(loop)
        return best(lambda: sess.run(loop), 5) / 200


def in_a_loop_that_waited(fs: Any) -> float:
    """A loop that finds the queue empty at first: another part of the step fills it."""
    queue = fs.FIFOQueue(4, [fs.int32], shapes=[[]])

    def body(i: Any, total: Any) -> Any:
        taken = queue.dequeue()
        with fs.control_dependencies([taken]):
            put = queue.enqueue(i)
        with fs.control_dependencies([put]):
            return i + 1, total + taken

    loop = fs.while_loop(lambda i, t: i < 200, body, [0, 0])
    fill, rest = queue.enqueue(7), queue.dequeue()
    with fs.Session() as sess:

        def step() -> None:
            sess.run([loop, fill])
            sess.run(rest)

        step()
        return best(step, 5) / 200


def overlap(fs: Any, k: int) -> float:
    """A loop that asks a server, which answers each request after a while."""
    n = 64
    requests = fs.FIFOQueue(n, [fs.int32], shapes=[[]])
    answers = fs.FIFOQueue(n, [fs.int32], shapes=[[]])

    def body(i: Any, total: Any) -> Any:
        with fs.control_dependencies([requests.enqueue(i)]):
            return i + 1, total + answers.dequeue()

    loop = fs.while_loop(lambda i, t: i < n, body, [0, 0], parallel_iterations=k)
    take, x = requests.dequeue(), fs.placeholder(fs.int32, [])
    answer = answers.enqueue(x)
    with fs.Session() as sess:
        sess.run(requests.size())

        def served(i: int) -> None:
            time.sleep(ANSWER_S)
            sess.run(answer, {x: i})

        def serve() -> None:
            for _ in range(n):
                threading.Thread(target=served, args=[sess.run(take)]).start()

        def step() -> None:
            server = threading.Thread(target=serve)
            server.start()
            sess.run(loop)
            server.join()

        step()
        return best(step, 1) / n


CASES = {
    "enqueue and dequeue a scalar": put_and_take,
    "enqueue_many and dequeue_many, 128 images": batches,
    "a scalar from thread to thread": between_threads,
    "enqueue and dequeue in a loop, per iteration": in_a_loop,
    "the same in a loop that had to wait once": in_a_loop_that_waited,
    "asking a server, parallel_iterations=1": lambda fs: overlap(fs, 1),
    "asking a server, parallel_iterations=8": lambda fs: overlap(fs, 8),
}


def measure(name: str, case: str) -> float:
    fs = library(name)
    with fs.Graph().as_default():
        return CASES[case](fs)


def measured(python: str, name: str, case: str) -> float:
    command = [python, __file__, "--one", name, case]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(out.strip().splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="an interpreter that has TensorFlow")
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "CASE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one)))
        return
    for case in CASES:
        own = measured(sys.executable, "flowscope", case)
        line = f"{case:48} {own:10.1f} us"
        if args.peer:
            peer = measured(args.peer, "tensorflow", case)
            line += f"   TensorFlow {peer:10.1f} us   ratio {own / peer:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
