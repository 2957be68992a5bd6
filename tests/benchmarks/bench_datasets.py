"""Datasets: batches and elements a second, beside a plain loop over NumPy arrays.

    python tests/benchmarks/bench_datasets.py

The rows are 60 000 images of 784 float32 with a label. Prints the best of several rounds; at the
end, milliseconds of a step whose input takes as long as its computation, without and with prefetch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import flowscope as fs

ROUNDS = 3
#: Elements of a batch.
BATCH = 32

Dataset = fs.data.Dataset


def rate(dataset: Any, count: int) -> float:
    """Steps a second that fetch the next element."""
    element = dataset.make_one_shot_iterator().get_next()
    best = 0.0
    with fs.Session() as session:
        take = session.make_callable(element)
        take()
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(count):
                take()
            best = max(best, count / (time.perf_counter() - start))
    return best


def plain(images: Any, labels: Any, count: int) -> float:
    """Batches a second of a loop that shuffles indices, and gathers."""
    best = 0.0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        order = np.random.default_rng(0).permutation(len(images))
        for i in range(count):
            chosen = order[i * BATCH : (i + 1) * BATCH]
            images[chosen], labels[chosen]
        best = max(best, count / (time.perf_counter() - start))
    return best


def step_ms(is_ahead: bool, work: Callable[[Any], Any]) -> float:
    """Milliseconds of a step that computes with an element for which something is waited for."""
    with fs.Graph().as_default():
        numbers = Dataset.range(10**9).map(lambda x: fs.py_func(work, [x], fs.float32))
        element = (numbers.prefetch(2) if is_ahead else numbers).make_one_shot_iterator().get_next()
        element.set_shape([])
        w = fs.constant(np.ones((700, 700), np.float32))
        return 1e3 / _steps(fs.reduce_sum(fs.matmul(w + element, w)), 60)


def _steps(fetch: Any, count: int) -> float:
    with fs.Session() as session:
        session.run(fetch)
        start = time.perf_counter()
        for _ in range(count):
            session.run(fetch)
        return count / (time.perf_counter() - start)


def waits(x: Any) -> Any:
    """Takes ten milliseconds of which no core is used, as a disk does."""
    time.sleep(0.01)
    return np.float32(x)


def main() -> None:
    images = np.random.default_rng(1).random((60_000, 784), np.float32)
    labels = np.arange(60_000) % 10
    with fs.Graph().as_default():
        rows = Dataset.from_tensor_slices((images, labels))
        mixed = rows.shuffle(10_000, seed=1).repeat()

        def scaled(x: Any, y: Any) -> Any:
            return x / 255.0, y

        cases = {
            "NumPy loop": lambda: plain(images, labels, 1500),
            "slices, shuffle, batch": lambda: rate(mixed.batch(BATCH), 1500),
            "the same, prefetch": lambda: rate(mixed.batch(BATCH).prefetch(4), 1500),
            "batch, map": lambda: rate(mixed.batch(BATCH).map(scaled), 1500),
            "map, batch": lambda: rate(mixed.map(scaled).batch(BATCH), 300),
        }
        for name, run in cases.items():
            print(f"{name:24} {run():10.0f} batches/s")
        numbers = Dataset.range(10**9).map(lambda x: x * 2 + 1).batch(100)
        print(f"{'range, map, batch(100)':24} {100 * rate(numbers, 300):10.0f} elements/s")
    without, ahead = step_ms(False, waits), step_ms(True, waits)
    print(f"a step and its input: {without:.1f} ms, with prefetch {ahead:.1f} ms")


if __name__ == "__main__":
    main()
