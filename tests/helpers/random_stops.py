"""Random programs with random breakpoints on random devices, and the stops that they give.

A program, its breakpoints and which of its operations belong together follow from a seed. Where
they are placed is a *layout*: the same program with the same breakpoints stops at the same places
in each.

    python tests/helpers/random_stops.py 200 --seed 1000
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "ops")]

import numpy as np
from cluster_hosts import hosts_here
from process_channels import until
from random_programs import MODES, Program, copied

import flowscope as fs

#: Where a program runs: what the session is made of, and the devices of the two parts of it.
LAYOUTS: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "one CPU": ({}, ("/gpu:0", "/gpu:1")),
    "two GPUs": ({"fake_devices": {"GPU": 2}}, ("/gpu:0", "/gpu:1")),
    "GPU and CPU": ({"fake_devices": {"GPU": 1}}, ("/gpu:0", "/cpu:0")),
    "split": (
        {"device_count": {"CPU": 2}, "split_partitions": "always"},
        ("/cpu:0", "/cpu:1"),
    ),
    "hosts": ({}, ("/job:worker/task:0", "/job:worker/task:1")),
}
#: What a stop is: (operation, whether after, iterations, breakpoint, its hits, number of the run).
Told = tuple[Any, ...]


@contextmanager
def session(
    layout: str, mode: str, graph: fs.Graph | None = None, target: Any = ""
) -> Iterator[Any]:
    """A session of a layout; of hosts that last as long where no cluster is given as target."""
    config = fs.ConfigProto(mode=mode, allow_soft_placement=True, **LAYOUTS[layout][0])
    if layout == "hosts" and not target:
        with hosts_here(2) as (cluster, _), fs.Session(cluster, graph, config) as made:
            yield made
        return
    with fs.Session(target, graph, config) as made:
        yield made


def noted(stop: Any) -> Told:
    """The facts of a stop that are compared."""
    point = stop.breakpoint
    op = stop.op.name if stop.op is not None else None
    return op, point.is_after, stop.iterations, point.number, point.hits, stop.step


def _is_free(op: Any) -> bool:
    """Whether an operation may be anywhere: it touches no state and no list."""
    values = (*op.inputs, *op.outputs)
    return bool(op.outputs) and all(t.dtype.is_numeric or t.dtype == fs.bool for t in values)


#: What random breakpoints ask for, but for `iteration`.
_CONDITIONS: Sequence[Mapping[str, Any]] = (
    {},
    {"hits": 2},
    {"step": 1},
    {"when": "max > 0.5"},
    {"when": "mean < 1 and iteration < 2"},
    {"when": lambda v: float(np.sum(np.abs(v))) > 1.0},
    {"when": "rank > 0 or value > 0"},
)


class Breaks:
    """A random program and its breakpoints.

    Args:
        seed: What it follows from.
        most: So many breakpoints at most.
    """

    def __init__(self, seed: int, most: int = 4) -> None:
        self.program = Program(seed)
        rng = random.Random(f"stops {seed}")
        graph = self.program.graph
        self._free = [op for op in graph.get_operations() if _is_free(op)]
        self._parts = {op: rng.randrange(2) for op in self._free}
        meant = [op for op in self._free if not op.type.startswith(("Const", "Placeholder"))]
        self.points = [
            (rng.choice(["break_before", "break_after"]), op.name, self._wanted(rng))
            for op in rng.sample(meant, min(len(meant), rng.randint(1, 4)))
        ][:most]

    @staticmethod
    def _wanted(rng: random.Random) -> Mapping[str, Any]:
        wanted = dict(rng.choice(_CONDITIONS))
        if rng.random() < 0.2:
            wanted["iteration"] = rng.randrange(3)
        return wanted

    def late_stops(
        self, layout: str, mode: str, target: Any = "", hosts: Sequence[Any] = ()
    ) -> list[Any]:
        """Returns the stops of a run that was on its way when the breakpoints were set.

        It stood still before its first operation, or on all hosts.

        Args:
            layout, mode, target: As for `stops`.
            hosts: The hosts that are to stand still; () for the whole step.
        """
        self._place(layout)
        found: list[Any] = []
        program = self.program
        with session(layout, mode, program.graph, target) as sess, ThreadPoolExecutor(1) as pool:
            sess.run(program.initializer)
            feeds = dict(zip([t for t, _ in program.feeds], map(copied, program.fed[0])))
            if hosts:
                gates = [
                    h.steps.session(target.endpoint.name, sess._remote.number).gate for h in hosts
                ]
                for gate in gates:
                    gate.request("pause")
                running = pool.submit(sess.run, program.fetches, feeds)
                until(
                    lambda: (
                        running.done()
                        or any(s.pausing._is_under_way for s in [*sess._remote.steps.values()])
                    )
                )
            else:
                sess.pause()
                running = pool.submit(sess.run, program.fetches, feeds)
                _held(sess, running)
            for kind, op, wanted in self.points:
                getattr(sess.debug, kind)(op, **wanted)
            if hosts:
                for gate in gates:
                    gate.request("resume")
            else:
                sess.resume()
            while (stop := _held(sess, running)) is not None:
                found.append(noted(stop))
                stop.resume()
            try:
                running.result(0)
            except fs.errors.OpError as e:
                found.append(type(e).__name__)
            errors = [type(b.error).__name__ for b in sess.debug.breakpoints]
        return [*found, errors]

    def _place(self, layout: str) -> None:
        names = LAYOUTS[layout][1]
        for op, part in self._parts.items():
            op.device = names[part]

    def stops(self, layout: str, mode: str, target: Any = "", runs: int = 2) -> list[Any]:
        """Returns the stops of two runs, each with what it gave: values, or the kind of error."""
        self._place(layout)
        found: list[Any] = []
        program = self.program
        with session(layout, mode, program.graph, target) as sess:
            sess.run(program.initializer)
            for kind, op, wanted in self.points:
                getattr(sess.debug, kind)(op, **wanted)
            sess.debug.on_stop(lambda stop: found.append(noted(stop)))
            for fed in program.fed[:runs]:
                feeds = zip([t for t, _ in program.feeds], map(copied, fed), strict=True)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        sess.run(program.fetches, dict(feeds))
                    except fs.errors.OpError as e:
                        found.append(type(e).__name__)
            errors = [type(b.error).__name__ for b in sess.debug.breakpoints]
        return [*found, errors]


def _held(sess: Any, running: Future[Any]) -> Any:
    """Returns where the session's step stands once it does; None if it ends before."""
    gate = sess.gate
    done = threading.Event()
    running.add_done_callback(lambda _: (done.set(), gate.wake()))
    assert gate.wait_until_held(60.0, is_over=done.is_set)
    return next(iter(sess.debug.stops), None)


