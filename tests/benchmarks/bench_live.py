"""What telling a view of a large graph costs the kernel: `python tests/benchmarks/bench_live.py`.

A snapshot as it travels (columns and JSON), a delta of 100 operations that came, and a look where
nothing did. CPU time of one thread, the median of a few rounds.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import flowscope as fs
from flowscope.live.protocol.schema import Ack, Connect
from flowscope.live.watchers import bus
from flowscope.live.watchers.wire import to_wire

ROUNDS = 7
SIZES = (15_000, 36_000)
MORE = 100


def grow(y: fs.Tensor, operations: int) -> fs.Tensor:
    """Adds so many operations, in scopes."""
    for i in range(operations // 3):
        with fs.name_scope(f"block{i % 97}"):
            y = fs.tanh(y * y + y)
    return y


def timed(act: Callable[[], Any]) -> float:
    """Returns milliseconds of CPU time."""
    start = time.process_time_ns()
    act()
    return (time.process_time_ns() - start) / 1e6


def sent(message: Any) -> int:
    """Brings a message into the form in which it leaves the kernel; returns its bytes."""
    content, buffers = to_wire(message)
    return len(json.dumps(content)) + sum(map(len, buffers))


def measure(operations: int) -> dict[str, float]:
    """Returns milliseconds and megabytes for a graph of so many operations."""
    with fs.Graph().as_default() as graph:
        y = grow(fs.placeholder(fs.float32, [4], name="x"), operations)
        feed = bus.LiveChannel(graph)
        snapshots, deltas, looks, sizes = [], [], [], []

        def take(message: Any) -> None:
            sizes.append(sent(message))

        snapshots += [
            timed(lambda view=view: feed.hear(Connect(view), take)) for view in range(1, ROUNDS + 1)
        ]
        end = [p.view for p in feed._ports]
        for view in end:
            feed.hear(Ack(view, 1), take)
        one = feed._ports[0]
        feed._ports = [one]
        for number in range(ROUNDS):
            y = grow(y, MORE)
            deltas.append(timed(lambda: feed.tick(0.0)))
            looks.append(timed(lambda: feed.tick(0.0)))
            feed.hear(Ack(one.view, number + 2), take)
        feed.leave(take)
    return {
        "snapshot ms": statistics.median(snapshots),
        "snapshot MB": max(sizes) / 1e6,
        f"delta of {MORE} ms": statistics.median(deltas),
        "look ms": statistics.median(looks),
    }


def main() -> None:
    """Prints the figures."""
    bus.PERIOD_S = 1e6
    for operations in SIZES:
        figures = measure(operations)
        print(
            f"{operations:6} operations:", *[f"{k} {v:.2f}" for k, v in figures.items()], sep="  "
        )


if __name__ == "__main__":
    main()
