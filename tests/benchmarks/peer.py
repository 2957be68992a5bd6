"""One side of a comparison: a process that does a piece of work each time it is asked.

    python peer.py flowscope | tensorflow

A line of JSON comes in, {"work": name, "args": {...}}; a line of JSON goes out, {"value": seconds}
or {"error": text}. With "slice_s" the work's step is run for so many seconds, and the answer is
{"value": [seconds of each step]}. The work is written once, for TensorFlow 1's API, and runs on
either: `fs` is the module `flowscope`, or `tensorflow.compat.v1`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(__file__))

import loop_works
import models

WARM_S = 0.1
BATCH_S = 0.1


def load(name: str) -> Any:
    """Returns the module that carries TensorFlow 1's API."""
    if name == "flowscope":
        import flowscope

        return flowscope
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import tensorflow.compat.v1 as tf1

    tf1.disable_eager_execution()
    tf1.disable_control_flow_v2()
    tf1.disable_resource_variables()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    return tf1


def chain(fs: Any, x: Any, length: int) -> Any:
    """Returns the end of a chain of scalar operations of four kinds, each of which also reads x.

    Neighbours differ, and none is a no-op for a simplifier to drop.
    """
    kinds = (fs.add, fs.maximum, fs.subtract, fs.minimum)
    y = x
    for i in range(length):
        y = kinds[i % 4](y, x)
    return y


class Step:
    """One step: a scalar is fed, `length` operations run, one value is fetched."""

    def __init__(self, fs: Any, length: int) -> None:
        """Builds the graph and warms up."""
        graph = fs.Graph()
        with graph.as_default():
            self.x = fs.placeholder(fs.float32, [])
            self.y = chain(fs, self.x, length)
        self.session = fs.Session(graph=graph)
        self.per_batch = max(1, int(BATCH_S / self.seconds(warm_up(self.run))))

    def run(self) -> None:
        """Runs the step."""
        self.session.run(self.y, {self.x: 2.0})

    def seconds(self, count: int) -> float:
        """Returns the mean time of a step over so many."""
        run = self.run
        start = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - start) / count

    def measure(self) -> dict[str, float]:
        """Returns the mean time of a step over one batch."""
        return {"value": self.seconds(self.per_batch)}


class Build:
    """A chain is built in a fresh graph, and run for the first time in a fresh session."""

    def __init__(self, fs: Any, length: int) -> None:
        """Does it once, untimed."""
        self.fs, self.length = fs, length
        self.measure()

    def measure(self) -> dict[str, float]:
        """Returns the seconds for building, and for the session and its first step."""
        fs = self.fs
        gc.collect()  # what the last round left is not this one's
        start = time.perf_counter()
        graph = fs.Graph()
        with graph.as_default():
            x = fs.placeholder(fs.float32, [])
            y = chain(fs, x, self.length)
        built = time.perf_counter()
        with fs.Session(graph=graph) as session:
            opened = time.perf_counter()
            session.run(y, {x: 2.0})
            done = time.perf_counter()
        return {"build": built - start, "first_run": done - opened}


class Loop:
    """A loop that counts, without anything else to do."""

    def __init__(self, fs: Any, iterations: int) -> None:
        """Builds the graph and warms up."""
        graph = fs.Graph()
        with graph.as_default():
            limit = fs.placeholder(fs.int32, [])
            self.end = fs.while_loop(lambda i: i < limit, lambda i: i + 1, [fs.constant(0)])
        self.session = fs.Session(graph=graph)
        self.feed = {limit: iterations}
        self.iterations = iterations
        warm_up(self.run)

    def run(self) -> None:
        """Runs the loop."""
        self.session.run(self.end, self.feed)

    seconds = Step.seconds

    def measure(self) -> dict[str, float]:
        """Returns the seconds per iteration."""
        return {"value": self.seconds(1) / self.iterations}


class Gradients:
    """`gradients` of a chain of multiplications by one tensor."""

    def __init__(self, fs: Any, length: int) -> None:
        """Does it once, untimed."""
        self.fs, self.length = fs, length
        self.measure()

    def measure(self) -> dict[str, float]:
        """Returns the seconds that adding the gradient's operations takes."""
        fs = self.fs
        gc.collect()
        with fs.Graph().as_default():
            x = fs.placeholder(fs.float32, [])
            y = x
            for _ in range(self.length):
                y = y * x
            start = time.perf_counter()
            fs.gradients(y, x)
            return {"value": time.perf_counter() - start}


class Watched:
    """A loop of steps, without a subscriber to the live bus and with one, in turns."""

    def __init__(self, fs: Any, length: int, seconds: float) -> None:
        """Prepares the step; each of the two loops takes about so many seconds."""
        from flowscope.live.watchers.bus import LiveChannel

        self.step = Step(fs, length)
        self.feed = LiveChannel(self.step.session.graph, self.step.session)
        self.count = max(1, round(self.step.per_batch * seconds / BATCH_S))
        self.messages = self.rounds = 0

    def receive(self, _message: Any) -> None:
        """Counts a message of the bus."""
        self.messages += 1

    def measure(self) -> dict[str, float]:
        """Returns the seconds per step of a loop nobody watches, and of one that is watched.

        They take turns in going first: what comes second finds a warmer, or a hotter, machine.
        """
        self.rounds += 1
        order = ("unwatched", "watched") if self.rounds % 2 else ("watched", "unwatched")
        figures = {name: self.loop(name == "watched") for name in order}
        if self.messages == 0:
            raise RuntimeError("the bus told nothing about the watched loop")
        return figures

    def loop(self, is_watched: bool) -> float:
        """Returns the mean time of a step in one loop."""
        if not is_watched:
            return self.step.seconds(self.count)
        unsubscribe = self.feed.subscribe(self.receive)
        try:
            return self.step.seconds(self.count)
        finally:
            unsubscribe()


WORK: dict[str, Callable[..., Any]] = {
    "step": Step,
    "build": Build,
    "gradients": Gradients,
    "loop": Loop,
    "watched": Watched,
    **loop_works.WORK,
    **models.WORK,
}


def warm_up(run: Callable[[], None]) -> int:
    """Runs it for a while, three times at least; returns how often."""
    calls, start = 0, time.perf_counter()
    while calls < 3 or time.perf_counter() - start < WARM_S:
        run()
        calls += 1
    return calls


def times(run: Callable[[], None], slice_s: float) -> list[float]:
    """Returns the seconds of each step that runs in a slice of time; one runs at least."""
    clock = time.perf_counter
    found = []
    begin = start = clock()
    while True:
        run()
        end = clock()
        found.append(end - start)
        if end - begin >= slice_s:
            return found
        start = end


def prepare(fs: Any, work: str, args: dict[str, Any]) -> Any:
    """Returns the work, warmed up."""
    made = WORK[work](fs, **args)
    if hasattr(made, "run"):
        warm_up(made.run)
    return made


def serve(name: str) -> None:
    """Answers one line after the other, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    fs = load(name)
    print(json.dumps({"ready": name}), file=answers, flush=True)
    prepared: dict[str, Any] = {}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            work, args, slice_s = request["work"], request["args"], request.get("slice_s")
            key = json.dumps([work, args])
            if key not in prepared:
                prepared[key] = prepare(fs, work, args)
            one = prepared[key]
            answer = one.measure() if slice_s is None else {"value": times(one.run, slice_s)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
