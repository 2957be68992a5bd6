"""Loops as work for both sides of a comparison; see peer.py.

Small loops whose bodies are scalars, the gradient of one, and a training step of an LSTM, as a loop
and unrolled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def ten_ops(fs: Any, y: Any, w: Any) -> Any:
    """Returns the end of ten operations of four kinds."""
    for k in range(10):
        y = (fs.add, fs.maximum, fs.subtract, fs.minimum)[k % 4](y, w)
    return y


def trivial(fs: Any, n: Any, w: Any) -> Any:
    """Returns a loop that counts."""
    return fs.while_loop(lambda i: i < n, lambda i: i + 1, [fs.constant(0)], back_prop=False)


def ten(fs: Any, n: Any, w: Any) -> Any:
    """Returns a loop of ten operations."""
    start = [fs.constant(0), fs.constant(1.0)]
    body: Callable[..., Any] = lambda i, y: (i + 1, ten_ops(fs, y, w))  # noqa: E731
    return fs.while_loop(lambda i, y: i < n, body, start, back_prop=False)[1]


def ten64(fs: Any, n: Any, w: Any) -> Any:
    """Returns a loop of ten operations on float64."""
    w, start = fs.cast(w, fs.float64), [fs.constant(0), fs.constant(1.0, fs.float64)]
    body: Callable[..., Any] = lambda i, y: (i + 1, ten_ops(fs, y, w))  # noqa: E731
    return fs.while_loop(lambda i, y: i < n, body, start, back_prop=False)[1]


def branching(fs: Any, n: Any, w: Any) -> Any:
    """Returns a loop around loops of 10 iterations, with a branch in each of these."""

    def step(j: Any, t: Any) -> Any:
        return j + 1, fs.cond(t > 2.0, lambda: t * 0.5, lambda: t * w + 0.3)

    def outer(i: Any, s: Any) -> Any:
        start = [fs.constant(0), s]
        return i + 1, fs.while_loop(lambda j, t: j < 10, step, start, back_prop=False)[1]

    start = [fs.constant(0), fs.constant(1.0)]
    return fs.while_loop(lambda i, s: i < n, outer, start, back_prop=False)[1]


def nested(fs: Any, n: Any, w: Any) -> Any:
    """Returns a loop around loops of 100 iterations."""

    def outer(i: Any, s: Any) -> Any:
        start = [fs.constant(0), s]
        inner = fs.while_loop(
            lambda j, t: j < 100, lambda j, t: (j + 1, t + 1), start, back_prop=False
        )
        return i + 1, inner[1]

    start = [fs.constant(0), fs.constant(0)]
    return fs.while_loop(lambda i, s: i < n, outer, start, back_prop=False)[1]


def gradient(fs: Any, n: Any, w: Any) -> Any:
    """Returns the gradient of a loop of products."""
    start = [fs.constant(0), fs.constant(1.0)]
    y = fs.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w), start)[1]
    return fs.gradients(y, [w])[0]


#: Seconds that a run takes at least.
_SHORT_S = 0.003


class SmallLoop:
    """A loop with little to do in each iteration, whose number is fed."""

    def __init__(self, fs: Any, kind: str, count: int, iterations: int) -> None:
        """Builds the graph and warms up; `iterations` is how many `count` stands for."""
        graph = fs.Graph()
        with graph.as_default():
            n, w = fs.placeholder(fs.int32, []), fs.placeholder(fs.float32, [])
            self.fetch = globals()[kind](fs, n, w)
        self.session = fs.Session(graph=graph)
        self.feed = {n: count, w: 1.0001}
        self.iterations = iterations
        self.count = timed(self.run)
        while best(self.run, 3) < _SHORT_S and self.feed[n] < 10**8:  # what a step costs is little
            self.feed[n] *= 10
            self.iterations *= 10
            self.count = timed(self.run)

    def run(self) -> None:
        """Runs the loop."""
        self.session.run(self.fetch, self.feed)

    def measure(self) -> dict[str, float]:
        """Returns the seconds per iteration."""
        return {"value": best(self.run, self.count) / self.iterations}


class Lstm:
    """A training step of an LSTM, plain gradient descent; `form` is "loop" or "unrolled"."""

    def __init__(
        self, fs: Any, form: str, steps: int = 100, batch: int = 32, units: int = 128
    ) -> None:
        """Builds the graph and warms up."""
        import numpy as np

        self.steps, self.zero_shape = steps, [batch, units]
        graph = fs.Graph()
        with graph.as_default():
            x = fs.placeholder(fs.float32, [steps, batch, units])
            start = fs.random_normal_initializer(stddev=(2 * units) ** -0.5, seed=1)
            self.w = fs.get_variable("w", [2 * units, 4 * units], initializer=start)
            self.b = fs.get_variable("b", [4 * units], initializer=fs.zeros_initializer())
            last = (self.loop if form == "loop" else self.unrolled)(fs, x)
            loss = fs.reduce_mean(fs.square(last))
            self.train = fs.train.GradientDescentOptimizer(0.01).minimize(loss)
            init = fs.global_variables_initializer()
        rng = np.random.default_rng(0)
        self.feed = {x: rng.standard_normal((steps, batch, units)).astype(np.float32)}
        self.session = fs.Session(graph=graph)
        self.session.run(init)
        self.count = timed(self.run)

    def cell(self, fs: Any, x: Any, h: Any, c: Any) -> Any:
        """Returns the next output and state."""
        z = fs.matmul(fs.concat([x, h], 1), self.w) + self.b
        i, f, o, g = fs.split(z, 4, axis=1)
        c = fs.sigmoid(f) * c + fs.sigmoid(i) * fs.tanh(g)
        return fs.sigmoid(o) * fs.tanh(c), c

    def loop(self, fs: Any, x: Any) -> Any:
        """Returns the last output of a loop over time."""
        seq = fs.TensorArray(fs.float32, self.steps).unstack(x)
        out = fs.TensorArray(fs.float32, self.steps)

        def body(t: Any, h: Any, c: Any, out: Any) -> Any:
            h, c = self.cell(fs, seq.read(t), h, c)
            return t + 1, h, c, out.write(t, h)

        zero = fs.zeros(self.zero_shape)
        start = [fs.constant(0), zero, zero, out]
        found = fs.while_loop(lambda t, *_: t < self.steps, body, start, parallel_iterations=32)
        return found[3].stack()[-1]

    def unrolled(self, fs: Any, x: Any) -> Any:
        """Returns the last output of the same steps one after the other."""
        h = c = fs.zeros(self.zero_shape)
        found = []
        for one in fs.unstack(x):
            h, c = self.cell(fs, one, h, c)
            found.append(h)
        return fs.stack(found)[-1]

    def run(self) -> None:
        """Runs the step."""
        self.session.run(self.train, self.feed)

    def measure(self) -> dict[str, float]:
        """Returns the seconds per step."""
        return {"value": best(self.run, self.count)}


def timed(run: Callable[[], None], batch_s: float = 0.15) -> int:
    """Warms up; returns how many runs fill a batch."""
    for _ in range(3):
        run()
    start = time.perf_counter()
    run()
    return max(1, int(batch_s / (time.perf_counter() - start)))


def best(run: Callable[[], None], count: int) -> float:
    """Returns the seconds of the quickest of so many runs: what others do adds to the rest."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


WORK: dict[str, Callable[..., Any]] = {"small_loop": SmallLoop, "lstm": Lstm}
