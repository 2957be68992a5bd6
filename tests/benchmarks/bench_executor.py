"""Invocations a second of the token executor, on a body of ten operations; beside compiled mode.

Run: python tests/benchmarks/bench_executor.py
Seconds are of this thread's own time: they hold on a busy machine too.
"""

from __future__ import annotations

import time
from typing import Any

import flowscope as fs

ITERATIONS = 20_000
BODY_OPS = 10


def body(i: Any, x: Any) -> Any:
    """Ten operations: nine on the value, one on the counter."""
    for k in range(BODY_OPS - 1):
        x = x * 1.01 if k % 2 else x + 0.5
    return i + 1, x


def seconds(mode: Any, window: int) -> float:
    """Returns the seconds of the best of three runs."""
    with fs.Graph().as_default():
        loop = fs.while_loop(
            lambda i, x: i < ITERATIONS, body, [0, 1.0], parallel_iterations=window
        )
        with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
            session.run(loop)
            times = []
            for _ in range(3):
                start = time.thread_time()
                session.run(loop)
                times.append(time.thread_time() - start)
    return min(times)


def main() -> None:
    """Prints one line per way to run."""
    invocations = ITERATIONS * (BODY_OPS + 1)
    for mode, window in (("tokens", 10), ("tokens", 1), ("op", 10), ("compiled", 10)):
        s = seconds(mode, window)
        print(
            f"{mode:9} window {window:2}: {invocations / s:12,.0f} invocations/s, "
            f"{s / ITERATIONS * 1e6:6.2f} us per iteration"
        )


if __name__ == "__main__":
    main()
