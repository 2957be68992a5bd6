"""Planning programs on many devices: `python tests/benchmarks/bench_many_devices.py`.

Ten thousand operations that take values from anywhere near, each on a device by chance: about every
second value crosses. Told are the whole plan, from the fetches to the function, the same again with
one operation moved, and the partitions. A time is the quickest of some.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import flowscope as fs

OPERATIONS = 10_000
ROUNDS = 3
#: Devices, and the bars: seconds for a plan, and for one after a move.
SIZES = {1: (2.0, 2.0), 8: (2.0, 0.3), 64: (4.0, 0.6)}


def build(devices: int) -> tuple[Any, Any]:
    """The fetches and the feeds of a program on so many devices."""
    rng = random.Random(0)
    x = fs.placeholder(fs.float32, [8], name="x")
    values = [x]
    for i in range(OPERATIONS):
        with fs.device(f"/cpu:{rng.randrange(devices)}"):
            a, b = rng.choice(values[-40:]), rng.choice(values[-40:])
            values.append(fs.add(a, b) if i % 2 else fs.tanh(a))
    return fs.add_n(values[-40:]), x


def seconds(function: Callable[[], Any]) -> float:
    """Returns how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(devices: int) -> tuple[int, float, float, float]:
    """Returns the nodes of a plan and the seconds that it, a move and its partitions take."""
    plans, moves, cuts, nodes = [], [], [], 0
    for _ in range(ROUNDS):
        with fs.Graph().as_default():
            y, x = build(devices)
            config = fs.ConfigProto(device_count={"CPU": devices})
            with fs.Session(config=config) as session:
                plans.append(seconds(lambda: session.plan(y, [x])))  # noqa: B023
                plan = session.plan(y, [x])
                nodes = len(plan.program.nodes)
                cuts.append(seconds(lambda: plan.partitions))  # noqa: B023
                session.move(y.op.inputs[0].op, f"/cpu:{devices - 1}")
                moves.append(seconds(lambda: session.plan(y, [x])))  # noqa: B023
    return nodes, min(plans), min(moves), min(cuts)


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    for devices, (bar, bar_moved) in SIZES.items():
        nodes, plan, moved, cut = measure(devices)
        print(
            f"{devices:3d} devices, {nodes:6d} nodes: plan {plan:.2f} s (bar {bar}), again with "
            f"one operation moved {moved:.2f} s (bar {bar_moved}), partitions {cut:.2f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
