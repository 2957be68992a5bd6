"""What tracing costs: `python tests/benchmarks/bench_tracing.py [--peer-venv FOLDER]`.

Batches of steps take turns, so often that a change of the machine's pace meets both: plain and
traced (`RunOptions.FULL_TRACE`), some steps at a time; plain, and with a view attached that has
eight steps a second traced, half a second at a time, for that many looks of a view fit into each.
Who comes first takes turns, too. A ratio is that of the sums of a block of neighbouring batches;
told are the mean over the blocks and the upper end of its interval of 95 %. CPU time of the
process, so that busy neighbours count little. With TensorFlow's environment, a chain of 1000
operations is compared with its untraced one. Then: milliseconds to tell a view 10 000 spans, and
bytes of a million of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peer
from bench import CASES
from sides import make_peer

import flowscope as fs
from flowscope.live.answers.traces import Tracing
from flowscope.live.protocol.schema import Ack, AskSpans, Command, Connect
from flowscope.live.watchers import bus
from flowscope.live.watchers.wire import to_wire

NAMES = ("step1000", "mlp784-sgd", "cnn", "lstm-loop")
SLICE_S = 0.3
#: What a batch of steps takes at least where they take turns.
BATCH_S = 0.005
#: Blocks that an interval is computed from, and its width in standard errors (Student's t).
BLOCKS, WIDTH = 20, 2.09
TRACED = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)


class Work:
    """A case of the bench, that runs plain or traced."""

    def __init__(self, name: str) -> None:
        case = next(c for c in CASES if c.name == name)
        self.made = peer.prepare(fs, case.work, case.args)
        self.session: fs.Session = self.made.session
        self.is_traced = False
        run = self.session.run

        def traced(fetches: Any, feed_dict: Any = None) -> Any:
            return run(fetches, feed_dict, options=TRACED if self.is_traced else None)

        self.session.run = traced  # type: ignore[method-assign]
        for self.is_traced in (True, False):
            self.made.run()

    def choose(self, is_traced: bool) -> None:
        """Has the steps that follow traced, or not."""
        self.is_traced = is_traced

    def slice(self, slice_s: float = SLICE_S) -> float:
        """Returns the mean CPU seconds of a step over a slice of time."""
        end, count, start = time.perf_counter() + slice_s, 0, time.process_time()
        while time.perf_counter() < end:
            self.made.run()
            count += 1
        return (time.process_time() - start) / count


def turns(
    run: Callable[[], Any], choose: Callable[[bool], Any], seconds: float
) -> tuple[list[float], list[float]]:
    """Returns the CPU seconds of steps in batches, of one kind and of the other, in turns.

    Args:
        run: Runs a step.
        choose: Chooses the kind of the steps that follow; its own time does not count.
        seconds: For so long.
    """
    count = max(1, round(BATCH_S / max(1e-6, statistics.median(peer.times(run, 0.2)))))
    found: tuple[list[float], list[float]] = [], []
    end, order = time.perf_counter() + seconds, (False, True)
    while time.perf_counter() < end or len(found[0]) < BLOCKS:
        for kind in order:
            choose(kind)
            start = time.process_time_ns()
            for _ in range(count):
                run()
            found[kind].append((time.process_time_ns() - start) / 1e9 / count)
        order = order[::-1]
    return found


class View:
    """A view of a session that takes each message at once, and wants traces."""

    def __init__(self, session: fs.Session) -> None:
        self.feed = bus.LiveChannel(session.graph, session)
        self.feed.hear(Connect(1), self.take)
        self.feed.hear(Command(1, "trace", 8.0, 1), self.take)

    def take(self, message: Any) -> None:
        """Takes a message as a front end does."""
        to_wire(message)
        if message.kind in ("snapshot", "delta"):
            self.feed.hear(Ack(1, message.seq), self.take)

    def close(self) -> None:
        """Ends it."""
        self.feed.leave(self.take)


def ratio(first: list[float], then: list[float]) -> str:
    """Returns the mean ratio of blocks of neighbours, and the end of its interval of 95 %."""
    size = max(1, len(first) // BLOCKS)
    found = [
        sum(then[i : i + size]) / sum(first[i : i + size])
        for i in range(0, len(first) - size + 1, size)
    ]
    error = statistics.stdev(found) / math.sqrt(len(found))
    return f"{statistics.mean(found):.3f} (<= {statistics.mean(found) + WIDTH * error:.3f})"


def attached(work: Work, rounds: int) -> tuple[list[float], list[float]]:
    """Returns the CPU seconds of steps without a view and with one, in turns."""
    found: tuple[list[float], list[float]] = [], []
    order = (False, True)
    for _ in range(rounds):
        for kind in order:
            view = View(work.session) if kind else None
            work.slice()  # a view's first picture is no cost of its traces
            found[kind].append(work.slice(0.5))
            if view is not None:
                view.close()
        order = order[::-1]
    return found


def costs(name: str, rounds: int, view_rounds: int) -> str:
    """Returns a row of the table."""
    work = Work(name)
    plain, traced = turns(work.made.run, work.choose, rounds)
    work.choose(False)
    before, seen = attached(work, view_rounds)
    nodes = sum(1 for _ in work.session.latest_plan.program.walk())
    extra_ns = statistics.median(b - a for a, b in zip(plain, traced, strict=True)) * 1e9 / nodes
    figures = f"{statistics.median(plain) * 1e6:.0f} us, {extra_ns:.0f} ns more per node traced"
    return f"| {name} | {figures} | {ratio(plain, traced)} | {ratio(before, seen)} |"


def beside_tensorflow(folder: str, rounds: int) -> str:
    """Returns how a traced chain compares with TensorFlow's untraced one."""
    other = make_peer(Path(folder), dict(os.environ))
    if other is None:
        return ""
    work, theirs, ours = Work("step1000"), [], []
    for _ in range(rounds):
        theirs.append(statistics.mean(other.steps("step", {"length": 1000}, SLICE_S)))
        work.choose(True)
        ours.append(work.slice())
    other.stop()
    return f"traced chain of 1000 over TensorFlow's untraced one: {ratio(theirs, ours)}"