def same(mode: str, a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two layouts have the same stops.

    In tokens mode operations that do not depend on each other have no order: there the stops are
    the same, whatever comes first. Where one of them fails the step may end before others.
    """
    if mode != "tokens":
        return a == b
    if any(isinstance(x, str) for x in (*a, *b)):
        return {x for x in a if isinstance(x, str)} == {x for x in b if isinstance(x, str)}
    return sorted(map(repr, a)) == sorted(map(repr, b))


def main() -> int:
    """Compares so many seeds in all layouts and modes; returns how many differ, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    failed = stops = 0
    with hosts_here(2) as (cluster, _):
        for seed in range(chosen.seed, chosen.seed + chosen.count):
            for mode in MODES:
                made = Breaks(seed)
                plain = made.stops("one CPU", mode)
                stops += len(plain) - 1
                for layout in list(LAYOUTS)[1:]:
                    if layout == "hosts" and mode == "tokens":
                        continue  # it has an order there: that of op mode
                    target = cluster if layout == "hosts" else ""
                    if not same(mode, made.stops(layout, mode, target), plain):
                        failed += 1
                        print(f"seed {seed}: {layout}, {mode}: {made.points}", flush=True)
    print(f"{chosen.count} programs, {stops} stops on one CPU, {failed} differ")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
