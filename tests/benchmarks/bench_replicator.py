"""A replicated step, over the same graph written by hand.

    python tests/benchmarks/bench_replicator.py

Prints the ratio of the medians, in runs that alternate: how much longer a step of `fs.replicator`
takes than one whose replicas were built and joined by hand.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import flowscope as fs

ROUNDS, STEPS = 15, 60


def model(x: Any, w: Any, v: Any) -> Any:
    return fs.reduce_mean(fs.square(fs.matmul(fs.tanh(fs.matmul(x, w)), v)))


def start(shape: list[int], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.1


def by_hand(count: int, size: int) -> tuple[fs.Session, Any]:
    """Replicas whose gradients are joined by collectives, in a session."""
    with fs.Graph().as_default() as graph:
        copies, grads, losses = [], [], []
        for _ in range(count):
            w, v = fs.Variable(start([size, size], 0)), fs.Variable(start([size, 1], 1))
            loss = model(fs.constant(start([32, size], 2)), w, v)
            copies.append((w, v))
            losses.append(loss)
            grads.append(fs.gradients(loss, [w, v]))
        joined = [fs.collectives.all_reduce(list(g), "mean") for g in zip(*grads, strict=True)]
        trained = []
        for i, variables in enumerate(copies):
            pairs = [(column[i], x) for column, x in zip(joined, variables, strict=True)]
            trained.append(fs.train.GradientDescentOptimizer(0.1).apply_gradients(pairs))
        session = fs.Session(graph=graph)
        session.run(fs.global_variables_initializer())
        return session, session.make_callable([tuple(losses), fs.group(*trained)])


def replicated(count: int, size: int) -> tuple[fs.Session, Any]:
    """The same by a replicator."""
    replicator = fs.replicator.MultiDevice(count)
    with fs.Graph().as_default() as graph:
        optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(0.1))

        def step() -> Any:
            w = fs.Variable(start([size, size], 0))
            v = fs.Variable(start([size, 1], 1))
            loss = model(fs.constant(start([32, size], 2)), w, v)
            return loss, optimizer.minimize(loss)

        found = replicator.run(step)
        session = fs.Session(graph=graph)
        replicator.initialize(session)
        return session, session.make_callable(list(found))


def seconds(step: Any) -> float:
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - begin) / STEPS


def ratio(count: int, size: int) -> tuple[float, float]:
    """Returns the ratio of the medians, and the median by hand in seconds."""
    (one, hand), (other, ours) = by_hand(count, size), replicated(count, size)
    with one, other:
        a, b = hand(), ours()
        assert a[0] == b[0], (a, b)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            times[0].append(seconds(hand))
            times[1].append(seconds(ours))
        first, second = (statistics.median(t) for t in times)
        return second / first, first


if __name__ == "__main__":
    for count in (1, 2, 4):
        for size in (8, 128):
            found, base = ratio(count, size)
            print(f"{count} replicas, width {size}: {found:.3f} of {base * 1e6:.0f} us by hand")