def telling() -> str:
    """Returns the milliseconds of CPU time to decode and to tell 10 000 spans."""
    with fs.Graph().as_default() as graph:
        _, y = fs.while_loop(
            lambda i, v: i < 3333, lambda i, v: (i + 1, fs.tanh(v) * 0.5), [0, fs.constant([1.0])]
        )
        tracing = Tracing()
        with fs.Session(graph=graph) as session:
            session.tracers = (tracing,)
            took = []
            for _ in range(7):
                tracing.__init__()  # type: ignore[misc]
                tracing._left = 1
                session.run(y)  # what loops is traced when it is seen again
                session.run(y)
                start = time.process_time_ns()
                found = tracing.spans(AskSpans(1, None, None, None, 100_000, 1))
                content, buffers = to_wire(found)
                json.dumps(content)
                took.append((time.process_time_ns() - start) / 1e6)
    return f"{found.spans.rows} spans told in {statistics.median(took):.1f} ms, {sum(map(len, buffers))} bytes"  # noqa: E501


def memory() -> str:
    """Returns the bytes of a million spans: as they are kept, and as a recording."""
    with fs.Graph().as_default() as graph, fs.Session(graph=graph) as session:
        y = fs.while_loop(
            lambda i, v: i < 250_000, lambda i, v: (i + 1, fs.tanh(v) * 0.5), [0, 1.0]
        )
        session.run(y)
        with fs.profile(session):
            session.run(y)
        gc.collect()
        tracemalloc.start()
        with fs.profile(session) as profiled:
            session.run(y)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        count = len(profiled.recording.spans)
        gc.collect()
        read = tracemalloc.get_traced_memory()[0] - kept
        tracemalloc.stop()
    per = 1e6 / count
    return f"{count} spans: {kept * per / 1e6:.1f} MB per million kept, {read * per / 1e6:.1f} MB more once read"  # noqa: E501


def main() -> None:
    """Prints all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer-venv", default="")
    parser.add_argument("--cases", default=",".join(NAMES))
    parser.add_argument("--rounds", type=int, default=10, help="seconds of plain and traced steps")
    parser.add_argument("--view-rounds", type=int, default=20, help="slices with a view")
    args = parser.parse_args()
    print("| case | plain | traced | view attached |")
    print("|---|---|---|---|")
    for name in filter(None, args.cases.split(",")):
        print(costs(name, args.rounds, args.view_rounds), flush=True)
    others: list[Callable[[], str]] = [telling, memory]
    for one in others:
        print(one(), flush=True)
    if args.peer_venv:
        print(beside_tensorflow(args.peer_venv, args.rounds))


if __name__ == "__main__":
    main()
