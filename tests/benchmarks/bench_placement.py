"""Placement by cost: `python tests/benchmarks/bench_placement.py`.

The pass alone on 10 000 operations over 8 and 64 devices, both ways to place; a prediction of the
step; how many nodes of a training step with an unknown batch have an estimate. A time is the
quickest of some runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.plan.analysis.costs import Costs, fed_specs
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.plan.ir.collector import paused_collector
from flowscope.plan.ir.program import Program
from flowscope.plan.passes.place import place
from flowscope.plan.placement.by_cost import ByCost
from flowscope.plan.placement.machine import PlacementMachine
from flowscope.plan.placement.simulation import Prediction

PREFIX = "/job:localhost/replica:0/task:0/device:"
OPERATIONS, CHAINS, LAYERS, ROUNDS = 10_000, 50, 20, 3
#: Seconds that the pass may take over so many devices.
BARS = {8: 1.0, 64: 4.0}


def program() -> Program:
    """Returns many chains of small products and element-wise work that depend on each other."""
    graph = fs.Graph()
    with graph.as_default():
        x = fs.placeholder(fs.float32, [64, 64], name="x")
        ys = [x] * CHAINS
        for i in range(OPERATIONS):
            a, b = ys[i % CHAINS], ys[(i + 7) % CHAINS]
            ys[i % CHAINS] = (fs.matmul(a, x), fs.add(a, b), fs.tanh(a))[i // CHAINS % 3]
        total = fs.add_n(ys)
    with fs.Session(graph=graph, config=fs.ConfigProto(mode="op")) as session:
        return session.plan(total, [x]).placed


def machine(count: int) -> PlacementMachine:
    """Returns accelerators and one CPU."""
    names = [f"{PREFIX}GPU:{i}" for i in range(count - 1)] + [f"{PREFIX}CPU:0"]
    fast = DeviceProfile(10.0, 5e-6, Link(), 1 << 34)
    return PlacementMachine(names, [fast] * (count - 1) + [DeviceProfile()])


def quickest(work: Callable[[], Any]) -> float:
    """Returns the seconds of the quickest of some runs."""
    found = []
    for _ in range(ROUNDS):
        with paused_collector():
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return min(found)


def estimated(layers: int = LAYERS) -> tuple[int, int, int]:
    """Returns the nodes of a training step, and how many have an estimate without and with feeds.

    Its batch is unknown; constants and handles, which nobody computes, do not count.
    """
    graph = fs.Graph()
    with graph.as_default():
        x = fs.placeholder(fs.float32, [None, 64], name="x")
        y = x
        for i in range(layers):
            w = fs.Variable(np.zeros((64, 64), np.float32), name=f"w{i}")
            y = fs.nn.relu(fs.matmul(y, w))
        loss = fs.reduce_mean(fs.square(y))
        train = fs.train.GradientDescentOptimizer(0.1).minimize(loss)
    with fs.Session(graph=graph) as session:
        found = session.plan(train, [x]).placed
    nodes = list(found.walk())
    with_feeds = Costs(None, fed_specs(found, [(32, 64)]))
    counts = [sum(map(costs.is_known, nodes)) for costs in (Costs(), with_feeds)]
    return len(nodes), counts[0], counts[1]


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    given = program()
    count = len(given.nodes)
    for devices, bar in BARS.items():
        of = machine(devices)
        specs = [fs.DeviceSpec.from_string(n) for n in of.names]
        default = quickest(lambda: place(given, specs, False))  # noqa: B023
        by_cost = ByCost(of, lambda _: Costs())
        simulated = quickest(lambda: place(given, specs, False, by_cost))  # noqa: B023
        placed = place(given, specs, False, by_cost)
        predicted = quickest(lambda: Prediction(placed, of, Costs()).run())  # noqa: B023
        print(
            f"{count} nodes over {devices} devices: {default:.2f} s by default, "
            f"{simulated:.2f} s by simulation (bar {bar}), {predicted:.2f} s to predict a step"
        )
    nodes, without, with_feeds = estimated()
    print(
        f"{LAYERS} layers, unknown batch: {nodes} nodes, of which {nodes - without} have no "
        f"estimate, and {nodes - with_feeds} with the shapes of feeds"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
