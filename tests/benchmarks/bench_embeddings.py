"""Microseconds of a training step with lookups in a loop, by the number of rows of the table.

Run: python tests/benchmarks/bench_embeddings.py
A step looks up 512 rows; Adam alone updates all rows, as in TensorFlow.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import flowscope as fs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from embedding_programs import optimizers

TURNS, IDS, WIDTH, STEPS = 16, 32, 8, 100


def seconds(rows: int, optimizer: str) -> float:
    """Returns the seconds of the fastest step."""
    with fs.Graph().as_default():
        table = fs.get_variable("table", [rows, WIDTH], initializer=fs.zeros_initializer())
        ids = fs.placeholder(fs.int32, [TURNS, IDS])

        def body(i: Any, loss: Any) -> Any:
            found = fs.nn.embedding_lookup(table, ids[i])
            return i + 1, loss + fs.reduce_sum(fs.square(found - 1.0))

        loss = fs.while_loop(lambda i, loss: i < TURNS, body, [0, 0.0])[1]
        step = optimizers(fs)[optimizer].minimize(loss)
        with fs.Session() as session:
            session.run(fs.global_variables_initializer())
            feed = {ids: np.random.default_rng(0).integers(0, rows, (TURNS, IDS))}
            times = []
            for _ in range(STEPS):
                start = time.thread_time()
                session.run(step, feed)
                times.append(time.thread_time() - start)
    return min(times)


def main() -> None:
    """Prints a line per optimizer."""
    sizes = (10_000, 1_000_000)
    print(f"{'':20}" + "".join(f"{n:>12,} rows" for n in sizes))
    for name in optimizers(fs):
        figures = [f"{1e6 * seconds(n, name):14.0f} us" for n in sizes]
        print(f"{name:20}" + "".join(figures))


if __name__ == "__main__":
    main()
