"""A replicated step over the same graph written by hand; steps of many replicas over those of one.

    python tests/benchmarks/bench_replicator.py

By hand: the median of the ratios of neighbouring runs, which alternate, so that another load of the
machine slows both. Many replicas: on workers of this process, whose computation is a sleep.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import flowscope as fs

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

ROUNDS, STEPS = 60, 20
SLEEP_S = 0.1


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


def seconds(step: Any, steps: int = STEPS) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - begin) / steps


def ratio(count: int, size: int) -> tuple[float, float]:
    """Returns the median of the ratios, and that of the seconds by hand."""
    (one, hand), (other, ours) = by_hand(count, size), replicated(count, size)
    with one, other:
        a, b = hand(), ours()
        assert a[0] == b[0], (a, b)
        ratios, base = [], []
        for i in range(ROUNDS):
            if i % 2:
                second, first = seconds(ours), seconds(hand)
            else:
                first, second = seconds(hand), seconds(ours)
            ratios.append(second / first)
            base.append(first)
        return statistics.median(ratios), statistics.median(base)


def slept(cluster: Any, workers: list[str]) -> float:
    """Returns the steps per second of replicas on workers that sleep."""
    replicator = fs.replicator.MultiDevice(workers, target=cluster)
    with fs.Graph().as_default():
        optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(0.1))

        def sleep(x: Any) -> Any:
            time.sleep(SLEEP_S)
            return x

        def step() -> Any:
            w = fs.get_variable("w", [256], initializer=fs.ones_initializer())
            waited = fs.py_func(sleep, [fs.constant(1.0)], fs.float32)
            waited.set_shape([])
            loss = fs.reduce_mean(fs.square(w)) * waited
            return optimizer.minimize(loss)

        train = replicator.run(step)
        with replicator.session() as session:
            session.run(train)
            return 1.0 / min(seconds(lambda: session.run(train), 5) for _ in range(3))


def scaling() -> None:
    from cluster_hosts import hosts_here, worker

    with hosts_here(8) as (cluster, _):
        alone = slept(cluster, [worker(0)])
        for count in (1, 2, 4, 8):
            found = slept(cluster, [worker(i) for i in range(count)])
            print(
                f"{count} replicas: {count * found:.1f} parts of batches a second, "
                f"{found / alone:.3f} of linear"
            )


if __name__ == "__main__":
    for count in (1, 2, 4):
        for size in (8, 128):
            found, base = ratio(count, size)
            print(f"{count} replicas, width {size}: {found:.3f} of {base * 1e6:.0f} us by hand")
    scaling()
